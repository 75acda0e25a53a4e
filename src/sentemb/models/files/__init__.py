"""Models, checkpoints and histories on disk."""
