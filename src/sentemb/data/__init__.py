"""Click logs, judged sets, the simulator, importers of public data."""
