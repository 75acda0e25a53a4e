"""Checks of the gradient: finite differences, the paper's traces, its printed forms."""
