"""Long checks of reliability; `make reliability` runs them all."""
