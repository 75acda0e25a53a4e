"""Public data sets, turned into click logs and judged sets."""
