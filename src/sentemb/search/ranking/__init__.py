"""The ranker of a model: the sum of cosine, BM25 with clicks and the memory of the log."""
