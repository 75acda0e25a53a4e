"""Formats of word vectors: GloVe and word2vec text, word2vec binary, and a folder of ours."""
