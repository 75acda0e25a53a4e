"""Ranking, metrics and TREC files."""
