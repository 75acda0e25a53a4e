"""`sentemb compare` as a user runs it, and what it keeps, for table4.py and order.py."""

import subprocess
import sys

from sentemb.comparison.data_folder import read_data
from sentemb.comparison.runner import Comparison

REFERENCE, SEEDS = "lstm-96", 2
ORDER_FREE = ("bag", "dssm", "bag-hard", "dssm-hard")
IN_ORDER = ("lstm-96", "lstm-96-hard", "lstm-96-bag", "bilstm-96")


def sentemb(*arguments):
    """Run a command; its standard output."""
    command = [sys.executable, "-m", "sentemb", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def opened(data, folder, rows):
    """The `Comparison` in ``folder``, without measuring; each missing row gets its reason."""
    comparison = Comparison(read_data(data), folder, rows, seeds=SEEDS, note=lambda text: None)
    comparison.run(seconds=0)
    return comparison
