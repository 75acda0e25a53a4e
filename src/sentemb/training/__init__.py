"""Objective, negatives, optimiser, trainer, checkpoints."""
