"""``sentemb train``: a model from a click log."""

import sys
import time
import tomllib
from collections.abc import Sequence
from copy import copy
from typing import Any

import click

from sentemb.cli.common import duration
from sentemb.cli.options import (
    Command,
    Decorator,
    Option,
    Read,
    Written,
    dask_option,
    given,
    looks_option,
    option,
    option_of,
    shown_default,
    threads_option,
    written_option,
)
from sentemb.cli.program import hints, say, summarise
from sentemb.cli.ranker import RankerOfTraining, log_and_share
from sentemb.models.towers.registry import ENCODERS, SHARED_TOWERS
from sentemb.models.vectors.vector_options import VECTOR_DIM, VECTOR_WORDS
from sentemb.system.amounts import amount
from sentemb.system.files import is_folder
from sentemb.system.hyperparameters import (
    FEATURES,
    MODEL,
    OBJECTIVE,
    RUN,
    Hyperparameter,
)
from sentemb.system.terminal import ProgressLine
from sentemb.training.families import FAMILIES, SPECIAL, TrainedFamily, family_of, model_names
from sentemb.training.towers.settings import MOST_SEEDS, Settings

# A model to start from may switch these on.
_OFF = {SHARED_TOWERS.name: "--separate-towers"}
# Of the run, not of the training: `--show-config` leaves them out.
_RUN = (
    *("pairs", "output", "resume", "force", "config", "show_config", "record"),
    *("threads", "dask", "json", "quiet"),
)


def _parameters(*decorators: Decorator) -> list[click.Parameter]:
    """The options that ``decorators`` make."""

    def function() -> None: ...

    for decorate in reversed(decorators):
        decorate(function)
    return list(reversed(function.__click_params__))  # type: ignore[attr-defined]


class TrainCommand(Command):  # type: ignore[misc]
    """`sentemb train`: it has the options of the model that it trains."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        config = _value_of(args, "--config")
        values = {} if config is None else _read_config(config)
        model = _value_of(args, "--model") or values.get("model")
        start_from = _value_of(args, "--start-from") or values.get("start_from")
        preset = _value_of(args, "--preset") or values.get("preset")
        if model is None and isinstance(start_from, str):
            model = _started_pair_model(start_from)
        if model is None:
            model = Settings.presets.get(str(preset), {}).get("model")
        ctx.meta[_SHOWS_CONFIG] = "--show-config" in args
        ctx.meta[_MODEL] = model if model in model_names() else ENCODERS.model.default
        known = {parameter.name for parameter in self.get_params(ctx)} - set(_RUN)
        unknown = next((name for name in values if name not in known), None)
        if unknown is not None:
            raise click.UsageError(f"{config}: {_no_option(unknown, ctx.meta[_MODEL])}", ctx)
        for parameter in self.get_params(ctx):
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            if isinstance(values.get(parameter.name), bool) and not is_flag:
                raise click.UsageError(
                    f"{config}: {parameter.name} takes a value, not true or false", ctx
                )
        ctx.default_map = values
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name.lstrip("-").replace("-", "_")
            users = _models_with(name)
            if not users:
                raise
            raise click.UsageError(_no_option(name, ctx.meta[_MODEL]), ctx) from error

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        model = ctx.meta.get(_MODEL, ENCODERS.model.default)
        family = family_of(model)
        params: list[click.Parameter] = []
        for parameter in super().get_params(ctx):
            if parameter.name == "model":
                params += [_model_option(model), _preset_option(family)]
                params += _of_model(family, model)
            elif parameter.name not in SPECIAL or parameter.name in family.reads:
                params.append(parameter)
        if ctx.meta.get(_SHOWS_CONFIG):
            params = list(map(_optional, params))
        return params

    def invoke(self, ctx: click.Context) -> Any:
        if ctx.meta[_SHOWS_CONFIG]:
            return _show_config(ctx)
        return super().invoke(ctx)


# In `click.Context.meta`: the model of whose training the options are, and --show-config.
_MODEL, _SHOWS_CONFIG = f"{__name__}.model", f"{__name__}.show_config"


def _optional(parameter: click.Parameter) -> click.Parameter:
    changed = copy(parameter)
    changed.required = False
    return changed


def _value_of(args: Sequence[str], name: str) -> str | None:
    """The value of option ``name`` on a command line that is not parsed yet."""
    for number, argument in enumerate(args):
        if argument == "--":
            break
        if argument == name and number + 1 < len(args):
            return args[number + 1]
        if argument.startswith(f"{name}="):
            return argument.partition("=")[2]
    return None


def _started_pair_model(folder: str) -> str | None:
    from sentemb.errors import SentembError
    from sentemb.training.trainer import model_of

    try:
        return model_of(folder)
    except SentembError:  # the training says what is wrong with the folder
        return None


def _models_with(name: str) -> list[str]:
    return [
        model
        for family in FAMILIES
        for model in family.models
        if name in family.reads or name in {p.name for p in family.parameters_of(model)}
    ]


def _no_option(name: str, model: str) -> str:
    users, option_name = _models_with(name), f"--{name.replace('_', '-')}"
    if not users:
        return f"unknown setting {name}; see sentemb train --model {model} --help"
    return f"{option_name} is not for {model}; leave it out, or choose {', '.join(users)}"


def _model_option(model: str) -> click.Parameter:
    names = [f"{', '.join(family.models)} ({family.models.noun})" for family in FAMILIES]
    decorate = option(
        "--model",
        type=click.Choice(model_names()),
        group=MODEL,
        help=f"{'; '.join(names)}. Each has options of its own: these are those of {model}. "
        f"[default: {ENCODERS.model.default}]",
    )
    return _parameters(decorate)[0]


def _preset_option(family: TrainedFamily) -> click.Parameter:
    decorate = option(
        "--preset",
        type=click.Choice(list(family.settings.presets)),
        help="Start from other defaults: paper is what the paper used"
        + (
            ", large a wider model that takes a few minutes to train."
            if "large" in family.settings.presets
            else "."
        ),
        group=MODEL,
        metavar=f"[{'|'.join(family.settings.presets)}]",
    )
    return _parameters(decorate)[0]


def _of_model(family: TrainedFamily, model: str) -> list[click.Parameter]:
    declared = [p for p in family.parameters_of(model) if p is not family.models.model]
    return _parameters(*(option_of(p, off=_OFF.get(p.name, "")) for p in declared))


def _read_config(path: str) -> dict[str, Any]:
    """The settings in a TOML file, by the names of the options with underscores."""
    from sentemb.errors import SentembError
    from sentemb.system.files import reading

    try:
        with reading(path) as file:
            values = tomllib.load(file)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SentembError(f"{path}: is not TOML: {error}") from error
    return {name.replace("-", "_"): _as_given(value) for name, value in values.items()}


def _as_given(value: Any) -> str | bool:
    """A value as a command line has it; true and false are for flags."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return value if isinstance(value, bool) else str(value)


def _show_config(ctx: click.Context) -> None:
    """Print the settings of this call as a file for --config.

    Those that have no value, or whose value depends on the data or on --start-from, are comments.
    """
    import json

    declared, values = _declared(ctx), _effective(ctx)
    for parameter in ctx.command.get_params(ctx):
        name = parameter.name or ""
        if not isinstance(parameter, Option) or name in _RUN:
            continue
        value = values.get(name)
        if value is None and parameter.is_flag and name not in declared:
            value = False
        if value is not None:
            click.echo(f"{name} = {json.dumps(value, ensure_ascii=False)}")
        elif name in declared and values["start_from"] is not None:
            click.echo(f"# {name}: depends on --start-from")
        else:
            text = shown_default(declared[name]) if name in declared else parameter.metavar
            click.echo(f"# {name}: {text}")


def _declared(ctx: click.Context) -> dict[str, Hyperparameter]:
    model = ctx.meta[_MODEL]
    declared = [VECTOR_DIM, VECTOR_WORDS, *family_of(model).parameters_of(model)]
    return {parameter.name: parameter for parameter in declared}


def _effective(ctx: click.Context) -> dict[str, Any]:
    """The values of the options; with --start-from only those given."""
    model, values = ctx.meta[_MODEL], dict(ctx.params)
    if values["start_from"] is not None:
        return values
    family = family_of(model)
    declared = {parameter.name: parameter for parameter in family.parameters_of(model)}
    given_settings = given({name: values[name] for name in declared})
    settings = family.settings.of(values["preset"], **{**given_settings, "model": model}).as_dict()
    settings |= dict.fromkeys(family.settings.left_to_the_log(values["preset"], given_settings))
    for name, parameter in declared.items():
        is_constant = settings[name] is None and not parameter.default_text
        values[name] = parameter.default if is_constant else settings[name]
    return values


@click.command("train", cls=TrainCommand)
@click.argument("pairs", type=click.Path(allow_dash=True))
@option(
    "--start-from",
    type=click.Path(),
    metavar="MODEL",
    help="Start from the weights and the vocabulary of this model; --model and the shape default "
    "to its own. A model that was trained on clicks continues with the clicks of PAIRS: new "
    "trigrams and words are added to its vocabulary. A bag can start any other model, which takes "
    "its rows as word vectors; a pair model takes the words of two towers as word vectors. For "
    "these, --word-features does not apply.",
    group=MODEL,
)
@option(
    "--replay",
    type=Read(),
    metavar="LOG[:SHARE]",
    help="Also train on an older click log, or on this share of its pairs, such as old.tsv:0.5. "
    "The clicks of a pair in both logs are summed.",
    group=RUN,
)
@option(
    "--catalogue",
    type=click.Path(),
    metavar="TITLES",
    help="File of titles, id<TAB>title, which --dev ranks for held-out clicks together with the "
    "titles of the log. Titles without clicks are not trained on. The ranker knows the clicks of "
    "these titles by their ids, so a title that changes later keeps them.",
    group=RUN,
)
@looks_option(group=RUN)
@option(
    "--vectors",
    type=click.Path(),
    metavar="FILE",
    help="Word vectors: word2vec or GloVe text, word2vec binary, packed with "
    "gzip or not, or a folder of `sentemb vectors convert`. For two towers their principal "
    "components are features of a word, in addition to its trigrams, so that words that the "
    "log lacks have a vector too. A pair model reads words as these vectors, fixed unless "
    "--train-vectors is given, and as trained letter trigrams without them.",
    group=FEATURES,
)
@option_of(VECTOR_DIM)
@option_of(VECTOR_WORDS)
@option(
    "--teacher",
    metavar="[NAME|MODEL|bm25]",
    help="Another ranker or embedding to learn from besides the clicks. Two towers learn the "
    "cosines of another embedding, which reads the queries and titles of the log once: a folder or "
    "name for sentence-transformers, an ONNX file with its tokenizer.json, or a model folder. For "
    "a pair model, the lists of hard negatives before the first epoch: bm25, or two towers.",
    group=OBJECTIVE,
)
# In its place `TrainCommand` puts the options of the model.
@option("--model", help="The model to train.")
@written_option(Written(is_folder=True), "Folder of the model.", group=RUN, metavar="MODEL")
@option(
    "--dev",
    type=click.Path(),
    metavar="[SHARE|CLICKS|JUDGED]",
    help="What is measured after every epoch: a share of the log's queries to hold out, such as "
    "5%; a file of held-out clicks; the folder of a judged set; with --labels, labelled pairs.",
    group=RUN,
)
@option(
    "--labels",
    is_flag=True,
    default=None,
    help="PAIRS holds labelled pairs for a pair model: label (1 or 0), tab, text, tab, text.",
    group=RUN,
)
@option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    show_default=True,
    help="Train this many models of two towers, with --seed and the seeds after it, one after the "
    "other or by --dask at the same time, and average them as `sentemb average` does: better "
    "rankings, for as many times the time and memory, in training and in encoding.",
    group=RUN,
)
@threads_option(group=RUN)
@dask_option("trains the --parts of the log, or several --seeds at the same time", group=RUN)
@option(
    "--no-ranker",
    is_flag=True,
    help="Do not fit a ranker on --dev at the end. A ranker may keep the queries and titles of the "
    "log in the folder of the model.",
    group=RUN,
)
@option("--resume", is_flag=True, help="Continue from the last checkpoint.", group=RUN)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
    group=RUN,
)
@option(
    "--config",
    type=click.Path(),
    metavar="FILE",
    help="Read options from this TOML file, as --show-config prints it; options given here win.",
    group=RUN,
)
@option(
    "--show-config",
    is_flag=True,
    expose_value=False,
    help="Print the options of this call, with all defaults, as a file for --config, and end. "
    "PAIRS and -o can be omitted.",
    group=RUN,
)
def command(
    pairs: str,
    output: str,
    no_ranker: bool,
    config: str | None,
    record: tuple[str, ...],
    **options: Any,
) -> None:
    """Train a model on a click log.

    PAIRS is a click log with one line per pair: query, tab, clicked title and, optionally, another
    tab and the number of clicks. It may also be JSON lines with "query", "clicked" and "skipped".
    Files that end in .gz are unpacked, those that end in .parquet are read as Parquet; - is
    standard input. For two towers PAIRS may be the folder of `sentemb prepare`, for a log that is
    larger than memory or in several files. With --dev the model of the best
    epoch is kept, otherwise that of the last epoch. --dev 5% holds out 5% of the queries of the
    log, ranks all its titles for them after every epoch, and measures MRR@10; on a judged set
    NDCG@1 is measured.

    With --dev the training ends by fitting a ranker: a sum of the cosine, BM25 and the memory of
    the log, with weights chosen on dev. `sentemb rank`, `index`, `evaluate`, `compare` and
    `explain` use it.

    Most models have two towers, which embed queries and titles. A pair model (arc1, arc2 and those
    they are compared with) reads a query and a title together and gives a score, no embedding.

    --seeds 2 trains two models that differ in their seed and averages them; dev figures are shown
    for each of them and for the average.

    \b
    sentemb train pairs.tsv --dev 5% -o model/
    sentemb train pairs.tsv --dev 5% --seeds 2 -o model/
    sentemb train pairs.tsv --dev dev/ -o model/
    sentemb train pairs.tsv --model arc2 --start-from bag/ --teacher model/ -o reranker/
    """
    from sentemb.analysis.next_step import next_step
    from sentemb.kernels.compiling.ahead import compiling_ahead
    from sentemb.training.stopping import Interrupted
    from sentemb.training.trainer import train

    began = time.monotonic()
    line = ProgressLine()
    if options["replay"] is not None:
        options["replay"] = log_and_share(options["replay"])
    ranker = RankerOfTraining.of(pairs, output, options, record, no_ranker)
    options |= {name: value for name, value in ranker.sources.items() if name != "pairs"}
    with compiling_ahead(lambda: _rehearse(options, ranker)):
        try:
            model = train(
                ranker.sources["pairs"],
                output=output,
                on_progress=lambda progress: _show(progress, line),
                on_note=line.note,
                **given(options),
            )
        except Interrupted as interrupted:
            where, mark, remedy = str(interrupted).partition("; ")
            line.note(where + "".join(hints(mark + remedy)))
            sys.exit(128 + interrupted.signal)
        finally:
            line.close()
        facts = _summary(model, output, time.monotonic() - began)
        fitted = ranker.fit(model)
    if fitted is not None:
        facts["ranker"] = {"recipe": fitted.recipe.as_dict(), "dev": fitted.dev}
    # What could be read only once is of no use in another command.
    given_paths = (options.get(name) for name in ("dev", "catalogue"))
    step = next_step(output, *(path if isinstance(path, str) else None for path in given_paths))
    summarise(output, facts, *hints(f"next: {step}"))


def _rehearse(options: dict[str, Any], ranker: RankerOfTraining) -> None:
    """Do what a training of two towers does after its first updates, on a few texts."""
    from sentemb.search.ranking.fitting import fit_ranker
    from sentemb.search.ranking.floor_fit import random_letters
    from sentemb.training.towers.rehearsal import CLICKS, JUDGED, LOG, rehearse

    preset = options.get("preset")
    settings = given({p.name: options.get(p.name) for p in Settings.parameters})
    # A small log needs all kernels of a larger one, and those of a bag.
    settings = Settings.for_log(preset, settings, n_pairs=0)
    dev = None if options["dev"] is None else JUDGED if is_folder(options["dev"]) else CLICKS
    model = rehearse(Settings.of(preset, **settings), dev)
    if dev is not None and ranker.is_wanted:
        # As the fit of a floor, for which these queries are too few.
        fit_ranker(model, LOG, dev, threads=1).ranked(random_letters(0), 1)


def _summary(model: Any, output: str, seconds: float) -> dict[str, Any]:
    """Say what was trained; the same as facts."""
    from sentemb.models.files.history import DEV_FIGURE, best_epoch

    shape, pairs = _shape(model), amount(model.training["pairs"], "pair")
    names = ("model", "pairs", "seeds", "dev_of_average")
    facts = {name: model.training[name] for name in names if name in model.training}
    facts["seconds"] = seconds
    if "seeds" in model.training:
        say(f"{output}: {shape}, {model.vocabulary}, {pairs}, {seconds:.0f} s")
        _say_seeds(model.training)
    else:
        last = model.history[-1]
        say(
            f"{output}: {shape}, {model.vocabulary}, {pairs}, "
            f"{last['epoch']} epoch{'s' if last['epoch'] > 1 else ''}, loss {last['loss']:.4f}, "
            f"{seconds:.0f} s"
        )
        figure = next(iter(last["dev"] or {}), DEV_FIGURE)
        best = best_epoch(model.history, figure)
        facts |= {"epochs": last["epoch"], "loss": last["loss"]}
        if best is not None:
            facts |= {"kept_epoch": best["epoch"], "dev": best["dev"]}
            say(f"kept epoch {best['epoch']}, on dev: {_figures(best['dev'])}")
    return facts


def _say_seeds(training: dict[str, Any]) -> None:
    """The dev figures of each member and of the average, if there is a dev set."""
    if "dev_of_average" not in training:
        return
    of_seeds, epochs = training["dev_of_seeds"], training["kept_epochs"]
    for k, (seed, epoch) in enumerate(zip(training["seeds"], epochs, strict=True)):
        values_of_seed = {name: values[k] for name, values in of_seeds.items()}
        say(f"seed {seed}: kept epoch {epoch}, on dev: {_figures(values_of_seed)}")
    say(f"average: on dev: {_figures(training['dev_of_average'])}")


def _figures(dev: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in dev.items())


def _shape(model: Any) -> str:
    from sentemb.models.pair_scorer import PairScorer

    if "seeds" in model.training:
        n_models = len(model.training["seeds"])
        return f"average of {n_models} models ({model.training['model']}), {model.dim} dimensions"
    if not isinstance(model, PairScorer):
        return f"{model.encoder.name}, {model.encoder.cells} cells"
    maps = model.model.settings().get("maps")
    shape = f", {'-'.join(map(str, maps))} maps" if maps else ""
    return f"{model.model.name}{shape}, up to {model.model.max_words} words"


def _show(progress: Any, line: ProgressLine) -> None:
    """One line that is redrawn on a terminal; one line per epoch elsewhere."""
    if line.is_due or progress.step == progress.steps:
        line.draw(_describe(progress))
    if progress.epoch_ended:
        line.note(_describe(progress))


def _describe(progress: Any) -> str:
    parts = [] if progress.seed is None else [f"seed {progress.seed}"]
    parts.append(f"epoch {progress.epoch}/{progress.epochs}")
    if not progress.epoch_ended:
        parts.append(f"step {progress.step}/{progress.steps}")
    parts.append(f"loss {progress.loss:.4f}")
    if progress.dev:
        parts.append(_figures(progress.dev))
    parts.append(f"{progress.pairs_per_second:,.0f} pairs/s")
    parts.append(f"{duration(progress.seconds_left)} left")
    return ", ".join(parts)
