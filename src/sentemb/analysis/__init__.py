"""What a model does, in numbers and figures: gates, keywords, topics, word effects, a report."""
