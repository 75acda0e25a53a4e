"""Small faults that the tests must notice, run by ``python -m mutants``.

Those in kernels, gradients and training are quoted in `faults.toml`; those of other modules are
made from their syntax trees: see `trees.py`.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Fault:
    """One small change of the code that makes it wrong.

    Attributes
    ----------
    file : str
        Relative to the root of the project.
    what : str
        The fault in a few words.
    old, new : str
        The text that is replaced, and what replaces it.
    tests : tuple of str
        Arguments of pytest, each for a run of its own; the likeliest to fail comes first.
    equivalent : str
        Why no test can notice it; empty for all that must be noticed.
    """

    file: str
    what: str
    old: str
    new: str
    tests: tuple
    equivalent: str = ""

    def __str__(self):
        return f"{self.file.removeprefix('src/sentemb/')}: {self.what}"

    def applied_to(self, source):
        """``source`` with the fault in it.

        Raises
        ------
        ValueError
            If the original text does not occur exactly once, or nothing would change.
        """
        found = source.count(self.old)
        if found != 1:
            raise ValueError(
                f"{self}: the text {self.old!r} occurs {found} times; make it fit the code again"
            )
        if self.new == self.old:
            raise ValueError(f"{self}: the text is replaced by itself; write the faulty one")
        return source.replace(self.old, self.new)


def read_faults():
    """All faults of ``faults.toml``, in its order."""
    tables = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
    return [
        Fault(file, **{**entry, "tests": tuple(entry["tests"])})
        for file, entries in tables.items()
        for entry in entries
    ]
