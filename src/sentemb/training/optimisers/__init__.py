"""One optimiser per file: it owns a tower's weights while they are trained."""
