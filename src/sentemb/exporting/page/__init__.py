"""A search page with the model and the titles inside, and the engine that ranks them."""
