"""Looking inside a model: traces and figures."""
