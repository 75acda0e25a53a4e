"""The page with a search box that a server or a file of its own shows."""
