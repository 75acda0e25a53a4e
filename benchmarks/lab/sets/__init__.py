"""Makers of the papers' sets."""
