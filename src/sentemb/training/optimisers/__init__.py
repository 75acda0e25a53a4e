"""The optimisers, one per module: each owns the weights of a tower while they are trained."""
