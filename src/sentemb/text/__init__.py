"""Words, letter trigrams, the vocabulary, packed batches; below this nothing knows a string."""
