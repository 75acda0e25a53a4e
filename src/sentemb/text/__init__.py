"""Words, letter trigrams, the vocabulary, packed batches. Below this floor nothing knows a string."""
