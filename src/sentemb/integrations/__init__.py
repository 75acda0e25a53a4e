"""A model inside other libraries: sentence-transformers and scikit-learn."""
