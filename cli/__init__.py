"""The command ``sentemb``: one file per command, imported only when the command is used."""

try:
    import importlib
    import keyword
    import sys
    from difflib import get_close_matches
    from typing import Any

    import click

    from sentemb.cli.program import exit_code_of
    from sentemb.version import __version__
except KeyboardInterrupt:  # Ctrl-C while Python is still loading
    raise SystemExit(130) from None

# Command name -> its one-line help. Kept here so that `sentemb --help` imports no command;
# a test compares these lines with the commands' own.
COMMANDS = {
    "simulate": "Write a simulated click log with judged dev and test sets.",
    "data": "Turn texts and public data into click logs, judged and labelled sets.",
    "import": "Turn tables of clicks into a click log.",
    "split": "Split a click log into training, dev and test.",
    "prepare": "Prepare a click log that is larger than memory.",
    "vectors": "Convert, show and train word vectors.",
    "train": "Train a model on a click log.",
    "sif": "Turn word vectors into a model without training.",
    "average": "Make one model of several.",
    "gradcheck": "Check every gradient against finite differences.",
    "encode": "Turn texts into embeddings.",
    "tune": "Fit the ranker of a model or of an index.",
    "calibrate": "Learn how often the first title is a clicked one, given its score.",
    "score": "Score one query against titles.",
    "rank": "Rank titles for queries.",
    "index": "Make an index of titles, or change one.",
    "search": "Find the titles of an index that are nearest to a query.",
    "serve": "Search an index from a browser and other programs.",
    "export": "Write a model or an index for other programs.",
    "evaluate": "Measure rankings on judged sets or held-out clicks, or accuracy on labels.",
    "sts": "Correlate a model's cosines with similarity scores.",
    "compare": "Compare models and baselines on a click log.",
    "explain": "Explain why a title is found for a query.",
    "diff": "Compare what two models, or two indexes, find for the same queries.",
    "neighbours": "Show the nearest words of a word.",
    "synonyms": "Write synonyms for Elasticsearch and OpenSearch.",
    "keywords": "Show which words of a text a model treats as keywords.",
    "topics": "Show which words the cells of a model collect.",
    "plot-gates": "Draw the gates of a model, word by word.",
    "plot-match": "Draw what carries the score of a pair model.",
    "plot-loss": "Draw the training cost of runs, epoch by epoch.",
    "report": "Write a page that shows where a model ranks badly, and why.",
}

# Commands that are named instead of an unknown one: how many, and how alike at least, from 0 to 1.
_NAMED, _ALIKE = 3, 0.7


class Group(click.Group):
    """A click group that answers an unknown command with the nearest ones."""

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
        longer = [command for command in there if command.startswith(name)]
        similar = dict.fromkeys([*longer, *get_close_matches(name, there, _NAMED, _ALIKE)])
        return f" Did you mean {' or '.join(list(similar)[:_NAMED])}?" if similar else ""


class LazyGroup(Group):
    """A click group that imports a command's module when the command is used."""

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
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *arguments: Any, standalone_mode: bool = True, **settings: Any) -> Any:
        """Run the command line; ``standalone_mode`` ends the program with its exit code."""

        def run() -> Any:
            # click declares one signature per value of standalone_mode, and none for **settings.
            return super(LazyGroup, self).main(  # type: ignore[call-overload]
                *arguments, standalone_mode=False, **settings
            )

        if not standalone_mode:
            return run()
        sys.exit(exit_code_of(run))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sentemb")
def main() -> None:
    """Train sentence embeddings on a click log, check their gradients, look inside them."""
