"""The generative model of the SIF paper and its likelihood."""
