"""Towers as ONNX graphs, with tokenisers in Python and Java."""
