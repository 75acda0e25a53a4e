"""Towers, pair models, word vectors, their files, and the faces of them."""
