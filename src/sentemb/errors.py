"""The package's one exception."""


class SentembError(ValueError):
    """A mistake that the caller can mend: bad input, bad settings, a damaged file.

    The message is one line: the place (file, line, column where there is one), what is wrong
    there, and what to do about it. The command line prints it and exits with code 1.
    """
