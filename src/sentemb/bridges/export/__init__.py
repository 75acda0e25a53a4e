"""Models and indexes in the forms that other programs read; one module per target."""
