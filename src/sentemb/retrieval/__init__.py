"""How candidates are scored: BM25 over words, and the nearest rows of vectors. No weights."""
