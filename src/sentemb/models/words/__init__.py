"""What towers and pair models share: how the words of texts become projected rows."""
