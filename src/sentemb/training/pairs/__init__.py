"""The training of pair models."""
