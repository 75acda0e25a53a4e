"""Shared by `train` and `tune`: fit the ranker of a model, with progress, and describe it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sentemb.cli.common import note_queries
from sentemb.cli.program import hints, note, say
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.search.ranking.ranker import HybridRanker
    from sentemb.search.ranking.recipe import Recipe


@dataclass(frozen=True)
class RankerOfTraining:
    """The ranker that ends a training.

    output : the folder of the model
    sources : ``pairs``, ``dev``, ``replay`` and ``catalogue``, as `sentemb.train` takes them; those
        that can be read only once have been read
    is_wanted : whether a ranker is to be fitted
    why_not : the reason why it is not fitted, unless that was asked for
    record : records of searches
    seed : that of the training, which drew the pairs of --replay
    """

    output: str
    sources: dict[str, Any]
    is_wanted: bool
    why_not: str
    record: tuple[str, ...]
    seed: int
    skip_bad_lines: bool

    @classmethod
    def of(
        cls,
        pairs: str,
        output: str,
        options: dict[str, Any],
        record: tuple[str, ...],
        no_ranker: bool,
    ) -> RankerOfTraining:
        """The ranker for the arguments of `sentemb train`."""
        from sentemb.data.prepared_log import is_prepared

        names = ("dev", "replay", "catalogue")  # a pair model has no catalogue
        sources = {"pairs": pairs, **{name: options.get(name) for name in names}}
        is_asked = not (no_ranker or options.get("labels"))
        has_dev = options["dev"] is not None
        skip, seed = bool(options["skip_bad_lines"]), options["seed"] or 0
        why_not = ""
        if is_asked and not has_dev:
            why_not = "fitting one needs --dev"
        elif is_asked and is_prepared(pairs):
            why_not = "fitting one keeps the texts of the log in memory, and PAIRS is prepared"
        is_wanted = is_asked and not why_not
        if is_wanted:
            sources = _readable_twice(sources, skip)
        return cls(output, sources, is_wanted, why_not, record, seed, skip)

    def fit(self, model: Any) -> HybridRanker | None:
        """Fit the ranker of the trained model, save it next to the model and describe it."""
        from sentemb.errors import SentembError
        from sentemb.models.sentence_encoder import SentenceEncoder
        from sentemb.search.ranking.fitting import fit_ranker
        from sentemb.search.ranking.opening import load_ranker
        from sentemb.search.ranking.ranker_files import has_ranker

        if not isinstance(model, SentenceEncoder):
            return None
        if self.why_not:
            note(f"no ranker: {self.why_not}; `sentemb tune {self.output} DEV --log LOG` adds one")
        if not self.is_wanted:
            return None
        if has_ranker(self.output):
            # A training that writes a model removes the ranker: this one had been finished before.
            try:
                ranker = load_ranker(self.output)
                say_score(ranker.recipe)
                return ranker
            except SentembError:
                pass
        sources = dict(self.sources)
        pairs, dev = sources.pop("pairs"), sources.pop("dev")
        try:
            ranker = fitted(
                lambda **asked: fit_ranker(
                    model,
                    pairs,
                    dev,
                    **sources,
                    record=self.record,
                    seed=self.seed,
                    skip_bad_lines=self.skip_bad_lines,
                    **asked,
                )
            )
            ranker.save(self.output)
        except (KeyboardInterrupt, SystemExit):
            for hint in hints("the same command with --resume fits it"):
                note(f"{self.output}: the model is finished and has no ranker; {hint}")
            raise
        describe(ranker, self.output)
        return ranker


def fitted(fit: Callable[..., HybridRanker]) -> HybridRanker:
    """Call ``fit`` with functions that show its progress and its notes."""
    line = ProgressLine()

    def show(done: int, total: int) -> None:
        if line.is_due:
            line.draw(f"ranker: step {done} of {total}")

    try:
        return fit(on_progress=show, on_note=line.note)
    finally:
        line.close()


def describe(ranker: HybridRanker, folder: str | None) -> None:
    """Print what a ranker adds up, its dev figures, and which texts are now in ``folder``."""
    from sentemb.search.ranking.fitting import FIGURES
    from sentemb.search.ranking.recipe import PARTS

    say_score(ranker.recipe)
    figures = ranker.dev["figures"]
    for metric in FIGURES:
        parts = ", ".join(
            f"{name} {figures[part][metric]:.3f}" for part, name in PARTS.items() if part in figures
        )
        say(f"ranker on dev: {metric} {figures['sum'][metric]:.3f} ({parts} alone)")
    clicks = ranker.clicks
    if ranker.recipe.needs_clicks and folder is not None and clicks.queries:
        note_queries(folder, len(clicks.queries), len(clicks.titles))


def say_score(recipe: Recipe, to: Callable[[str], None] = say) -> None:
    """Print what the score of a title is, in words."""
    from sentemb.search.ranking.recipe import MEANINGS, PARTS
    from sentemb.system.tables import aligned

    to("The ranker scores a title by the sum of these parts, each times its weight:")
    rows = [[f"{recipe.weight(p):+8.3g}", PARTS[p], MEANINGS[p]] for p in recipe.parts]
    for line in aligned(rows, left=3):
        to(line)


def note_calibration_gone() -> None:
    """Say that an index has other scores, so no confidence."""
    note("the calibration was for other scores and is gone; run `sentemb calibrate` again")


def log_and_share(value: str) -> tuple[str, float]:
    """The log and the share in ``LOG[:SHARE]``; a file may have a colon in its name."""
    from sentemb.system.files import status

    log, colon, share = value.rpartition(":")
    if status(value) is not None:
        return value, 1.0
    try:
        return (log, float(share)) if colon else (value, 1.0)
    except ValueError:
        return value, 1.0


def _readable_twice(sources: dict[str, Any], skip_bad_lines: bool) -> dict[str, Any]:
    """The sources of a training, those read that a pipe or standard input gives only once."""
    from sentemb.data.click_log import read_click_log
    from sentemb.data.held_out_clicks import read_held_out
    from sentemb.data.judged_set import read_texts
    from sentemb.data.splitting import is_share

    def log(path: str) -> Any:
        return read_click_log(path, skip_bad_lines=skip_bad_lines)

    readable = dict(sources)
    if _is_stream(readable["pairs"]):
        readable["pairs"] = log(readable["pairs"])
    if not is_share(readable["dev"]) and _is_stream(readable["dev"]):
        readable["dev"] = read_held_out(readable["dev"])
    if readable["replay"] is not None and _is_stream(readable["replay"][0]):
        readable["replay"] = log(readable["replay"][0]), readable["replay"][1]
    if readable["catalogue"] is not None and _is_stream(readable["catalogue"]):
        ids, titles = read_texts(readable["catalogue"])
        readable["catalogue"] = dict(zip(ids, titles, strict=True))
    return readable


def _is_stream(path: str) -> bool:
    """Whether ``path`` can be read only once: standard input, a pipe, a device."""
    from sentemb.system.files import is_file, is_folder, status

    return path == "-" or (status(path) is not None and not is_file(path) and not is_folder(path))
