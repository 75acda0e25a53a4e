"""``sentemb train``: a model from a click log."""

import sys
import time
from dataclasses import replace
from typing import Any

import click

from sentemb.cli.common import duration
from sentemb.cli.options import (
    Read,
    Written,
    given,
    merged,
    option,
    option_of,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import say
from sentemb.cli.ranker import RankerOfTraining, log_and_share
from sentemb.models.pairs.registry import PAIR_MODELS, pair_models_with
from sentemb.models.towers.registry import (
    ENCODERS,
    MODEL_NAME,
    SHARED_TOWERS,
    describe,
    encoders_with,
)
from sentemb.models.vectors.vector_options import VECTOR_DIM, VECTOR_WORDS
from sentemb.system.hyperparameters import FEATURES, MODEL, NEGATIVES, RUN, Hyperparameter
from sentemb.system.terminal import ProgressLine
from sentemb.training import pair_settings as of_pairs
from sentemb.training.settings import HYPERPARAMETERS, MOST_SEEDS, PRESETS

# A model to start from may switch these on.
_OFF = {SHARED_TOWERS.name: "--separate-towers"}
_PAIR_MODELS = "pair models"  # in help texts


def _declarations() -> list[Hyperparameter]:
    """The hyper-parameters of two towers and of pair models, those of one name as one."""
    pairs = {one.name: one for one in of_pairs.HYPERPARAMETERS}
    found = []
    for one in HYPERPARAMETERS:
        other = pairs.pop(one.name, None)
        own = replace(one, help=describe(one))
        if one is MODEL_NAME:
            both = f"Encoder of each tower, or a pair model: {', '.join(PAIR_MODELS)}."
            own = replace(one, help=both, choices=(*ENCODERS, *PAIR_MODELS))
        elif other is not None:
            own = _of_both(one, other)
        found.append(own)
    for one in pairs.values():
        text = of_pairs.describe(one)
        only = "" if "Only for" in text else f" Only for {_PAIR_MODELS}."
        found.append(replace(one, help=f"{text}{only}"))
    return found


def _of_both(one: Hyperparameter, other: Hyperparameter) -> Hyperparameter:
    """``one`` of two towers and ``other`` of pair models as one declaration."""
    encoders, pair_models = encoders_with(one), pair_models_with(other)
    if other.help == one.help and encoders:
        text = f"{one.help} Only for {', '.join([*encoders, *pair_models])}."
    elif other.help == one.help and pair_models:
        text = f"{one.help} Pair models: only {', '.join(pair_models)}."
    else:
        text = describe(one)
        return merged(replace(one, help=text), other, ", ".join(pair_models) or _PAIR_MODELS)
    return merged(replace(one, help=text), replace(other, help=text), _PAIR_MODELS)


def _settings(function: Any) -> Any:
    """``function`` with an option for every hyper-parameter."""
    for declared in reversed(_declarations()):
        function = option_of(declared, off=_OFF.get(declared.name, ""))(function)
    return function


@new_command("train")
@click.argument("pairs", type=click.Path(allow_dash=True))
@option(
    "--start-from",
    "--init",
    "start_from",
    type=click.Path(),
    metavar="MODEL_DIR",
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
    "titles of the log. Titles without clicks are not trained on.",
    group=RUN,
)
@option(
    "--word-vectors",
    type=click.Path(),
    metavar="FILE",
    help="Word vectors for a pair model: word2vec or GloVe text, word2vec binary (.bin), each "
    "unpacked if it ends in .gz, or a folder of `sentemb vectors convert`. They are fixed unless "
    "--tune-vectors is given. Without them words are read as trained letter trigrams.",
    group=FEATURES,
)
@option(
    "--vectors",
    type=click.Path(),
    metavar="FILE",
    help="Word vectors for two towers, in the formats of --word-vectors: their principal "
    "components are features of a word, in addition to its trigrams, so that words that the log "
    "lacks have a vector too.",
    group=FEATURES,
)
@option_of(VECTOR_DIM)
@option_of(VECTOR_WORDS)
@option(
    "--teacher",
    type=click.Path(),
    metavar="[bm25|MODEL_DIR]",
    help="What lists hard negatives for a pair model before the first epoch: bm25, or a model with "
    "two towers.",
    group=NEGATIVES,
)
@option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="Start from other defaults: paper is what the paper used, large a wider model of two "
    "towers that takes a few minutes to train.",
    group=MODEL,
)
@option(
    "-o",
    "--output",
    required=True,
    type=Written(is_folder=True),
    help="Folder of the model.",
    group=RUN,
)
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
@_settings
@option(
    "--seeds",
    type=click.IntRange(1, MOST_SEEDS),
    default=1,
    show_default=True,
    help="Train this many models of two towers, with --seed and the seeds after it, one after the "
    "other, and average them as `sentemb average` does: better rankings, for as many times the "
    "time and memory, in training and in encoding.",
    group=RUN,
)
@threads_option(group=RUN)
@option(
    "--no-ranker",
    is_flag=True,
    help="Do not fit a ranker on --dev at the end. A ranker may keep the queries and titles of the "
    "log in the folder of the model.",
    group=RUN,
)
@option("--resume", is_flag=True, help="Continue from the last checkpoint.", group=RUN)
@option("--force", is_flag=True, help="Replace the model in the output folder.", group=RUN)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
    group=RUN,
)
@option(
    "--checkpoint-seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds between checkpoints, and at least 20 times as many as the last one took; 0 "
    "writes one after every mini-batch.",
    group=RUN,
)
def command(
    pairs: str, output: str, checkpoint_seconds: float, no_ranker: bool, **options: Any
) -> None:
    """Train a model on a click log.

    PAIRS is a click log with one line per pair: query, tab, clicked title and, optionally, another
    tab and the number of clicks. It may also be JSON lines with "query", "clicked" and "skipped".
    Files that end in .gz are unpacked; - is standard input. For two towers PAIRS may be the folder
    of `sentemb prepare`, for a log that is larger than memory. With --dev the model of the best
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
    from sentemb.training.stopping import Interrupted
    from sentemb.training.trainer import train

    began = time.monotonic()
    line = ProgressLine()
    if options["replay"] is not None:
        options["replay"] = log_and_share(options["replay"])
    ranker = RankerOfTraining.of(pairs, output, options, no_ranker)
    options |= {name: value for name, value in ranker.sources.items() if name != "pairs"}
    try:
        model = train(
            ranker.sources["pairs"],
            output=output,
            checkpoint_seconds=checkpoint_seconds,
            on_progress=lambda progress: _show(progress, line),
            on_note=line.note,
            **given(options),
        )
    except Interrupted as interrupted:
        line.note(str(interrupted))
        sys.exit(128 + interrupted.signal)
    finally:
        line.close()
    _summarise(model, output, time.monotonic() - began)
    ranker.fit(model)
    say(f'next: sentemb score {output} "a query" "a title"')


def _summarise(model: Any, output: str, seconds: float) -> None:
    from sentemb.models.files.history import DEV_FIGURE, best_epoch

    shape, pairs = _shape(model), f"{model.training['pairs']:,} pairs"
    if "seeds" in model.training:
        say(f"{output}: {shape}, {model.vocabulary}, {pairs}, {seconds:.0f} s")
        _summarise_seeds(model.training)
    else:
        last = model.history[-1]
        say(
            f"{output}: {shape}, {model.vocabulary}, {pairs}, "
            f"{last['epoch']} epoch{'s' if last['epoch'] > 1 else ''}, loss {last['loss']:.4f}, "
            f"{seconds:.0f} s"
        )
        figure = next(iter(last["dev"] or {}), DEV_FIGURE)
        best = best_epoch(model.history, figure)
        if best is not None:
            say(f"kept epoch {best['epoch']}, on dev: {_figures(best['dev'])}")


def _summarise_seeds(training: dict[str, Any]) -> None:
    """The dev figures of each member and of the average, if there is a dev set."""
    if "dev_of_average" not in training:
        return
    of_seeds, epochs = training["dev_of_seeds"], training["kept_epochs"]
    for k, (seed, epoch) in enumerate(zip(training["seeds"], epochs, strict=True)):
        own = {name: values[k] for name, values in of_seeds.items()}
        say(f"seed {seed}: kept epoch {epoch}, on dev: {_figures(own)}")
    say(f"average: on dev: {_figures(training['dev_of_average'])}")


def _figures(dev: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in dev.items())


def _shape(model: Any) -> str:
    """The name of a model and its size."""
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
