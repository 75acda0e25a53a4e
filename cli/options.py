"""Options: from a declaration, in groups of the help; and those shared."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from sentemb.models.family import Family
from sentemb.models.vectors.vector_options import P_HELP, P_SOURCES
from sentemb.system.hyperparameters import GROUPS, WORDS, Hyperparameter
from sentemb.system.outputs import Output, check_outputs

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """An option that may belong to a group of the help."""

    def __init__(self, *arguments: Any, group: str | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class Command(click.Command):
    """A command that shows its options in groups.

    Before it runs, `check_outputs` is asked about the parameters of type `Written`; those of type
    `click.Path` are what it reads.
    """

    def invoke(self, ctx: click.Context) -> Any:
        written: list[Output] = []
        read: list[str] = []
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            values = value if isinstance(value, tuple) else [value]
            given = [one for one in values if isinstance(one, str)]
            if isinstance(parameter.type, Written):
                written += parameter.type.outputs(given, ctx)
            elif isinstance(parameter.type, Read):
                read += parameter.type.inputs(given)
            elif isinstance(parameter.type, click.Path):
                read += given
        if written:
            check_outputs(written, read, ctx.params.get("force", ctx.meta.get(_FORCE, False)))
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "Options")}
        for parameter in self.get_params(ctx):
            # Newer versions of click have records of arguments too, without help.
            is_option = isinstance(parameter, click.Option)
            record = parameter.get_help_record(ctx) if is_option else None
            if record is not None:
                group = getattr(parameter, "group", None) or "Options"
                sections.setdefault(group, []).append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class Written(click.Path):
    """A file or a folder that a command writes.

    Parameters
    ----------
    is_folder, can_stream : bool
        See `sentemb.system.outputs.Output`.
    outputs : function, optional
        The files that are written, given the value and the other parameters of the command.
    """

    def __init__(
        self,
        is_folder: bool = False,
        can_stream: bool = False,
        outputs: Callable[[str, dict[str, Any]], list[str]] = lambda path, given: [path],
    ) -> None:
        super().__init__()
        self._is_folder, self._can_stream, self._outputs = is_folder, can_stream, outputs

    def outputs(self, given: Sequence[str], ctx: click.Context) -> list[Output]:
        """What is written for the values that were given."""
        paths = [path for one in given for path in self._outputs(one, ctx.params)]
        return [Output(path, self._is_folder, self._can_stream) for path in paths]


class Read(click.Path):
    """A log that a command reads, with or without a share: ``LOG[:SHARE]``."""

    def inputs(self, given: Sequence[str]) -> list[str]:
        """The names that may be those of the log."""
        return [path for one in given for path in (one, one.rpartition(":")[0]) if path]


class Text(click.ParamType):
    """A text given on the command line; bytes that are not UTF-8 are wrong usage."""

    name = "text"

    def convert(self, value: str, param: Any, ctx: Any) -> str:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            self.fail("not valid UTF-8; check the encoding of the terminal", param, ctx)
        return value


class Integers(click.ParamType):
    """Integers separated by commas, as a tuple."""

    name = "integers"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, ...]:
        if isinstance(value, tuple | list):  # of a file for --config
            return tuple(value)
        try:
            return tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail("give integers separated by commas, such as 1,3,10", param, ctx)


class Names(click.ParamType):
    """Names separated by commas, as a list."""

    name = "names"

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        return value if isinstance(value, list) else [part.strip() for part in value.split(",")]


class _IntegerOr(click.ParamType):
    """An integer, or one of some words."""

    name = "integer"

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in self._words:
            return value
        try:
            return int(value)
        except ValueError:
            self.fail(f"give an integer or {' or '.join(self._words)}", param, ctx)


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """`click.command` for a `Command`."""
    return click.command(name, cls=Command, **settings)


def option(*names: str, **settings: Any) -> Decorator:
    """`click.option` for an `Option`: ``group`` may be given too."""
    return click.option(*names, cls=Option, **settings)


def option_of(
    declared: Hyperparameter,
    default: Any = None,
    choices: Sequence[str] = (),
    help: str = "",
    off: str = "",
    family: Family | None = None,
) -> Decorator:
    """The option of a declared hyper-parameter.

    It is None unless given, so that the function that it is handed to fills in the default.

    Parameters
    ----------
    declared : Hyperparameter
        What the option sets.
    default : object, optional
        The default that the help shows instead of the declared one.
    choices : sequence of str
        Choices in addition to those declared.
    help : str
        Added to the declared text.
    off : str
        For a flag whose default is not always off: the option that switches it off.
    family : Family, optional
        Whose models have it: the help then says which.
    """
    settings: dict[str, Any] = {"default": None, "group": declared.group}
    shown = default if default is not None else _shown_default(declared)
    described = declared.help if family is None else family.describe(declared)
    text = " ".join(filter(None, (described, help)))
    name = declared.option
    if off:
        name += f"/{off}"
    elif declared.kind is bool and declared.default:
        name += f"/--no-{name.removeprefix('--')}"
        text += " [default: on]"
    elif declared.kind is bool:
        settings["is_flag"] = True
    else:
        text += f" [default: {shown}]"
        settings |= _type_of(declared, choices)
    return option(name, help=text, **settings)


def _shown_default(declared: Hyperparameter) -> Any:
    return declared.default_text or declared.default


def _type_of(declared: Hyperparameter, choices: Sequence[str]) -> dict[str, Any]:
    if declared.many:
        return {"type": Integers(), "metavar": "INTEGER,..."}
    if declared.words:
        return {
            "type": _IntegerOr(declared.words),
            "metavar": f"[INTEGER|{'|'.join(declared.words)}]",
        }
    if declared.kind is str:
        return {"type": click.Choice([*declared.choices, *choices])}
    if declared.choices:
        return {"type": declared.kind, "metavar": f"[{'|'.join(map(str, declared.choices))}]"}
    return {"type": declared.kind}


def given(options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given on the command line."""
    return {name: value for name, value in options.items() if value is not None}


# -- options of several commands --------------------------------------------------------------


def compare_with(help: str, multiple: bool = False) -> Decorator:
    """``--compare-with``: the other model, or other models."""
    return option(
        "--compare-with",
        multiple=multiple,
        type=click.Path(),
        metavar="MODEL_DIR",
        help=help,
    )


def json_option(instead_of: str) -> Decorator:
    """``--json``."""
    return option(
        "--json", "as_json", is_flag=True, help=f"Print one JSON object instead of {instead_of}."
    )


def markdown_option(what: str) -> Decorator:
    """``--markdown``."""
    return option("--markdown", is_flag=True, help=f"Print {what} in Markdown.")


# In `click.Context.meta`: whether --force was given to a command that has no other use for it.
_FORCE = f"{__name__}.force"


def _keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[_FORCE] = value


def force_option() -> Decorator:
    """``--force`` of a command whose outputs are files: `Command` asks for it."""
    return option(
        "--force",
        is_flag=True,
        expose_value=False,
        callback=_keep,
        help="Replace files that exist.",
    )


def output_option(type: Written, help: str, **settings: Any) -> Decorator:
    """``--output`` and ``--force``."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        return option("-o", "--output", type=type, help=help, **settings)(force_option()(command))

    return decorate


def figure_option(
    default: str,
    outputs: Callable[[str, dict[str, Any]], list[str]] = lambda path, given: [path],
) -> Decorator:
    """``--output`` of a figure."""
    return output_option(
        Written(outputs=outputs),
        "File of the figure: .png, .svg or .pdf.",
        metavar="FILE",
        default=default,
        show_default=True,
    )


def text_output_option(what: str) -> Decorator:
    """``--output`` of a text that is printed by default."""
    return output_option(
        Written(can_stream=True),
        f"File of {what}; - is standard output. [default: -]",
        metavar="FILE",
        default="-",
    )


def per_query_option(help: str) -> Decorator:
    """``--per-query``."""
    return option("-q", "--per-query", is_flag=True, help=help)


def cosine_option() -> Decorator:
    """``--cosine``, for commands that rank."""
    return option(
        "--cosine",
        is_flag=True,
        help="Score by the cosine of the model alone, without clicks and words.",
    )


def side_option() -> Decorator:
    """``--side``."""
    return option(
        "--side",
        type=click.Choice(["query", "document"]),
        default="query",
        show_default=True,
        help="Tower that reads the texts: that of queries, or that of titles (document).",
    )


def p_option() -> Decorator:
    """``--p`` of SIF."""
    return option(
        "--p",
        type=click.Path(),
        metavar=f"[{'|'.join(P_SOURCES)}|FILE]",
        help=f"{P_HELP} [default: {P_SOURCES[0]}]",
        group=WORDS,
    )


def threads_option(group: str | None = None) -> Decorator:
    """``--threads``."""
    return option(
        "--threads",
        type=int,
        group=group,
        help="Number of threads; the results do not depend on it. [default: all processors]",
    )


def dask_option(does: str) -> Decorator:
    """``--dask``, for a cluster that ``does`` something."""
    return option(
        "--dask",
        metavar="[local|local:N|tcp://HOST:PORT]",
        help=f"A cluster of Dask {does}, to the same bits: local or local:N starts and ends "
        "processes on this machine (by default one per processor), an address is that of your "
        "scheduler. Needs the extra sentemb[dask].",
    )
