"""The objectives of training: a loss and its gradient at the embeddings, one file per loss."""
