"""Word vectors, word probabilities, and SIF: sentence embeddings without training."""
