"""The command ``sentemb``: one file per command, imported only when the command is used."""

try:
    import atexit
    import importlib
    import keyword
    import signal
    import sys
    from collections.abc import Mapping
    from difflib import get_close_matches
    from typing import Any

    import click

    from sentemb.cli.program import exit_code_of
    from sentemb.version import __version__
except KeyboardInterrupt:  # Ctrl-C while Python is still loading
    raise SystemExit(130) from None

# Section of the help -> command name -> its one-line help. Kept here so that `sentemb --help`
# imports no command; a test compares these lines with the commands' own.
SECTIONS = {
    "Begin": {
        "start": "Go from a shop's tables to a search page.",
    },
    "Bring in": {
        "simulate": "Write a simulated click log with judged dev and test sets.",
        "data": "Turn public data into click logs and judged sets.",
        "import": "Turn tables of clicks into a click log.",
        "split": "Split a click log into training, dev and test.",
        "prepare": "Prepare a click log that is larger than memory.",
        "vectors": "Convert, show, train and teach word vectors.",
    },
    "Train": {
        "train": "Train a model on a click log.",
        "sif": "Turn word vectors into a model without training.",
        "average": "Make one model of several.",
        "tune": "Fit the ranker of a model or of an index.",
        "gradcheck": "Check every gradient against finite differences.",
    },
    "Measure": {
        "evaluate": "Measure rankings on judged sets or held-out clicks, or accuracy on labels.",
        "compare": "Compare models and baselines on a click log.",
        "diff": "Compare what two models, or two indexes, find for the same queries.",
        "report": "Write a page that shows where a model ranks badly, and why.",
        "sts": "Correlate a model's cosines with similarity scores.",
    },
    "Search": {
        "score": "Score one query against titles.",
        "rank": "Rank titles for queries.",
        "encode": "Turn texts into embeddings.",
        "index": "Make an index of titles, or change one.",
        "calibrate": "Learn how often the first title is a clicked one, given its score.",
        "search": "Find the titles of an index that are nearest to a query.",
        "serve": "Search an index from a browser and other programs.",
        "refresh": "Bring a shop up to date with its recorded searches and its catalogue.",
        "pin": "Put a title first for a query.",
        "export": "Write a model or an index for other programs.",
        "synonyms": "Write synonyms for Elasticsearch and OpenSearch.",
    },
    "Look inside": {
        "insights": "Show what users searched, and what they did not find.",
        "info": "Show what a model, an index or a prepared log is.",
        "explain": "Explain why a title is found for a query.",
        "neighbours": "Show the nearest words of a word.",
        "keywords": "Show which words of a text a model treats as keywords.",
        "topics": "Show which words the cells of a model collect.",
        "plot-gates": "Draw the gates of a model, word by word.",
        "plot-match": "Draw what carries the score of a pair model.",
        "plot-loss": "Draw the training cost of runs, epoch by epoch.",
    },
}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}

# A word that people try -> what to type instead. Words that look like a command are not listed.
_MEANT = {
    **dict.fromkeys(("find", "lookup", "query", "retrieve"), "search"),
    **dict.fromkeys(("embed", "vectorise", "vectorize"), "encode"),
    **dict.fromkeys(("add", "build"), "index"),
    **dict.fromkeys(("fit", "learn"), "train"),
    **dict.fromkeys(("measure", "test"), "evaluate"),
    **dict.fromkeys(("load", "read"), "import"),
    **dict.fromkeys(("similar", "nearest"), "neighbours"),
    **dict.fromkeys(("describe", "inspect", "show"), "info"),
    "benchmark": "compare",
    "check": "gradcheck",
    "demo": "simulate",
    "draw": "plot-gates",
    "help": "--help",
    "predict": "score",
    "rerank": "rank",
    "run": "serve",
    "version": "--version",
    "why": "explain",
}

# Commands that are named instead of an unknown one: how many, and how alike at least, from 0 to 1.
_NAMED, _ALIKE = 3, 0.7


class Group(click.Group):
    """A click group that answers an unknown command with the nearest ones.

    ``meant`` has words that people try, each with the command to type instead.
    """

    meant: Mapping[str, str] = {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        is_option = name.startswith("-")
        if not is_option and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}.{self._nearest(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _nearest(self, ctx: click.Context, name: str) -> str:
        """The question that names similar commands, or nothing."""
        there = self.list_commands(ctx)
        meant = [self.meant[name]] if name in self.meant else []
        longer = [command for command in there if command.startswith(name)]
        alike = get_close_matches(name, there, _NAMED, _ALIKE)
        similar = dict.fromkeys([*meant, *longer, *alike])
        return f" Did you mean {' or '.join(list(similar)[:_NAMED])}?" if similar else ""


class LazyGroup(Group):
    """A click group that imports a command's module when the command is used."""

    meant = _MEANT

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        # A module cannot have the name of a keyword of Python: import -> import_.
        file = name.replace("-", "_") + "_" * keyword.iskeyword(name)
        module = importlib.import_module(f"sentemb.cli.{file}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                # Padded, so that the lines of all sections begin in one column.
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])

    def main(self, *arguments: Any, standalone_mode: bool = True, **settings: Any) -> Any:
        """Run the command line; ``standalone_mode`` ends the program with its exit code."""

        def run() -> Any:
            # click declares one signature per value of standalone_mode, and none for **settings.
            return super(LazyGroup, self).main(  # type: ignore[call-overload]
                *arguments, standalone_mode=False, **settings
            )

        if not standalone_mode:
            return run()
        code = exit_code_of(run)
        # A signal that comes while Python shuts down would end it with a traceback.
        for number in (signal.SIGINT, signal.SIGTERM):
            atexit.register(signal.signal, number, signal.SIG_IGN)
        sys.exit(code)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sentemb")
def main() -> None:
    """Train sentence embeddings on a click log, check their gradients, look inside them."""
