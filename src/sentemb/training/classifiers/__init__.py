"""The training of a classifier on embeddings."""
