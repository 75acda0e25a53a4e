"""What other programs need: a server, a page, exports, sentence-transformers, scikit-learn."""
