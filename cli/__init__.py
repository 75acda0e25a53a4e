"""The command ``sentemb``: one file per command, imported only when it is asked for."""

try:
    import importlib
    import sys

    import click

    from sentemb.cli.program import exit_code_of
    from sentemb.version import __version__
except KeyboardInterrupt:  # Ctrl-C while Python is still loading
    raise SystemExit(130) from None

# Command name -> its one-line help. Kept here so that `sentemb --help` imports no command;
# a test holds these lines equal to the commands' own.
COMMANDS = {
    "simulate": "Write a simulated click log with judged dev and test sets.",
    "data": "Turn public data into click logs and judged sets.",
    "train": "Train a model on a click log.",
    "gradcheck": "Check every gradient against finite differences.",
    "encode": "Turn texts into vectors.",
    "score": "Score one query against titles.",
    "rank": "Rank titles for queries.",
    "evaluate": "Measure NDCG of a model or a run on a judged set.",
    "compare": "Compare models and baselines on a click log.",
    "keywords": "Show which words of a text a model takes for keywords.",
    "topics": "Show which words the cells of a model collect.",
    "plot-gates": "Draw the gates of a model, word by word.",
    "plot-loss": "Draw the training cost of runs, epoch by epoch.",
    "report": "Write a page that shows a model at work.",
}


class LazyGroup(click.Group):
    """A click group that imports a command's module when the command is used."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        module = importlib.import_module(f"sentemb.cli.{name.replace('-', '_')}")
        return module.command

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *arguments, standalone_mode=True, **settings):
        """Run the command line; ``standalone_mode`` ends the program with its exit code."""

        def run():
            return super(LazyGroup, self).main(*arguments, standalone_mode=False, **settings)

        if not standalone_mode:
            return run()
        sys.exit(exit_code_of(run))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sentemb")
def main():
    """Train sentence embeddings on a click log, check their gradients, see inside them."""
