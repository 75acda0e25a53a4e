"""The laboratory of the papers: what their claims need and no shop does; it is not installed."""
