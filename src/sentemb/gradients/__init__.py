"""The gradient, checked: finite differences, the paper's traces and its printed forms."""
