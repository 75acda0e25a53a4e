"""Options: from a declaration, in groups of the help; and those shared."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

import click

from sentemb.cli.program import AS_JSON
from sentemb.models.family import Family
from sentemb.models.vectors.vector_options import P_HELP, P_SOURCES
from sentemb.system.bounds import MAX_THREADS
from sentemb.system.hyperparameters import GROUPS, RUN, WORDS, Hyperparameter
from sentemb.system.meant_names import meant
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.parallel import limited_threads
from sentemb.system.terminal import silenced

_OF_ALL_COMMANDS = {"--quiet", "-h", "--help"}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """An option that may belong to a group of the help."""

    def __init__(self, *arguments: Any, group: str | None = None, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class Command(click.Command):
    """A command that shows its options in groups; each has ``--quiet``.

    Before it runs, `check_outputs` is asked about the parameters of type `Written`; those of type
    `click.Path` are what it reads.
    """

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.params.append(
            Option(
                ["--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_silence,
                help="Print results and errors only: no progress, notes and summaries.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
            names = {option.name: option.opts for option in options if option.name}
            ours = meant(error.option_name, names)
            if ours is None:
                raise
            # Newer versions of click drop possibilities that are not spelled alike.
            message = f"No such option {error.option_name!r}. Did you mean {names[ours][0]!r}?"
            raise click.NoSuchOption(error.option_name, message, ctx=error.ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        written: list[Output] = []
        read: list[str] = []
        for parameter in self.params:
            value = ctx.params.get(parameter.name or "")
            values = value if isinstance(value, tuple) else [value]
            given = [path for path in values if isinstance(path, str)]
            if isinstance(parameter.type, Written):
                written += parameter.type.outputs(given, ctx)
            elif isinstance(parameter.type, Read):
                read += parameter.type.inputs(given)
            elif isinstance(parameter.type, click.Path):
                read += given
        if ctx.meta.get(AS_JSON) and ctx.params.get("output") == "-":
            raise click.UsageError("standard output holds the output; name a file, or omit --json")
        if written:
            check_outputs(written, read, ctx.params.get("force", ctx.meta.get(_FORCE, False)))
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Newer versions of click have records of arguments too, without help.
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        ungrouped = {name for p in options if getattr(p, "group", None) is None for name in p.opts}
        rest = RUN if ungrouped <= _OF_ALL_COMMANDS else "Options"
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in (*GROUPS, "Options")}
        for parameter in options:
            record = parameter.get_help_record(ctx)
            if record is not None:
                group = getattr(parameter, "group", None) or rest
                sections.setdefault(group, []).append(record)
        for name, records in sections.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


class Written(click.Path):
    """A file or a folder that a command writes.

    For ``is_folder`` and ``can_stream`` see `sentemb.system.outputs.Output`. ``outputs`` returns
    the files that are written, given the value and the other parameters of the command.
    """

    def __init__(
        self,
        is_folder: bool = False,
        can_stream: bool = False,
        outputs: Callable[[str, dict[str, Any]], list[str]] = lambda path, given: [path],
    ) -> None:
        super().__init__()
        self.is_folder, self._can_stream, self._outputs = is_folder, can_stream, outputs

    def outputs(self, given: Sequence[str], ctx: click.Context) -> list[Output]:
        """The files that the given values write."""
        paths = [path for value in given for path in self._outputs(value, ctx.params)]
        return [Output(path, self.is_folder, self._can_stream) for path in paths]


class Read(click.Path):
    """A log that a command reads, with or without a share: ``LOG[:SHARE]``."""

    def inputs(self, given: Sequence[str]) -> list[str]:
        """The names that may be those of the log."""
        return [path for value in given for path in (value, value.rpartition(":")[0]) if path]


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
    """Names separated by commas, as a list; ``choices`` are those that are allowed, if not any."""

    name = "names"

    def __init__(self, choices: Sequence[str] = ()) -> None:
        self.choices = choices

    def convert(self, value: Any, param: Any, ctx: Any) -> list[str]:
        names = value if isinstance(value, list) else [part.strip() for part in value.split(",")]
        for name in names:
            if self.choices and name not in self.choices:
                self.fail(f"{name!r} is not one of {', '.join(self.choices)}", param, ctx)
        return names


class Weights(click.ParamType):
    """Names separated by commas, each with a weight behind a colon or with 1, as a dict."""

    name = "weights"

    def convert(self, value: Any, param: Any, ctx: Any) -> dict[str, float]:
        return value if isinstance(value, dict) else dict(map(_weighed, value.split(",")))


def _weighed(text: str) -> tuple[str, float]:
    name, colon, weight = text.rpartition(":")
    with contextlib.suppress(ValueError):
        return (name.strip(), float(weight)) if colon else (text.strip(), 1.0)
    return text.strip(), 1.0  # the colon is part of the name


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

    default : the default that the help shows instead of the declared one
    choices : choices in addition to those declared
    help : added to the declared text
    off : for a flag whose default is not always off: the option that switches it off
    family : the family whose models have it; the help then says which
    """
    settings: dict[str, Any] = {"default": None, "group": declared.group}
    shown = default if default is not None else shown_default(declared)
    described = declared.help if family is None else family.describe(declared)
    text = " ".join(filter(None, (described, help)))
    name = declared.option
    if off:
        name += f"/{off}"
        text += f" [default: {declared.default_text}]" if declared.default_text else ""
    elif declared.kind is bool and declared.default:
        name += f"/--no-{name.removeprefix('--')}"
        text += " [default: on]"
    elif declared.kind is bool:
        settings["is_flag"] = True
    else:
        text += f" [default: {shown}]"
        settings |= _type_of(declared, choices)
    return option(name, help=text, **settings)


def shown_default(declared: Hyperparameter) -> Any:
    """The default of a hyper-parameter as the help shows it."""
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


def refuse(options: Mapping[str, object], what: str) -> None:
    """Raise a usage error for the first option that was given and does not go with ``what``."""
    name = next((name for name, value in options.items() if value is not None), None)
    if name is not None:
        raise click.UsageError(f"{name} does not go with {what}")


# -- options of several commands --------------------------------------------------------------


def compare_with(help: str, multiple: bool = False) -> Decorator:
    """``--compare-with``: the other model, or other models."""
    return option(
        "--compare-with",
        multiple=multiple,
        type=click.Path(),
        metavar="MODEL",
        help=help,
    )


def json_option(instead_of: str) -> Decorator:
    """``--json`` of a command whose result is printed."""
    return option(
        "--json", "as_json", is_flag=True, help=f"Print one JSON object instead of {instead_of}."
    )


def since_option() -> Decorator:
    """``--since`` of a command that reads recorded searches."""
    return option(
        "--since",
        type=click.DateTime(["%Y-%m-%d", "%Y-%m-%d %H:%M"]),
        metavar="DATE",
        callback=lambda ctx, parameter, value: value and value.replace(tzinfo=UTC),
        help="Leave earlier searches of a record out: a day such as 2026-11-01, or with a time, in "
        "UTC.",
    )


def markdown_option(what: str) -> Decorator:
    """``--markdown``."""
    return option("--markdown", is_flag=True, help=f"Print {what} in Markdown.")


# In `click.Context.meta`: whether --force was given to a command that has no other use for it.
_FORCE = f"{__name__}.force"


def _keep(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def keep(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        ctx.meta[key] = value

    return keep


def _silence(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value:
        ctx.with_resource(silenced())


def force_option(is_exposed: bool = False, group: str | None = None) -> Decorator:
    """``--force``; without it nothing that exists is replaced.

    `Command` asks for it before it replaces a file. A command that writes a folder takes it as an
    argument, as it depends on what the folder holds.
    """
    settings: dict[str, Any] = {} if is_exposed else {"callback": _keep(_FORCE)}
    return option(
        "--force",
        is_flag=True,
        expose_value=is_exposed,
        help="Replace files that exist.",
        group=group,
        **settings,
    )


def output_option(
    type: Written,
    help: str,
    takes_force: bool | None = None,
    group: str | None = None,
    **settings: Any,
) -> Decorator:
    """``--output`` and ``--force``.

    ``takes_force`` says whether the command takes ``force`` as an argument. By default a command
    takes it if it writes a folder. ``group`` is the section of the help; for ``settings`` see
    `click.Option`.
    """
    is_exposed = type.is_folder if takes_force is None else takes_force

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        force = force_option(is_exposed, group)
        return option("-o", "--output", type=type, help=help, group=group, **settings)(
            force(command)
        )

    return decorate


def summary_option(group: str | None = None) -> Decorator:
    """``--json`` of a command that ends with `sentemb.cli.program.summarise`."""
    return option(
        "--json",
        is_flag=True,
        expose_value=False,
        callback=_keep(AS_JSON),
        help="Print the summary as one JSON object.",
        group=group,
    )


def written_option(type: Written, help: str, **settings: Any) -> Decorator:
    """``--output``, ``--force`` and ``--json`` of a command that writes files and prints a summary.

    See `output_option` and `summary_option`.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        as_json = summary_option(settings.get("group"))
        return output_option(type, help, **{"required": True, **settings})(as_json(command))

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
    return option("--per-query", is_flag=True, help=help)


def cosine_option() -> Decorator:
    """``--cosine``, for commands that rank."""
    return option(
        "--cosine",
        is_flag=True,
        help="Score by the cosine of the model alone, without clicks and words.",
    )


def search_fields_option() -> Decorator:
    """``--search-fields``, for commands that make an index."""
    return option(
        "--search-fields",
        metavar="FIELDS",
        type=Weights(),
        help="Fields of texts whose words find the title too, with commas between them: "
        "brand,tags:0.5 counts a word of the tags as half a word of the title.",
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


def _limit_threads(ctx: click.Context, parameter: click.Parameter, value: int | None) -> None:
    if value is not None:
        ctx.with_resource(limited_threads(value))


def threads_option(group: str | None = None) -> Decorator:
    """``--threads``, obeyed by all that the command calls."""
    return option(
        "--threads",
        type=click.IntRange(1, MAX_THREADS),
        expose_value=False,
        callback=_limit_threads,
        group=group,
        help="Number of threads; the results do not depend on it. [default: all processors]",
    )


def records_option(does: str = "", group: str | None = None) -> Decorator:
    """``--record``: records of searches, by the name ``record``."""
    return option(
        "--record",
        metavar="RECORD",
        type=click.Path(),
        multiple=True,
        group=group,
        help="A record of searches, as `sentemb serve --record` writes it. Can be given several "
        f"times; a search that is in several counts once. {does}".rstrip(),
    )


def looks_option(also: str = "", group: str | None = None) -> Decorator:
    """``--record`` of a command that makes a ranking: what was shown, by the name ``record``."""
    does = "Clicks of a query then count by how often its titles were looked at."
    return records_option(f"{does} {also}", group)


def dask_option(does: str, group: str | None = None) -> Decorator:
    """``--dask``, for a cluster that ``does`` something."""
    return option(
        "--dask",
        metavar="[local|local:N|tcp://HOST:PORT]",
        group=group,
        help=f"A cluster of Dask {does}, to the same bits: local or local:N starts and ends "
        "processes on this machine (by default one per processor), an address is that of your "
        "scheduler. Needs the extra sentemb[dask].",
    )
