"""Loaded by every worker that `cluster.opened` starts: Ctrl-C is for the command, not for them.

A terminal sends it to all processes of a command. The command finishes its mini-batch, writes a
checkpoint and ends the workers itself.
"""

import signal


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C; Dask calls this in a new worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
