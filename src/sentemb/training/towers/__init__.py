"""The training of two towers."""
