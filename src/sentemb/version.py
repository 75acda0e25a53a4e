"""The version, in one place, importable without anything else."""

__version__ = "1.1.0"
