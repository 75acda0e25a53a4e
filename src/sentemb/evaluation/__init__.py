"""How well a ranker ranks: metrics, significance, TREC files."""
