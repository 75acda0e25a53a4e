"""A simulated search engine whose texts have known meanings and grades."""
