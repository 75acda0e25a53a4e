"""Words of texts as projected rows, for towers and pair models."""
