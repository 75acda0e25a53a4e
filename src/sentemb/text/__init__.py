"""Words, letter trigrams, the vocabulary and text batches: strings in, integers out, no kernels."""
