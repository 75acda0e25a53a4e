"""Work for a cluster of Dask: encoding, look-ups and the recurrences of a training."""
