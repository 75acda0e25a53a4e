"""What several commands share: texts as arguments, warnings as notes on stderr."""

import contextlib
import warnings

import click

from sentemb.cli.program import note


class Text(click.ParamType):
    """A text given on the command line; bytes that are not UTF-8 are wrong usage."""

    name = "text"

    def convert(self, value, param, ctx):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            self.fail("not valid UTF-8; check the encoding of the terminal", param, ctx)
        return value


@contextlib.contextmanager
def warnings_to_stderr():
    """Print each warning of the body as one line, without the place in the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        note(f"warning: {warning.message}")
