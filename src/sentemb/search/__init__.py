"""An index of titles, and search in it."""
