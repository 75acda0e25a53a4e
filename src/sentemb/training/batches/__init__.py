"""From a click log to mini-batches: preparing, numbering, order."""
