"""Towers as ONNX graphs, with a tokeniser in Python."""
