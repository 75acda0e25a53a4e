"""Training: settings, the loop, tasks, mini-batches, optimisers, checkpoints."""
