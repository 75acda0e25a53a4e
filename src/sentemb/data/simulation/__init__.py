"""A made-up search engine with known truth."""
