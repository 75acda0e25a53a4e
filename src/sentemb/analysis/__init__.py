"""A model in numbers and figures: gates, keywords, topics, word effects, a report."""
