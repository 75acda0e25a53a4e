"""Bridges to other programs: a server, a page, exports, sentence-transformers, scikit-learn."""
