"""The table of the command-line battery: every case and what must come of it."""

import contextlib
import gzip
import json
import os
import re
import shutil
import signal
import stat
import sys
import unicodedata

import numpy as np

from reliability import battery_bounds, battery_pairs, battery_shop
from reliability.battery import Case
from reliability.samples import HISTORY, make_model, pairs, write_samples

REFUSED = (1, 2)
ANY = (0, 1, 2)
BROKEN_PIPE = (0, 1, 141)
INTERRUPTED = (130, -signal.SIGINT)
TERMINATED = (143, -signal.SIGTERM)

LONG = "n" * 300
NOT_UTF8 = b"caf\xe9"
ESCAPES = "red\x1b[31m\x07ink"
QUICK = ("--cells", "3", "--epochs", "1", "--batch-size", "4", "--n-negatives", "1")
TRAIN = ("train", "log.tsv", *QUICK)
SMALL_LOG = (
    *("--pairs", "60", "--dev-queries", "4", "--test-queries", "4", "--seed", "1"),
)  # fmt: skip
ONET = ("--dev", "5", "--test", "5")
COMPARE = ("compare", "data", "--models", "random,unigram", "--seeds", "1")
VECTOR_ROWS = ("compare", "data", "--models", "sif", "-o", "new")

# Each command, with what it needs to do something.
WHOLE = {
    "simulate": ("simulate", "-o", "new", *SMALL_LOG),
    "data onet": ("data", "onet", "onet", "-o", "new", *ONET),
    "train": (*TRAIN, "-o", "new"),
    "gradcheck": ("gradcheck", "--model", "bag"),
    "encode": ("encode", "lstm", "texts.txt", "-o", "new.npy"),
    "score": ("score", "lstm", "hotels in rome", "Rome hotels", "Oslo"),
    "rank": ("rank", "lstm", "queries.tsv", "docs.tsv"),
    "evaluate": ("evaluate", "lstm", "judged"),
    "compare": (*COMPARE, "-o", "new"),
    "keywords": ("keywords", "lstm", "hotels in rome"),
    "topics": ("topics", "lstm", "queries.tsv"),
    "plot-gates": ("plot-gates", "lstm", "hotels in rome", "-o", "new.svg"),
    "plot-loss": ("plot-loss", "lstm", "-o", "new.svg"),
    "report": ("report", "lstm", "queries.tsv", "-o", "new.html"),
    "vectors convert": ("vectors", "convert", "glove.txt", "-o", "new"),
    "vectors show": ("vectors", "show", "vectors", "rome"),
    "vectors train": ("vectors", "train", "log.tsv", "-o", "new", "--dim", "3", "--epochs", "1"),
    "sif": ("sif", "vectors", "texts.txt", "-o", "new"),
    "sts": ("sts", "weighted", "sts"),
}
# The models and losses whose gradients are checked in some case.
GRADCHECKED = ("lstm", "dssm", "clsm")
MAKES = ("new", "new/*", "new.*")


def prepare(folder):
    """Everything that the cases name, into ``folder``."""
    from sentemb.comparison.data_folder import read_data
    from sentemb.comparison.rows import rows_of
    from sentemb.comparison.runner import Comparison

    write_samples(folder)
    battery_pairs.prepare(folder)
    battery_shop.prepare(folder)
    rows = rows_of(["random", "unigram"])
    data = read_data(folder / "data")
    comparison = Comparison(data, folder / "compared", rows, seeds=1, note=lambda text: None)
    comparison.run()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 8)
    (folder / "utf16.txt").write_text("q1\thotels\n", encoding="utf-16")
    (folder / "bad.gz").write_bytes(b"this is not a gzip file")
    (folder / "cut.gz").write_bytes(gzip.compress(b"q1\thotels\n" * 99)[:-9])
    (folder / "nothing").mkdir()
    notes = folder / "notes"
    notes.mkdir()
    for name in ("README.md", "vocabulary.txt", "words.txt", "history.jsonl"):
        (notes / name).write_text("my own notes\n")
    (folder / "file").write_text("what was here before\n")
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "to-folder").symlink_to("nothing")
    (folder / "to-model").symlink_to("lstm")


def warm_up(main):
    """Call everything once, so that all is imported and compiled before the first fork."""
    more = [
        ("--help",),
        *((*name.split(), "--help") for name in WHOLE),
        *WHOLE.values(),
        *((*WHOLE["gradcheck"], "--model", model) for model in GRADCHECKED),
        (*WHOLE["gradcheck"], "--objective", "hinge"),
        *(("score", model, "hotels", "rome") for model in ("bilstm", "rnn", "bag", "dssm", "clsm")),
        *((*TRAIN, "-o", f"of-{model}", "--model", model) for model in ("irnn", "dan")),
        (*TRAIN[:6], "-o", "hinge", "--objective", "hinge"),
        (*TRAIN, "-o", "ungated", "--no-output-gate", "--start-from", "weighted"),
        ("sts", "weighted", "sts", "--fit-u", "each-file"),
        (*COMPARE, "-o", "new5", "--models", "sif,bm25+sif", "--vectors", "vectors"),
        ("topics", "lstm", "docs.tsv", "--json", "-o", "map.svg", "--truth", "truth.jsonl"),
        ("topics", "lstm", "queries.tsv", "-o", "h.png", "--truth", "truth.jsonl"),
        ("plot-gates", "lstm", "hotels", "--view", "cells", "--compare-with", "rnn", "-o", "c.png"),
        ("plot-gates", "bilstm", "hotels in", "-o", "g.pdf", "--output-numbers", "g.npz"),
        ("plot-loss", "lstm", "-o", "l.png"),
        ("rank", "lstm", "queries.tsv", "docs.tsv", "-o", "run.gz"),
        ("evaluate", "lstm", "judged", "--json"),
        (*TRAIN, "-o", "trained", "--dev", "judged"),
        (*TRAIN, "-o", "nesterov", "--preset", "paper", "--batch-size", "8"),
        (*TRAIN, "-o", "shared", "--model", "bilstm", "--force", "--shared-towers"),
        ("train", "log.tsv", "-o", "hard", *QUICK[:2], "--epochs", "3", "--batch-size", "8"),
        ("train", "log.jsonl", "-o", "skipped", *QUICK, "--negatives", "log"),
        (*COMPARE, "-o", "new2", "--models", "bm25,bm25-stem,plsa,doc2vec"),
        (*COMPARE, "-o", "new3", "--compare-with", "rnn", "--json"),
        (*COMPARE, "-o", "new4", "--markdown"),
        ("score", "nowhere", "a", "b"),
        ("rank",),
        *battery_pairs.warm_up(),
        *battery_shop.warm_up(),
    ]
    before = sys.argv
    for argv in more:
        sys.argv = ["sentemb", *argv]
        with contextlib.suppress(SystemExit):
            main()
    sys.argv = before


def cases():
    """The whole table: a list of `Case`."""
    table = [
        case
        for area in (
            usage,
            bounds,
            numbers,
            settings,
            inputs,
            input_permissions,
            standard_input,
            outputs,
            devices,
            output_permissions,
            train_places,
            streams,
            damaged_models,
            odd_models,
            damaged_vectors,
            checkpoints,
            histories,
            comparisons,
            skip_thought,
            what_is_printed,
            long_messages,
            terminals,
            signals,
            start_up,
            battery_pairs.cases,
            battery_shop.cases,
        )
        for case in area()
    ]
    names = [case.name for case in table]
    assert len(set(names)) == len(names), {name for name in names if names.count(name) > 1}
    return table


def unprintable(letter):
    """Whether a letter on standard output could command a terminal or hide what is there."""
    return letter not in "\n\t" and unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")


def _printable(value):
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def _in(template, value):
    """``template`` with ``value`` in the place of X."""
    return tuple(value if part == "X" else part for part in template)


# -- wrong usage ------------------------------------------------------------------------------


def usage():
    for name, argv in WHOLE.items():
        own = tuple(name.split())
        if name != "gradcheck":
            yield Case(f"usage: {name} without arguments", own, 2)
        yield Case(f"usage: {name}, unknown option", (*argv, "--no-such-option"), 2)
        yield Case(f"usage: {name} --help", (*own, "--help"), 0)
        if name not in ("score", "keywords", "plot-loss", "vectors show", "sif", "sts"):
            yield Case(f"usage: {name}, too many arguments", (*argv, "a", "b", "c"), 2)
    yield Case("usage: nothing at all", (), ANY)
    yield Case("usage: no such command", ("fly",), 2, ("fly",))
    yield Case("usage: an empty command", ("",), 2)
    yield Case("usage: --version", ("--version",), 0)
    yield Case("usage: a command that is not UTF-8", (NOT_UTF8,), 2)
    for name in ("data", "vectors"):
        yield Case(f"usage: {name} without a command", (name,), REFUSED + (0,))
    yield Case("usage: sif without a place", WHOLE["sif"][:-2], 2, ("-o",))
    yield Case("usage: vectors train without a place", WHOLE["vectors train"][:3], 2, ("-o",))
    yield Case("usage: sts, without sets", ("sts", "weighted"), 2)
    yield Case("usage: sts, two tables", (*WHOLE["sts"], "--json", "--markdown"), 2)
    yield Case("usage: vectors show, no such word", ("vectors", "show", "vectors", "xyzzy"), 1)
    yield Case("usage: --margin without the hinge", (*TRAIN, "-o", "new", "--margin", "1"), 1)
    yield Case("usage: two tables", (*WHOLE["keywords"], "--json", "--markdown"), 2)
    yield Case("usage: compare without a place", COMPARE, 2, ("-o",))
    yield Case("usage: heat map without truth", (*WHOLE["topics"], "-o", "h.svg"), 2)
    yield Case("usage: rank, standard input twice", ("rank", "lstm", "-", "-"), 2)
    yield Case("usage: plot-loss, labels", ("plot-loss", "lstm", "--label", "a", "--label", "b"), 2)
    yield Case("usage: gradcheck --break other", (*WHOLE["gradcheck"], "--break", "other"), 2)
    yield Case("usage: plot-loss --metrics other", (*WHOLE["plot-loss"], "--metrics", "other"), 2)
    texts = {
        "score QUERY": ("score", "lstm", "X", "rome"),
        "score TITLE": ("score", "lstm", "rome", "X"),
        "rank --query": ("rank", "lstm", "--query", "X", "docs.tsv"),
        "keywords TEXT": ("keywords", "lstm", "X"),
        "plot-gates TEXT": ("plot-gates", "lstm", "X", "-o", "new.svg"),
        "plot-gates --title": ("plot-gates", "lstm", "rome", "--title", "X", "-o", "new.svg"),
        "plot-loss --label": ("plot-loss", "lstm", "--label", "X", "-o", "new.svg"),
        "vectors convert --source": (*WHOLE["vectors convert"], "--source", "X"),
        "vectors convert --licence": (*WHOLE["vectors convert"], "--licence", "X"),
        "vectors show WORD": ("vectors", "show", "vectors", "X"),
    }
    for name, argv in texts.items():
        yield Case(f"usage: {name}, not UTF-8", _in(argv, NOT_UTF8), 2, ("UTF-8",))
        yield Case(f"usage: {name}, empty", _in(argv, ""), ANY, makes=MAKES)
        yield Case(f"usage: {name}, spaces only", _in(argv, " \t "), ANY, makes=MAKES)


# -- numbers ----------------------------------------------------------------------------------

WORDS = ("abc", "", "1.5", "nan")
INFINITE = ("nan", "inf", "-inf", "1e400")
HUGE = str(10**30)
# For each option: what must be refused beyond what its declaration forbids, and what may be; what
# is not a number is always refused.
NUMBERS = {
    "simulate": {
        "--pairs": (("-1", "0", HUGE, str(10**15)), ()),
        "--dev-queries": (("-1", HUGE), ("0",)),
        "--test-queries": (("-1", HUGE), ("0",)),
        "--seed": (("-1",), (HUGE,)),
    },
    "data onet": {"--seed": ((), ("-1", HUGE))},
    "vectors convert": {"--words": ((), (HUGE,))},
    "vectors show": {"--top-k": ((), (HUGE,))},
    "vectors train": {"--window": ((), ("1000",)), "--min-count": (("1000",), ())},
    "sif": {"--components": (("4",), ("0", "3"))},
    "sts": {"--components": (("4",), ("0", "3"))},
    "rank": {"--top-k": ((), (HUGE,))},
    "report": {"--limit": ((), (HUGE,)), "--show": ((), ("0", "1000")), "--top-k": ((), ("100",))},
    "topics": {"--cell": (("8", HUGE), ()), "--top-k": ((), (HUGE,))},
}
FRACTIONS = {
    "data onet": dict.fromkeys(("--dev", "--test"), (("-1", "0", "1.5", "1e30", *INFINITE), ())),
    "train": {
        **dict.fromkeys(("--gamma", "--learning-rate", "--max-norm"), ((), ("1e-300",))),
        "--margin": ((), ("1e-300", "1.9")),
    },
    "sif": {"--a": ((), ("1e-300", "1e29"))},
    "keywords": {"--min-change": (("nan",), ("-1", "inf", "-inf"))},
    "topics": {"--min-change": (("nan",), ("-1", "inf", "-inf"))},
    "compare": {"--budget": ((), ("inf", "0"))},
}


def bounds():
    commands = WHOLE | battery_shop.WHOLE | {"serve": battery_shop.SERVE}
    yield from battery_bounds.cases(commands)


def numbers():
    for table, nonsense in ((NUMBERS, WORDS), (FRACTIONS, ("abc", ""))):
        for name, options in table.items():
            for option, (refused, either) in options.items():
                for value in dict.fromkeys((*refused, *nonsense, *either)):
                    yield _number(name, option, value, value in either)
    for value in ("0", "-1", "1,,2", "1,a", HUGE, "", "1e3", "nan", "1," * 500 + "1"):
        ok = ANY if value == HUGE or len(value) > 99 else REFUSED
        yield Case(
            f"numbers: evaluate --metrics {value[:40]!r}",
            (*WHOLE["evaluate"], "--metrics", f"ndcg@{value}"),
            ok,
        )
    for value in ("0", "-1", "1,,2", "1,a", HUGE, "", str(10**9), ",".join(["9"] * 9)):
        ok = ANY if len(value) == 17 else REFUSED
        yield Case(
            f"numbers: gradcheck --lengths {value[:40]!r}",
            (*WHOLE["gradcheck"], "--lengths", value),
            ok,
        )


def _number(name, option, value, either):
    argv = WHOLE[name]
    for at in [at for at, part in enumerate(argv) if part == option]:
        argv = (*argv[:at], *argv[at + 2 :])
    if option == "--margin":
        argv = tuple(part for part in argv if part not in ("--n-negatives", "1"))
        argv = (*argv, "--epochs", "1")
        argv = (*argv, "--objective", "hinge")
    if name == "sts":
        argv = (*argv, "--fit-u", "each-file")
    return Case(
        f"numbers: {name} {option} {value or repr(value)}",
        (*argv, option, value),
        ANY if either else REFUSED,
        makes=MAKES if either else (),
    )


def settings():
    """Settings that do not go together."""
    for name, more in {
        "all titles of the corpus": ("--negatives", "corpus", "--n-negatives", "all"),
        "no skipped titles": ("--negatives", "log"),
        "hard negatives, too few epochs": ("--n-negatives", "all", "--hard-negatives", "3"),
        "resume and force": ("--resume", "--force"),
        "patience without a dev set": ("--patience", "2", "--resume", "--force"),
        "negatives of the hinge": ("--objective", "hinge"),
        "scale of the hinge": ("--objective", "hinge", "--gamma", "1"),
        "one and two towers": ("--start-from", "shared", "--separate-towers", "--shared-towers"),
        "another model than the start": ("--start-from", "rnn", "--model", "lstm"),
        "other cells than the start": ("--start-from", "rnn", "--cells", "5"),
        "one tower from two": ("--start-from", "rnn", "--cells", "4", "--shared-towers"),
    }.items():
        yield Case(f"settings: {name}", (*TRAIN, "-o", "new", *more), REFUSED)
    yield Case(
        "settings: gradcheck of all, with peepholes",
        ("gradcheck", "--model", "all", "--peepholes", "full"),
        REFUSED,
    )
    for name, more in {
        "output gate of a CLSM": ("--model", "clsm", "--no-output-gate"),
    }.items():
        yield Case(f"settings: gradcheck, {name}", ("gradcheck", *more), REFUSED)
    for name, more in {
        "softmax": ("--objective", "softmax"),
        "hinge": ("--objective", "hinge"),
        "printed": ("--form", "printed", "--json"),
    }.items():
        code = 1 if name == "printed" else 0
        yield Case(f"gradients: {name}", ("gradcheck", *more), code)
    for name, more in {
        "hinge": ("--objective", "hinge", "--margin", "0.2"),
        "dan": ("--model", "dan", "--hidden", "3", "--layers", "2", "--activation", "linear"),
        "irnn": ("--model", "irnn"),
        "an lstm without an output gate": ("--no-output-gate",),
        "from a model": ("--start-from", "rnn", "--cells", "4"),
        "from one tower to two": ("--start-from", "shared", "--cells", "4", "--separate-towers"),
        "from word vectors": ("--start-from", "weighted", "--model", "dan"),
        "from itself, as it is": ("--start-from", "to-model", "--cells", "4"),
    }.items():
        argv = (*TRAIN[:6], "-o", "new", *more)
        yield Case(f"settings: train, {name}", argv, 0, makes=MAKES)
    for name, more in {
        "all weights": ("--weights", "idf-code", "--keep", "texts", "--centre", "vocabulary"),
        "of a log": ("--log", "log.tsv", "--sides", "each", "--removal", "weighted"),
        "a judged set": ("judged", "--p", "texts", "--weights", "usif", "--components", "2"),
        "counts of the vectors": ("--p", "vectors", "--unknown-p", "zero"),
        "counts of a file": ("--p", "counts.txt", "--unknown-p", "one"),
    }.items():
        yield Case(f"settings: sif, {name}", (*WHOLE["sif"], *more), 0, makes=MAKES)
    bare = ("sif", "vectors", "-o", "new")
    yield Case("settings: sif without texts", (*bare, "--components", "0"), 0, makes=MAKES)
    for name, argv in {
        "no texts": bare,
        "no titles": (*WHOLE["sif"], "--sides", "each"),
        "no texts for idf": (*bare, "--components", "0", "--weights", "idf"),
        "no texts for p": (*bare, "--components", "0", "--p", "texts"),
        "no texts to keep": (*bare, "--components", "0", "--keep", "texts"),
        "no counts": ("sif", "glove.txt", "texts.txt", "-o", "new", "--p", "vectors"),
        "a model for vectors": ("sif", "lstm", "texts.txt", "-o", "new"),
    }.items():
        yield Case(f"settings: sif, {name}", argv, REFUSED)
    for fit_u in ("each-file", "all"):
        argv = (*WHOLE["sts"], "--fit-u", fit_u, "--components", "2")
        yield Case(f"settings: sts of {fit_u}", (*argv, "--markdown"), 0)
        yield Case(f"settings: sts of {fit_u}, each side", (*argv, "--sides", "each", "--json"), 0)
        yield Case(f"settings: sts of {fit_u}, no sif", ("sts", "lstm", *argv[2:]), 1, ("sif",))
    yield Case("settings: sts of a trained model", ("sts", "lstm", "sts/0.tsv", "sts/1.tsv"), 0)
    yield Case("settings: sts, components of the model", (*WHOLE["sts"], "--removal", "full"), 2)
    rows = ("compare", "data", "--models", "sif,bm25+sif", "-o", "new")
    for name, more in {
        "ranks": (),
        "texts": ("--p", "texts"),
        "a file": ("--p", "counts.txt"),
    }.items():
        argv = (*rows, "--vectors", "vectors", *more)
        yield Case(f"settings: compare, p of {name}", argv, 0, makes=MAKES)
    yield Case("settings: compare, p without vectors", (*rows, "--p", "texts"), REFUSED)
    yield Case("settings: compare, rows without vectors", rows, ANY, makes=MAKES)
    yield Case("settings: compare, no such row", (*COMPARE, "-o", "new", "--models", "best"), 1)
    yield Case("settings: compare, an empty row", (*COMPARE, "-o", "new", "--models", ""), REFUSED)
    yield Case(
        "settings: compare, another reference", (*COMPARE, "-o", "new", "--reference", "x"), 1
    )
    yield Case(
        "settings: compare, a model twice",
        (*COMPARE, "-o", "new", "--compare-with", "lstm", "--compare-with", "lstm"),
        1,
        makes=MAKES,
    )
    yield Case("settings: no such cell", (*WHOLE["topics"], "--cell", "4"), 1, ("cell",))
    yield Case(
        "settings: a figure of no kind", ("plot-loss", "lstm", "-o", "new.gif"), 1, (".png",)
    )
    yield Case(
        "settings: data of no kind",
        (*WHOLE["plot-gates"], "--output-numbers", "new.csv"),
        1,
        (".npz",),
    )
    yield Case(
        "settings: gates of a model without", ("plot-gates", "bag", "rome", "-o", "new.svg"), 1
    )
    yield Case("settings: keywords of a model without", ("keywords", "dssm", "rome"), 1)


# -- what is read -----------------------------------------------------------------------------

INPUTS = {
    "encode MODEL": ("folder", ("encode", "X", "texts.txt", "-o", "new.npy")),
    "encode TEXTS": ("file", ("encode", "lstm", "X", "-o", "new.npy")),
    "score MODEL": ("folder", ("score", "X", "hotels", "rome")),
    "rank MODEL": ("folder", ("rank", "X", "queries.tsv", "docs.tsv")),
    "rank QUERIES": ("file", ("rank", "lstm", "X", "docs.tsv")),
    "rank TITLES": ("file", ("rank", "lstm", "queries.tsv", "X")),
    "evaluate MODEL": ("either", ("evaluate", "X", "judged")),
    "evaluate JUDGED": ("folder", ("evaluate", "run.txt", "X")),
    "keywords MODEL": ("folder", ("keywords", "X", "hotels in rome")),
    "keywords --compare-with": (
        "folder",
        ("keywords", "lstm", "hotels in rome", "--compare-with", "X"),
    ),
    "topics MODEL": ("folder", ("topics", "X", "queries.tsv")),
    "topics QUERIES": ("file", ("topics", "lstm", "X")),
    "topics --truth": ("file", ("topics", "lstm", "queries.tsv", "--truth", "X")),
    "plot-gates MODEL": ("folder", ("plot-gates", "X", "hotels", "-o", "new.svg")),
    "plot-gates --compare-with": (
        "folder",
        ("plot-gates", "lstm", "hotels", "--compare-with", "X", "-o", "new.svg"),
    ),
    "plot-loss RUN": ("either", ("plot-loss", "X", "-o", "new.svg")),
    "report MODEL": ("folder", ("report", "X", "queries.tsv", "-o", "new.html")),
    "report QUERIES": ("text or folder", ("report", "lstm", "X", "-o", "new.html")),
    "report --catalogue": (
        "file",
        ("report", "lstm", "judged", "-o", "new.html", "--catalogue", "X"),
    ),
    "report --log": ("file", ("report", "lstm", "judged", "-o", "new.html", "--log", "X")),
    "train PAIRS": ("file", ("train", "X", *QUICK, "-o", "new")),
    "train --dev": ("folder", (*TRAIN, "-o", "new", "--dev", "X")),
    "compare DATA": ("folder", ("compare", "X", "--models", "random", "-o", "new")),
    "compare --compare-with": ("folder", (*COMPARE, "-o", "new", "--compare-with", "X")),
    "data onet SRC": ("folder", ("data", "onet", "X", "-o", "new", *ONET)),
    "train --start-from": ("folder", (*TRAIN, "-o", "new", "--start-from", "X")),
    "compare --vectors": ("either", (*VECTOR_ROWS, "--vectors", "X")),
    "compare --p": ("file", (*VECTOR_ROWS, "--vectors", "vectors", "--p", "X")),
    "vectors convert FILE": ("either", ("vectors", "convert", "X", "-o", "new")),
    "vectors convert --counts": ("file", (*WHOLE["vectors convert"], "--counts", "X")),
    "vectors show VECTORS": ("either", ("vectors", "show", "X")),
    "vectors train LOG": ("file", ("vectors", "train", "X", "-o", "new")),
    "sif VECTORS": ("either", ("sif", "X", "texts.txt", "-o", "new")),
    "sif TEXTS": ("either", ("sif", "vectors", "X", "-o", "new")),
    "sif --log": ("file", ("sif", "vectors", "--log", "X", "-o", "new")),
    "sif --p": ("file", ("sif", "vectors", "texts.txt", "--p", "X", "-o", "new")),
    "sts MODEL": ("folder", ("sts", "X", "sts")),
    "sts FILE": ("either", ("sts", "weighted", "X")),
}
NO_PLACES = {
    "missing": "nowhere",
    "empty name": "",
    "long name": LONG,
    "not UTF-8": NOT_UTF8,
    "below a file": "file/x",
    "symlink loop": "loop",
    "dangling symlink": "dangling",
    "escapes in its name": ESCAPES,
    "name of two lines": "two\nlines",
}
NO_FILES = {
    "a folder": "nothing",
    "this folder": ".",
    "empty": "empty",
    "binary": "binary",
    "UTF-16": "utf16.txt",
    "not gzip": "bad.gz",
    "cut gzip": "cut.gz",
}
NO_FOLDERS = {
    "a file": "file",
    "this folder": ".",
    "the folder above": "..",
    "empty folder": "nothing",
    "symlink to a folder": "to-folder",
    "binary": "binary",
}


def inputs():
    for label, (kind, argv) in INPUTS.items():
        bad = dict(NO_PLACES)
        if kind in ("file", "either"):
            bad |= NO_FILES
        if kind in ("folder", "either"):
            bad |= NO_FOLDERS
        if kind == "text or folder":
            bad |= {key: NO_FILES[key] for key in ("empty", "not gzip", "cut gzip", "UTF-16")}
            bad |= {key: NO_FOLDERS[key] for key in ("this folder", "empty folder")}
        if label in ("encode TEXTS", "report QUERIES", "sif TEXTS"):
            # Any bytes that are UTF-8 are a text.
            bad.pop("not gzip")
            bad["not gzip"] = "bad.gz"
        if label == "sif TEXTS":
            bad.pop("a file")
        for what, value in bad.items():
            code = REFUSED if value == "" else 1
            plain = isinstance(value, str) and 2 < len(value) < 99 and value.isprintable()
            # That one is called by where it leads to.
            says = (value,) if plain and label != "compare --compare-with" else ()
            yield Case(f"inputs: {label}, {what}", _in(argv, value), code, says)
    yield Case(
        "inputs: a log through a FIFO",
        _in(INPUTS["train PAIRS"][1], "fifo"),
        0,
        setup=lambda box: os.mkfifo(box / "fifo"),
        feeds={"fifo": "".join(f"{q}\t{t}\n" for q, t in pairs()).encode()},
        makes=MAKES,
    )
    yield Case(
        "inputs: word vectors through a FIFO",
        ("vectors", "convert", "fifo", "-o", "new"),
        0,
        setup=lambda box: os.mkfifo(box / "fifo"),
        feeds={"fifo": b"rome 1 2\nhotels 3 4\n"},
        makes=MAKES,
    )
    yield Case("inputs: a model through a symlink", ("score", "to-model", "hotels", "rome"), 0)
    for name in ("queries.tsv", "docs.tsv", "qrels.txt"):
        for what, damage in DAMAGES.items():
            # A text that is a little shorter is a text.
            still_good = what == "cut short" and name != "qrels.txt"
            yield Case(
                f"inputs: judged set, {name}, {what}",
                ("evaluate", "run.txt", "judged"),
                0 if still_good else 1,
                (name,),
                setup=_damaged("judged", name, damage),
            )


def input_permissions():
    def closed(name, mode):
        def setup(box):
            (box / name).chmod(mode)

        return setup

    for label, (kind, argv) in INPUTS.items():
        name = {
            "encode TEXTS": "texts.txt",
            "rank QUERIES": "queries.tsv",
            "rank TITLES": "docs.tsv",
            "evaluate JUDGED": "judged",
            "topics QUERIES": "queries.tsv",
            "topics --truth": "truth.jsonl",
            "report QUERIES": "queries.tsv",
            "train PAIRS": "log.tsv",
            "train --dev": "judged",
            "compare DATA": "data",
            "data onet SRC": "onet",
            "compare --vectors": "vectors",
            "compare --p": "counts.txt",
            "vectors convert FILE": "glove.txt",
            "vectors convert --counts": "counts.txt",
            "vectors show VECTORS": "vectors",
            "vectors train LOG": "log.tsv",
            "sif VECTORS": "word2vec.bin",
            "sif TEXTS": "texts.txt",
            "sif --log": "log.tsv",
            "sif --p": "counts.txt",
            "sts MODEL": "weighted",
            "sts FILE": "sts",
        }.get(label, "rnn")
        says = ("permission denied",)
        whole = _in(argv, name)
        yield Case(
            f"permissions: {label}, no right to read", whole, REFUSED, (name,),
            setup=closed(name, 0), user=True,
        )  # fmt: skip
        if kind != "file" and "." not in name and label != "report QUERIES":
            yield Case(
                f"permissions: {label}, a folder that may be listed only", whole, 1, says,
                setup=closed(name, 0o600), user=True,
            )  # fmt: skip
        yield Case(
            f"permissions: {label}, in a closed folder", _in(argv, f"cage/{name}"), 1, says,
            setup=_cage(name), user=True,
        )  # fmt: skip
    for name in ("config.json", "model.safetensors", "vocabulary.txt"):
        yield Case(
            f"permissions: score, {name} of a model",
            ("score", "rnn", "hotels", "rome"),
            (0, 1),
            ("permission denied",),
            setup=closed(f"rnn/{name}", 0),
            user=True,
            check=_says_no("train again"),
        )
    for name in ("comparison.json", "results.jsonl", "runs"):
        yield Case(
            f"permissions: compare, {name}",
            (*COMPARE, "-o", "compared"),
            1,
            ("permission denied",),
            setup=closed(f"compared/{name}", 0),
            user=True,
        )


def _cage(name):
    def setup(box):
        (box / "cage").mkdir()
        (box / name).rename(box / "cage" / name)
        (box / "cage").chmod(0)

    return setup


def _says_no(part):
    def check(outcome):
        return f"{part!r} is the wrong remedy" if part in outcome.stderr else None

    return check


READS_STANDARD_INPUT = {
    "encode": (("encode", "lstm", "-", "-o", "new.npy"), b"hotels\n"),
    "rank QUERIES": (("rank", "lstm", "-", "docs.tsv"), b"q\thotels\n"),
    "rank TITLES": (("rank", "lstm", "queries.tsv", "-"), b"d\tRome\n"),
    "evaluate": (("evaluate", "-", "judged"), b"q0 Q0 d0 1 1 t\n"),
    "topics": (("topics", "lstm", "-"), b"q\thotels in rome\n"),
    "train": (("train", "-", *QUICK, "-o", "new"), b"a\tb\nc\td\ne\tf\n"),
    "plot-loss": (("plot-loss", "-", "-o", "new.svg"), json.dumps(HISTORY[0]).encode()),
    "report": (("report", "lstm", "-", "-o", "new.html"), b"hotels in rome\n"),
    "vectors convert": (("vectors", "convert", "-", "-o", "new"), b"rome 1 2\nhotels 3 4\n"),
    "vectors convert --counts": (
        (*WHOLE["vectors convert"], "--counts", "-"), b"rome 7\n",
    ),
    "vectors show": (("vectors", "show", "-"), b"2 2\nrome 1 2\nhotels 3 4\n"),
    "vectors train": (("vectors", "train", "-", "-o", "new"), b"a\tb\nc\td\n"),
    "sif": (("sif", "vectors", "-", "-o", "new"), b"hotels in rome\nmaps\nmuseums in oslo\n"),
    "sts": (("sts", "weighted", "-"), b"1\thotels\trome\n2\tmaps in oslo\toslo maps\n"),
}  # fmt: skip


def standard_input():
    for name, (argv, good) in READS_STANDARD_INPUT.items():
        yield Case(f"standard input: {name}", argv, 0, stdin=good, makes=MAKES)
        yield Case(f"standard input: {name}, closed", argv, 1, ("standard input",), stdin="closed")
        yield Case(f"standard input: {name}, empty", argv, 1, ("standard input",))
        for what, given in (("binary", bytes(range(256))), ("not UTF-8", b"q\tcaf\xe9\n")):
            yield Case(
                f"standard input: {name}, {what}", argv, 1, ("standard input:",), stdin=given
            )
    for name in ("score", "keywords", "evaluate", "simulate", "train"):
        yield Case(
            f"standard input: {name}, closed and not needed",
            WHOLE[name],
            0,
            stdin="closed",
            makes=MAKES,
        )


# -- what is written --------------------------------------------------------------------------

OUTPUT_FILES = {
    "encode -o": (".npy", ("encode", "lstm", "texts.txt", "-o", "X", "--force")),
    "rank -o": (".txt", ("rank", "lstm", "queries.tsv", "docs.tsv", "-o", "X", "--force")),
    "plot-gates -o": (".svg", ("plot-gates", "lstm", "hotels in rome", "-o", "X", "--force")),
    "plot-gates --output-numbers": (
        ".npz",
        (
            "plot-gates",
            "lstm",
            "hotels in rome",
            "-o",
            "new.svg",
            "--output-numbers",
            "X",
            "--force",
        ),
    ),
    "plot-loss -o": (".svg", ("plot-loss", "lstm", "-o", "X", "--force")),
    "topics -o": (
        ".svg",
        ("topics", "lstm", "queries.tsv", "--truth", "truth.jsonl", "-o", "X", "--force"),
    ),
    "report OUT": (".html", ("report", "lstm", "queries.tsv", "-o", "X", "--force")),
    "export --to page": (".html", ("export", "sums", "-o", "X", "--to", "page", "--force")),
}
OUTPUT_FOLDERS = {
    "train -o": (*TRAIN, "-o", "X"),
    "simulate OUT": ("simulate", "-o", "X", *SMALL_LOG),
    "data onet OUT": ("data", "onet", "onet", "-o", "X", *ONET),
    "compare -o": (*COMPARE, "-o", "X"),
    "vectors convert OUT": ("vectors", "convert", "glove.txt", "-o", "X"),
    "vectors train -o": (*WHOLE["vectors train"][:3], "-o", "X", *WHOLE["vectors train"][5:]),
    "sif -o": ("sif", "vectors", "texts.txt", "-o", "X"),
    "export --to opensearch": ("export", "index8", "-o", "X", "--to", "opensearch"),
    "export --to elasticsearch": ("export", "sums", "-o", "X", "--to", "elasticsearch"),
}


def _made(name, mode=0o644, link=False):
    """A check that the file was written whole: not empty, with its mode, a link still one."""

    def check(outcome):
        path = outcome.box / name
        if link and not path.is_symlink():
            return f"{name} is no symlink any longer"
        about = path.stat()
        if not about.st_size:
            return f"{name} is empty"
        if stat.S_IMODE(about.st_mode) != mode:
            return f"{name} has the mode {stat.S_IMODE(about.st_mode):o}, not {mode:o}"
        return None

    return check


def outputs():
    for label, (suffix, argv) in OUTPUT_FILES.items():
        out, other = f"out{suffix}", f"other{suffix}"
        # A figure may be written where only its numbers fail.
        also = ("new.svg",) if label == "plot-gates --output-numbers" else ()

        def private(box, out=out):
            (box / out).write_text("old")
            (box / out).chmod(0o600)

        def linked(box, out=out, other=other):
            (box / other).write_text("old")
            (box / other).chmod(0o640)
            (box / out).symlink_to(other)

        def far_link(box, out=out, other=other):
            (box / "nothing" / other).write_text("old")
            (box / out).symlink_to(f"nothing/{other}")

        good = {
            "new": (None, (out,), _made(out)),
            "in a new folder": (None, ("deep", "deep/*"), _made(f"deep/er/{out}")),
            "over a private file": (private, (out,), _made(out, 0o600)),
            "through a symlink": (linked, (other,), _made(out, 0o640, link=True)),
            "through a symlink to another folder": (
                far_link, (f"nothing/{other}",), _made(out, link=True),
            ),
            "through a dangling symlink": (
                lambda box, out=out, other=other: (box / out).symlink_to(other),
                (other,), _made(out, link=True),
            ),
        }  # fmt: skip
        for what, (setup, makes, check) in good.items():
            value = f"deep/er/{out}" if what == "in a new folder" else out
            yield Case(
                f"outputs: {label}, {what}", _in(argv, value), 0,
                setup=setup, makes=(*makes, *also), check=check,
            )  # fmt: skip
        bad = {
            "a folder": (out, lambda box, out=out: (box / out).mkdir()),
            "a symlink to a folder": (out, lambda box, out=out: (box / out).symlink_to("nothing")),
            "a symlink loop": (out, lambda box, out=out: (box / out).symlink_to(out)),
            "below a file": (f"file/{out}", None),
            "below a loop": (f"loop/{out}", None),
            "a long name": (LONG + suffix, None),
            "an empty name": ("", None),
            "this folder": (".", None),
            "the folder above": ("..", None),
        }
        for what, (value, setup) in bad.items():
            says = () if len(value) > 99 or len(value) < 3 else (value,)
            yield Case(
                f"outputs: {label}, {what}", _in(argv, value), REFUSED, says,
                setup=setup, makes=also,
            )  # fmt: skip
        for what, value in (
            ("not UTF-8", NOT_UTF8 + suffix.encode()),
            ("escapes in its name", ESCAPES + suffix),
        ):
            makes = (_printable(value), *also)
            yield Case(f"outputs: {label}, {what}", _in(argv, value), ANY, makes=makes)
    for label, argv in OUTPUT_FOLDERS.items():
        makes = ("out", "out/*")
        yield Case(f"outputs: {label}, new", _in(argv, "out"), 0, makes=makes)
        yield Case(f"outputs: {label}, in a new folder", _in(argv, "deep/out"), 0, makes=("deep*",))
        yield Case(
            f"outputs: {label}, an empty folder", _in(argv, "nothing"), 0, makes=("nothing/*",)
        )
        yield Case(f"outputs: {label}, a slash at its end", _in(argv, "out/"), 0, makes=makes)
        yield Case(
            f"outputs: {label}, a symlink to an empty folder", _in(argv, "to-folder"), (0, 1),
            makes=("nothing/*",),
        )  # fmt: skip
        yield Case(
            f"outputs: {label}, a dangling symlink", _in(argv, "dangling"), (0, 1),
            makes=("nowhere", "nowhere/*"),
        )  # fmt: skip
        for what, value in {
            "a file": "file",
            "a symlink loop": "loop",
            "below a file": "file/out",
            "a folder of notes": "notes",
            "a folder of data": "data",
            "a long name": LONG,
            "an empty name": "",
            "this folder": ".",
            "the folder above": "..",
        }.items():
            says = () if len(value) > 99 or len(value) < 3 else (value,)
            yield Case(f"outputs: {label}, {what}", _in(argv, value), REFUSED, says)
        yield Case(
            f"outputs: {label}, a FIFO", _in(argv, "fifo"), 1, ("fifo",),
            setup=lambda box: os.mkfifo(box / "fifo"),
        )  # fmt: skip
        for what, value in (("not UTF-8", NOT_UTF8), ("escapes in its name", ESCAPES)):
            makes = (_printable(value), f"{_printable(value)}/*")
            yield Case(f"outputs: {label}, {what}", _in(argv, value), ANY, makes=makes)
    for label in ("train -o", "compare -o"):
        yield Case(
            f"outputs: {label}, not UTF-8, said before any work", _in(OUTPUT_FOLDERS[label], NOT_UTF8), ANY,  # noqa: E501
            makes=(_printable(NOT_UTF8), f"{_printable(NOT_UTF8)}/*"),
            check=lambda outcome: "found only after training" if outcome.code and "epoch" in outcome.stderr else None,  # noqa: E501
        )  # fmt: skip


def devices():
    def node(name, minor):
        return lambda box: os.mknod(box / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))

    for label, (suffix, argv) in OUTPUT_FILES.items():
        also = ("new.svg",) if label == "plot-gates --output-numbers" else ()
        for what, minor, code, says in (
            ("null", 3, 0, ()),
            ("full", 7, 1, (f"full{suffix}", "no space")),
        ):
            name = f"{what}{suffix}"
            yield Case(
                f"devices: {label}, {what}", _in(argv, name), code, says,
                setup=node(name, minor), makes=also,
            )  # fmt: skip
            yield Case(
                f"devices: {label}, {what} through a symlink", _in(argv, f"link{suffix}"), code,
                says[1:],
                setup=_both(node(name, minor), _link(f"link{suffix}", name)), makes=also,
            )  # fmt: skip
        name = f"fifo{suffix}"
        yield Case(
            f"devices: {label}, FIFO", _in(argv, name), 0,
            setup=lambda box, name=name: os.mkfifo(box / name),
            drains=(name,), makes=also,
            check=lambda outcome, name=name: None if outcome.drained[name] else "nothing came",
        )  # fmt: skip
    for label, argv in OUTPUT_FOLDERS.items():
        for what, minor in (("null", 3), ("full", 7)):
            yield Case(
                f"devices: {label}, {what}", _in(argv, what), 1, (what,), setup=node(what, minor)
            )
            more = ("--force",) if "compare" not in label else ("--force", "--json")
            yield Case(
                f"devices: {label}, {what}, with force", (*_in(argv, what), *more), 1, (what,),
                setup=node(what, minor),
            )  # fmt: skip


def _both(*setups):
    def setup(box):
        for one in setups:
            one(box)

    return setup


def _link(name, target):
    return lambda box: (box / name).symlink_to(target)


def output_permissions():
    def read_only(box):
        (box / "nothing").chmod(0o500)

    def hidden(box):
        (box / "nothing").chmod(0)

    for label, (suffix, argv) in OUTPUT_FILES.items():
        also = ("new.svg",) if label == "plot-gates --output-numbers" else ()
        for what, setup in (("read-only", read_only), ("closed", hidden)):
            yield Case(
                f"permissions: {label}, a {what} folder", _in(argv, f"nothing/out{suffix}"), 1,
                ("permission denied", "nothing/out"),
                setup=setup, makes=also, user=True,
            )  # fmt: skip
    for label, argv in OUTPUT_FOLDERS.items():
        for what, setup in (("read-only", read_only), ("closed", hidden)):
            for place in ("nothing/out", "nothing"):
                yield Case(
                    f"permissions: {label}, {place}, a {what} folder", _in(argv, place), REFUSED,
                    ("nothing",),
                    setup=setup, user=True,
                )  # fmt: skip
    yield Case(
        "permissions: train --force, a read-only model", (*TRAIN, "-o", "rnn", "--force"), 1,
        ("permission denied",), setup=lambda box: (box / "rnn").chmod(0o500), user=True,
    )  # fmt: skip
    yield Case(
        "permissions: train --resume, closed checkpoints",
        ("train", "log.tsv", *_SAME, "-o", "training", "--resume"), 1,
        ("permission denied",),
        setup=lambda box: (box / "training/checkpoints").chmod(0), user=True,
    )  # fmt: skip


# -- folders of trainings ---------------------------------------------------------------------

_SAME = (
    "--cells",
    "3",
    "--epochs",
    "2",
    "--batch-size",
    "4",
    "--n-negatives",
    "1",
    "--dev",
    "judged",
)
RESUME = ("train", "log.tsv", *_SAME, "-o", "training", "--resume")


def train_places():
    for name in ("README.md", "vocabulary.txt", "words.txt", "history.jsonl", "model.safetensors"):

        def own(box, name=name):
            (box / "nothing" / name).write_text("my own\n")

        for more in ((), ("--resume",)):
            what = f"train, a folder with a {name} of one's own {' '.join(more)}".rstrip()
            yield Case(
                f"places: {what}", (*TRAIN, "-o", "nothing", *more), 1, ("nothing",), setup=own
            )

    def beside(box):
        (box / "rnn" / "letter.txt").write_text("my own\n")

    yield Case("places: train, a model is there", (*TRAIN, "-o", "rnn"), 1, ("rnn", "--force"))
    yield Case(
        "places: train --force keeps what is not its own", (*TRAIN, "-o", "rnn", "--force"), (0, 1),
        setup=beside, makes=tuple(f"rnn/{name}" for name in _MODEL_FILES),
    )  # fmt: skip
    yield Case("places: train --force", (*TRAIN, "-o", "rnn", "--force"), 0, makes=("rnn/*",))
    yield Case(
        "places: train --resume, another's model", (*TRAIN, "-o", "rnn", "--resume"), 1, ("rnn",)
    )
    yield Case(
        "places: train into the folder of its log", ("train", "data/pairs.tsv", *QUICK, "-o", "data"),  # noqa: E501
        1, ("data",),
    )  # fmt: skip
    yield Case(
        "places: a training is there",
        ("train", "log.tsv", *_SAME, "-o", "training"),
        ANY,
        makes=("training*",),
    )
    yield Case("places: train --resume", RESUME, 0, makes=("training/*",))
    yield Case("places: resume with other settings", (*RESUME, "--cells", "4"), 1, ("cells",))
    yield Case(
        "places: resume with another log",
        tuple("log.jsonl" if p == "log.tsv" else p for p in RESUME),
        ANY,
        makes=("training/*",),
    )
    yield Case(
        "places: resume with another dev set",
        tuple("data/test" if p == "judged" else p for p in RESUME),
        1,
        ("dev",),
    )
    yield Case(
        "places: resume without the dev set",
        RESUME[: RESUME.index("--dev")] + RESUME[-3:],
        1,
        ("dev",),
    )

    def no_relevant(box):
        (box / "judged/qrels.txt").write_text("q0 0 d0 0\n")

    yield Case(
        "places: a dev set without relevant titles", (*TRAIN, "-o", "new", "--dev", "judged"), 1,
        ("judged",), setup=no_relevant,
        check=lambda outcome: "found only after training" if "epoch" in outcome.stderr else None,
    )  # fmt: skip


_MODEL_FILES = (
    *("config.json", "model.safetensors", "vocabulary.txt", "words.txt", "README.md"),
    *("history.jsonl", "modules.json", "config_sentence_transformers.json"),
)  # fmt: skip


# -- standard streams -------------------------------------------------------------------------

PRINTS = {
    **{name: WHOLE[name] for name in ("score", "rank", "evaluate", "keywords", "topics")},
    **{name: WHOLE[name] for name in ("gradcheck", "simulate", "data onet", "train", "compare")},
    **{name: WHOLE[name] for name in ("vectors convert", "vectors train", "sif")},
    "vectors show": WHOLE["vectors show"],
    "vectors show, facts": ("vectors", "show", "glove.txt"),
    "sts": WHOLE["sts"],
    "sts --json": (*WHOLE["sts"], "--json"),
    "score --json": (*WHOLE["score"], "--json"),
    "evaluate --json": (*WHOLE["evaluate"], "--json"),
    "keywords --json": (*WHOLE["keywords"], "--json"),
    "rank --table": (*WHOLE["rank"], "--table"),
    "encode -o -": ("encode", "lstm", "texts.txt", "-o", "-"),
    "compare --models list": ("compare", "data", "--models", "list"),
    "--help": ("--help",),
    "train --help": ("train", "--help"),
    "--version": ("--version",),
}


# What these print is not what they are called for.
_ONLY_SAY_SO = (
    *("simulate", "data onet", "train", "vectors convert", "vectors train", "sif"),
    *("--help", "train --help", "--version"),
)


def streams():
    for name, argv in PRINTS.items():
        for what, code, says in (
            ("closed", (0, 1) if name in _ONLY_SAY_SO else 1, ("standard output",)),
            ("full", 1, ("standard output", "no space")),
            ("broken", BROKEN_PIPE, ()),
        ):
            yield Case(
                f"streams: {name}, stdout {what}", argv, code, says, stdout=what, makes=MAKES
            )
        yield Case(f"streams: {name}, stderr closed", argv, 0, stderr="closed", makes=MAKES)
    for what in ("closed", "full", "broken"):
        for name, argv in (
            ("a mistake", ("score", "nowhere", "a", "b")),
            ("wrong usage", ("score",)),
        ):
            code = 1 if name == "a mistake" else 2
            code = code if what == "closed" else (code, 1, 120, 141)
            yield Case(f"streams: {name}, stderr {what}", argv, code, stderr=what)
        for name in ("encode", "train"):
            yield Case(
                f"streams: {name}, stderr {what}, now and then a note",
                WHOLE[name],
                (0, 1, 120, 141),
                stderr=what,
                makes=MAKES,
            )
    for code, argv in (
        (1, WHOLE["score"]),
        (1, WHOLE["plot-loss"]),
        (1, ("score", "no", "a", "b")),
    ):
        yield Case(
            f"streams: all closed, {argv[1]} of {argv[0]}", argv, code,
            stdin="closed", stdout="closed", stderr="closed", makes=MAKES,
        )  # fmt: skip
    for name in ("score", "rank", "--help", "encode -o -"):
        closed = (0, 1) if name in _ONLY_SAY_SO else 1
        for what, code in (("closed", closed), ("full", 1), ("broken", BROKEN_PIPE)):
            yield Case(
                f"streams: {name}, stdout {what}, a process of its own", PRINTS[name], code,
                stdout=what, own_process=True,
            )  # fmt: skip


# -- damaged folders --------------------------------------------------------------------------


def _remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _instead(make):
    def damage(path):
        _remove(path)
        make(path)

    return damage


def _zero(path):
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


DAMAGES = {
    "missing": _remove,
    "empty": lambda path: path.write_bytes(b""),
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 9),
    "a folder": _instead(lambda path: path.mkdir()),
    "a FIFO": _instead(os.mkfifo),
    "a symlink loop": _instead(lambda path: path.symlink_to(path.name)),
    "UTF-16": lambda path: path.write_bytes("something".encode("utf-16")),
}


def _damaged(folder, name, damage):
    return lambda box: damage(box / folder / name)


def damaged_models():
    """Of a model of today only what it needs is read; the rest may be what it likes."""
    score = ("score", "rnn", "hotels in rome", "Rome hotels")
    pair = np.zeros(1, np.int64), np.zeros(1, np.int64)
    (cosine,) = make_model("rnn").score_pairs([score[2]], [score[3]], *pair)
    expected = f"{cosine:.6f}\t{score[3]}\n".encode()
    kinds = dict(DAMAGES)
    if os.getuid() == 0:
        kinds["/dev/zero"] = _instead(_zero)
    for name in _MODEL_FILES:
        for what, damage in kinds.items():
            weights = name == "model.safetensors"
            yield Case(
                f"models: {name} {what}", score, 1 if weights else (0, 1), ("rnn",),
                setup=_damaged("rnn", name, damage),
                check=lambda outcome: (
                    "another score" if outcome.code == 0 and outcome.stdout != expected else None
                ),
            )  # fmt: skip
    for command in ("evaluate", "report", "topics", "train", "compare"):
        argv = {
            "evaluate": ("evaluate", "rnn", "judged"),
            "report": ("report", "rnn", "queries.tsv", "-o", "new.html"),
            "topics": ("topics", "rnn", "queries.tsv"),
            "train": (*TRAIN, "-o", "rnn", "--resume"),
            "compare": (*COMPARE, "-o", "new", "--compare-with", "rnn"),
        }[command]
        for what in ("missing", "cut short", "a folder", "a FIFO"):
            yield Case(
                f"models: model.safetensors {what}, {command}", argv, 1, ("rnn",),
                setup=_damaged("rnn", "model.safetensors", DAMAGES[what]),
            )  # fmt: skip


def damaged_vectors():
    """Every file of a folder of word vectors counts, and all that is not of text is checked."""
    for name in ("vectors.json", "words.txt", "vectors.npy", "counts.txt"):
        for what, damage in DAMAGES.items():
            for command, argv in {
                "show": ("vectors", "show", "vectors"),
                "sif": WHOLE["sif"],
            }.items():
                yield Case(
                    f"vectors: {name} {what}, {command}", argv, 1, ("vectors",),
                    setup=_damaged("vectors", name, damage),
                )  # fmt: skip
    for what, damage in DAMAGES.items():
        for name in ("glove.txt", "glove.txt.gz", "word2vec.txt", "word2vec.bin"):
            if what == "a FIFO":  # is read as a stream
                continue
            # Lines that are there, or numbers that are shorter, are vectors.
            still_good = what == "cut short" and name in ("glove.txt", "word2vec.txt")
            yield Case(
                f"vectors: {name} {what}", ("vectors", "convert", name, "-o", "new"),
                0 if still_good else 1, (name,), setup=_damaged(".", name, damage), makes=MAKES,
            )  # fmt: skip
    for what, damage in DAMAGES.items():
        if what not in ("cut short", "a FIFO"):
            yield Case(
                f"vectors: scores {what}", ("sts", "weighted", "sts/0.tsv"), 1, ("0.tsv",),
                setup=_damaged("sts", "0.tsv", damage),
            )  # fmt: skip
    for more, code in (((), 1), (("--force",), 0)):
        yield Case(
            f"vectors: a letter beside them {' '.join(more)}".rstrip(),
            ("vectors", "convert", "glove.txt", "-o", "vectors", *more),
            code,
            ("vectors", "--force"),
            setup=lambda box: (box / "vectors/letter.txt").write_text("my own"),
            makes=("vectors/vectors.*", "vectors/words.txt", "vectors/counts.txt") if more else (),
        )
    for name in ("vectors convert", "vectors train"):
        argv = tuple("vectors" if part == "new" else part for part in WHOLE[name])
        for more, code in (((), 1), (("--force",), 0)):
            yield Case(
                f"vectors: {name} over vectors {' '.join(more)}".rstrip(), (*argv, *more), code,
                ("vectors", "--force"), makes=("vectors/*",) if more else (),
            )  # fmt: skip
    again = tuple("halves" if part == "new" else part for part in WHOLE["vectors convert"])
    again = tuple("vectors" if part == "glove.txt" else part for part in again)
    yield Case(
        "vectors: float16 of vectors",
        (*again, "--dtype", "float16", "--force"),
        0,
        makes=("halves/*",),
    )
    yield Case(
        "vectors: onto themselves",
        ("vectors", "convert", "vectors", "-o", "vectors", "--force"),
        1,
        ("vectors", "is read by the command"),
    )
    yield Case(
        "vectors: sif over vectors",
        ("sif", "glove.txt", "texts.txt", "-o", "vectors"),
        1,
        ("vectors",),
    )
    yield Case(
        "vectors: sif over a model",
        ("sif", "vectors", "texts.txt", "-o", "rnn"),
        1,
        ("rnn", "--force"),
    )
    yield Case(
        "vectors: sif --force",
        ("sif", "vectors", "texts.txt", "-o", "rnn", "--force"),
        0,
        makes=("rnn/*",),
    )
    yield Case(
        "vectors: sif over what it reads",
        ("sif", "vectors", "texts.txt", "-o", "vectors", "--force"),
        1,
        ("vectors",),
    )


def odd_models():
    """Models whose checksums are right and whose contents are not."""
    from reliability.model_format import CRAFTED, write_crafted

    for name in CRAFTED:
        yield Case(
            f"crafted: {name}", ("score", "crafted", "hotels", "rome"), 1, ("crafted",),
            setup=lambda box, name=name: write_crafted(name, box / "crafted"),
        )  # fmt: skip


def checkpoints():
    def in_folder(change):
        return lambda box: change(box / "training" / "checkpoints")

    def all_of(change):
        def setup(box):
            for path in sorted((box / "training" / "checkpoints").iterdir()):
                change(path)

        return setup

    def elsewhere(folder):
        folder.rename(folder.parents[1] / "elsewhere")
        folder.symlink_to("../elsewhere")

    def identity(path):
        from reliability.model_format import rewrite_checkpoint

        rewrite_checkpoint(path, lambda arrays, progress: progress.pop("identity"))

    for what, damage in DAMAGES.items():
        yield Case(
            f"checkpoints: all {what}", RESUME, (0, 1), ("training",),
            setup=all_of(damage), makes=("training/*",),
        )  # fmt: skip
    for what in ("a FIFO", "binary", "a symlink loop"):
        yield Case(
            f"checkpoints: the folder {what}", RESUME, (0, 1), ("training",), makes=("training/*",),
            setup=in_folder(_instead({"a FIFO": os.mkfifo, "binary": lambda p: p.write_bytes(b"\0"), "a symlink loop": lambda p: p.symlink_to(p)}[what])),  # noqa: E501
        )  # fmt: skip
    for more in (("--resume",), ("--force",)):
        argv = tuple(part for part in RESUME if part != "--resume") + more
        yield Case(
            f"checkpoints: the folder a symlink, {more[0]}", argv, (0, 1), ("checkpoints",),
            setup=in_folder(elsewhere), makes=("training/*", "elsewhere/*"),
        )  # fmt: skip
    yield Case(
        "checkpoints: without identity", RESUME, (0, 1), ("training",),
        setup=all_of(identity), makes=("training/*",),
    )  # fmt: skip


def histories():
    good = HISTORY[0]
    bad = {
        "400 digits": json.dumps(good | {"loss": 0}).replace('"loss": 0', '"loss": ' + "9" * 400),
        "5,000 digits": json.dumps(good | {"loss": 0}).replace(
            '"loss": 0', '"loss": ' + "9" * 5000
        ),
        "an epoch of 400 digits": json.dumps(good | {"epoch": 0}).replace(
            '"epoch": 0', '"epoch": ' + "9" * 400
        ),
        "nested deeply": "[" * 100_000,
        "NaN": json.dumps(good | {"loss": float("nan")}),
        "a list": "[]",
        "no loss": json.dumps({"epoch": 1}),
        "a long text for a loss": json.dumps(good | {"loss": "x" * 5000}),
        "dev of 1e400": json.dumps(good | {"dev": {"ndcg@1": 0}}).replace(
            '"ndcg@1": 0', '"ndcg@1": 1e400'
        ),
        "dev a list": json.dumps(good | {"dev": [1]}),
        "not UTF-8": None,
    }
    for what, text in bad.items():
        raw = b'{"epoch": 1, "caf\xe9": 2}' if text is None else text.encode()
        for command, argv in (
            ("plot-loss", ("plot-loss", "epochs.jsonl", "-o", "new.svg")),
            ("report", ("report", "rnn", "queries.tsv", "-o", "new.html")),
        ):
            place = "epochs.jsonl" if command == "plot-loss" else "rnn/history.jsonl"
            # What a model's weights file holds is read instead of this copy.
            code = 1 if command == "plot-loss" else (0, 1)
            yield Case(
                f"histories: {command}, {what}", argv, code, (place,),
                setup=lambda box, raw=raw, place=place: (box / place).write_bytes(raw + b"\n"),
                makes=("new.html",) if command == "report" else (),
            )  # fmt: skip


def comparisons():
    def line_with(**changed):
        def damage(path):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            text = "".join(json.dumps(line | changed) + "\n" for line in lines)
            path.write_text(text)

        return damage

    def without(key):
        def damage(path):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            text = "".join(
                json.dumps({k: v for k, v in line.items() if k != key}) + "\n" for line in lines
            )
            path.write_text(text)

        return damage

    damages = {
        **DAMAGES,
        **{
            f"without {key}": without(key)
            for key in ("row", "seed", "settings", "run", "dev", "test")
        },
        "a list": lambda path: path.write_text("[]\n"),
        "a number": lambda path: path.write_text("1\n"),
        "nested deeply": lambda path: path.write_text("[" * 100_000),
        "not UTF-8": lambda path: path.write_bytes(b'{"row": "caf\xe9"}\n'),
        "huge number": lambda path: path.write_text('{"row": ' + "9" * 5000 + "}\n"),
        "row null": line_with(row=None),
        "row a list": line_with(row=["random"]),
        "row unknown": line_with(row="nobody"),
        "row a path": line_with(row="../../victim"),
        "seed a text": line_with(seed="0"),
        "seed a path": line_with(seed="0/../../../victim"),
        "settings null": line_with(settings=None),
        "dev a text": line_with(dev="high"),
        "dev NaN": line_with(dev=[float("nan")] * 3),
        "test a text": line_with(test="high"),
        "seconds a text": line_with(seconds="long"),
        "parameters a list": line_with(parameters=[]),
        "run a number": line_with(run=7),
    }

    def victims(box):
        for name in ("victim", "victim.run"):
            (box / name).write_text("must stay")
        (box / "victims").mkdir()
        (box / "victims" / "letter").write_text("must stay")
        for folder in ("runs", "models"):
            for name in ("random.seed0", "unigram.seed0"):
                (box / "compared" / folder / name).mkdir(parents=True)

    other = (*("--models", "random,unigram"), "--seeds", "1", "-o", "compared")
    for what, damage in damages.items():
        for more in ((), ("--force",)):
            setup = _both(victims, _damaged("compared", "results.jsonl", damage))
            yield Case(
                f"comparisons: results {what} {' '.join(more)}".rstrip(),
                (*COMPARE, "-o", "compared", *more),
                (0, 1),
                ("compared",),
                setup=setup,
                makes=("compared/*",),
            )
    for what in ("seed a path", "row a path", "seed a text", "row unknown"):
        setup = _both(
            victims,
            _damaged("compared", "results.jsonl", damages[what]),
            lambda box: (box / "data/test/docs.tsv").write_text(
                (box / "data/test/docs.tsv").read_text().upper().replace("D", "d")
            ),
        )
        yield Case(
            f"comparisons: other data, {what} --force",
            ("compare", "data", *other, "--force"),
            (0, 1),
            setup=setup,
            makes=("compared/*",),
        )
    for name in ("comparison.json", "runs", "runs/random.seed0.run"):
        for what, damage in DAMAGES.items():
            if name == "runs" and what in ("empty", "cut short", "binary", "UTF-16"):
                continue
            for more in ((), ("--force",)):
                yield Case(
                    f"comparisons: {name} {what} {' '.join(more)}".rstrip(),
                    (*COMPARE, "-o", "compared", *more),
                    (0, 1),
                    ("compared",),
                    setup=_damaged("compared", name, damage),
                    makes=("compared/*",),
                )
    yield Case(
        "comparisons: other data",
        ("compare", "other", *other),
        1,
        ("compared", "--force"),
        setup=_other_data,
    )
    yield Case(
        "comparisons: other data --force",
        ("compare", "other", *other, "--force"),
        0,
        setup=_other_data,
        makes=("compared/*",),
    )
    yield Case("comparisons: again", (*COMPARE, "-o", "compared"), 0, makes=("compared/*",))


def _other_data(box):
    shutil.copytree(box / "data", box / "other")
    (box / "other/pairs.tsv").write_text("a b\tc d\n")


def skip_thought():
    """One row that cannot run must not end the others."""
    for name in ("dictionary.txt", "utable.npy", "btable.npy", "uni_skip.npz", "bi_skip.npz"):
        for what, damage in DAMAGES.items():
            yield Case(
                f"skip-thought: {name} {what}",
                ("compare", "data", "--models", "random,skip-thought", "--seeds", "1", "-o", "new"),
                0,
                setup=_damaged("skip-thoughts", name, damage),
                makes=MAKES,
                check=None if (name, what) == ("dictionary.txt", "cut short") else _says_missing,
            )


def _says_missing(outcome):
    return (
        None if b"missing: skip-thought: " in outcome.stdout else "it does not say what is missing"
    )


# -- what is printed --------------------------------------------------------------------------


def what_is_printed():
    def plain(outcome):
        bad = [byte for byte in outcome.stdout if byte < 32 and byte not in b"\n\t"]
        return f"control characters on stdout: {bytes(bad[:4])!r}" if bad else None

    text = f"hotels in Rome {ESCAPES}"

    def with_escapes(box):
        for name in ("queries.tsv", "docs.tsv"):
            (box / name).write_text(f"x1\t{text}\nx2\thotels\n")
        (box / "log.tsv").write_text(f"{text}\tb\nc\td\ne\tf\n")
        rows = (box / "glove.txt").read_text()
        (box / "odd.txt").write_text(f"{rows}{ESCAPES} 1 2 3 4\n")

    for name, argv in {
        "score": ("score", "lstm", text, text),
        "keywords": ("keywords", "lstm", text),
        "keywords --markdown": ("keywords", "lstm", text, "--markdown"),
        "rank --table": (*WHOLE["rank"], "--table"),
        "rank": WHOLE["rank"],
        "topics": WHOLE["topics"],
        "topics --per-query": (*WHOLE["topics"], "--per-query"),
        "train": WHOLE["train"],
        "vectors convert": ("vectors", "convert", "odd.txt", "-o", "new"),
        "vectors show": ("vectors", "show", "odd.txt"),
        "vectors show WORD": ("vectors", "show", "odd.txt", "hotels"),
        "sif": ("sif", "odd.txt", "queries.tsv", "-o", "new"),
        "plot-gates": ("plot-gates", "lstm", text, "-o", "new.svg"),
        "score --json": ("score", "lstm", text, text, "--json"),
    }.items():
        yield Case(
            f"printed: {name}, escapes in a text", argv, 0,
            setup=with_escapes, makes=MAKES, check=plain,
        )  # fmt: skip

    def named(name):
        def setup(box):
            (box / "rnn").rename(box / name)

        return setup

    for label, argv in {
        "keywords": ("keywords", "X", "hotels xyzzy"),
        "compare": (*COMPARE, "-o", "new", "--compare-with", "X"),
        "report": ("report", "X", "queries.tsv", "-o", "new.html"),
        "plot-loss": ("plot-loss", "X", "-o", "new.svg"),
    }.items():
        yield Case(
            f"printed: {label}, escapes in a model's name", _in(argv, ESCAPES), ANY,
            setup=named(ESCAPES), makes=MAKES, check=plain,
        )  # fmt: skip


def long_messages():
    long = "w" * 5000

    def lines(name, text):
        return lambda box: (box / name).write_text(text)

    for what, argv, setup in (
        ("a query id", WHOLE["rank"], lines("queries.tsv", f"{long} x\ta\n")),
        ("two equal ids", WHOLE["rank"], lines("queries.tsv", f"{long}\ta\n{long}\tb\n")),
        ("a text that is empty", WHOLE["rank"], lines("queries.tsv", f"{long}\t \n")),
        (
            "an unknown query",
            ("evaluate", "run.txt", "judged"),
            lines("judged/qrels.txt", f"{long} 0 d0 1\n"),
        ),
        (
            "an unknown title",
            ("evaluate", "run.txt", "judged"),
            lines("judged/qrels.txt", f"q0 0 {long} 1\n"),
        ),
        (
            "a grade",
            ("evaluate", "run.txt", "judged"),
            lines("judged/qrels.txt", f"q0 0 d0 {long}\n"),
        ),
        (
            "a document twice",
            ("evaluate", "run.txt", "judged"),
            lines("run.txt", f"q0 Q0 {long} 1 1 t\n" * 2),
        ),
        ("a score", ("evaluate", "run.txt", "judged"), lines("run.txt", f"q0 Q0 d0 1 {long} t\n")),
        ("a click count", WHOLE["train"], lines("log.tsv", f"a\tb\t{long}\n")),
        (
            "a keyword",
            (*WHOLE["topics"], "--truth", "truth.jsonl"),
            lines(
                "truth.jsonl",
                json.dumps({"text": "a", "side": "query", "topic": "t", "keywords": [long]}) + "\n",
            ),
        ),
        (
            "a side",
            (*WHOLE["topics"], "--truth", "truth.jsonl"),
            lines(
                "truth.jsonl",
                json.dumps({"text": "a", "side": long, "topic": "t", "keywords": []}) + "\n",
            ),
        ),
        (
            "a query without truth",
            (*WHOLE["topics"], "--truth", "truth.jsonl"),
            lines("queries.tsv", f"q1\t{long}\n"),
        ),
        (
            "an occupation",
            WHOLE["data onet"],
            lines(
                "onet/Alternate Titles.txt",
                f"O*NET-SOC Code\tAlternate Title\tShort Title\tSource(s)\n{long}\ta\tb\tc\n",
            ),
        ),
        ("a row", (*COMPARE, "-o", "new", "--models", long), None),
        ("a reference", (*COMPARE, "-o", "new", "--reference", long), None),
    ):
        yield Case(f"long: {what} of 5,000 letters", argv, 1, setup=setup)
    for what, name in (("deep", "/".join(["d" * 90] * 5)), ("long", "d" * 250)):
        yield Case(f"long: a {what} path to a model", ("score", name, "a", "b"), 1)
        yield Case(f"long: a {what} path to a log", ("train", name, *QUICK, "-o", "new"), 1)
    words = 60_000 * "w"
    for name, argv in {
        "score": ("score", "lstm", words, "rome"),
        "keywords": ("keywords", "lstm", f"{words} a"),
        "encode": WHOLE["encode"],
        "train": WHOLE["train"],
    }.items():
        yield Case(
            f"long: {name}, a word of 60,000 letters", argv, ANY, makes=MAKES,
            setup=_both(lines("texts.txt", words + "\n"), lines("log.tsv", f"{words}\tb\nc\td\ne\tf\n")),  # noqa: E501
        )  # fmt: skip

    def small(outcome):
        path = outcome.box / "new.npz"
        size = path.stat().st_size if path.exists() else 0
        return f"an .npz of {size / 1e6:.0f} MB" if size > 2e6 else None

    yield Case(
        "long: plot-gates --output-numbers, a word of 60,000 letters",
        ("plot-gates", "lstm", f"{words} rome", "-o", "new.svg", "--output-numbers", "new.npz"),
        ANY, makes=MAKES, check=small,
    )  # fmt: skip


def terminals():
    def narrow(outcome):
        # What is drawn over and over, unlike a line that stays, must not be broken up.
        drawn = re.findall(r"\r\x1b\[K([^\r\n]+)(?=\r\x1b)", outcome.terminal)
        if not drawn:
            return "no progress line was drawn"
        widest = max(map(len, drawn))
        return f"a progress line of {widest} columns" if widest > 30 else None

    yield Case(
        "terminals: train, 30 columns", WHOLE["train"], 0,
        stderr="terminal", environment={"COLUMNS": "30"}, makes=MAKES, check=narrow,
    )  # fmt: skip
    for name in ("score", "simulate", "plot-loss"):
        yield Case(
            f"terminals: {name}, stderr a terminal", WHOLE[name], 0, stderr="terminal", makes=MAKES
        )
    for name, argv in {
        "--help": ("--help",),
        "train --help": ("train", "--help"),
        "gradcheck": WHOLE["gradcheck"],
        "score": ("score", "lstm", "caf\u00e9", "\u65e5\u672c"),
        "a mistake": ("score", "nowh\u00e8re", "a", "b"),
        "compare": (*WHOLE["compare"], "--markdown"),
        "report": WHOLE["report"],
    }.items():
        code = 1 if name == "a mistake" else 0
        for columns in ("1", "20", "0", "-5", "abc", "99999"):
            yield Case(
                f"terminals: {name}, {columns} columns", argv, code,
                environment={"COLUMNS": columns}, makes=MAKES,
            )  # fmt: skip
    for name, value in (("C", "C"), ("POSIX", "POSIX"), ("no such", "xx_YY.UTF-8"), ("empty", "")):
        for label, argv, code in (
            ("score", ("score", "lstm", "caf\u00e9", "\u65e5\u672c"), 0),
            ("a mistake", ("score", "nowh\u00e8re", "a", "b"), 1),
        ):
            yield Case(
                f"terminals: {label}, locale {name}", argv, code,
                environment={"LC_ALL": value, "LANG": value}, own_process=True,
            )  # fmt: skip
    for coding in ("ascii", "latin-1"):
        yield Case(
            f"terminals: compare in {coding}", WHOLE["compare"], 0, makes=MAKES, own_process=True,
            environment={"PYTHONIOENCODING": coding, "PYTHONUTF8": "0"},
        )  # fmt: skip
    yield Case(
        "terminals: HOME unset", WHOLE["score"], 0,
        environment={"HOME": "", "XDG_CACHE_HOME": ""}, own_process=True,
        seconds=100,  # it compiles all that it calls
    )  # fmt: skip


# -- signals ----------------------------------------------------------------------------------


def signals():
    for number, codes in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
        for name, argv in WHOLE.items():
            for fraction in (0.1, 0.5, 0.8):
                yield Case(
                    f"signals: {name}, {number.name} after {fraction:.0%}",
                    argv,
                    # A training whose last update is done may as well come to its end.
                    (*codes, 0) if name == "train" and fraction == 0.8 else codes,
                    stop=(number, fraction),
                    # What is done is done; what is not done leaves nothing behind.
                    makes=MAKES,
                )
        for name in (
            "encode",
            "rank QUERIES",
            "evaluate",
            "topics",
            "train",
            "vectors convert",
            "sif",
        ):
            argv = READS_STANDARD_INPUT[name][0]
            yield Case(
                f"signals: {name}, {number.name} before standard input comes",
                argv, codes, stdin="endless", stop=(number, None), makes=MAKES,
            )  # fmt: skip


def start_up():
    # Before the first of them nothing of the package has run.
    for module in ("click", "numpy", "numba", "sentemb.models.sentence_encoder"):
        yield Case(
            f"start-up: SIGINT while {module} is imported", WHOLE["score"], INTERRUPTED,
            start_up=module,
        )  # fmt: skip
    yield Case(
        "start-up: a mistake in a process of its own",
        ("score", "no", "a", "b"),
        1,
        ("no",),
        own_process=True,
    )
    yield Case("start-up: wrong usage in a process of its own", ("score",), 2, own_process=True)
    yield Case("start-up: score in a process of its own", WHOLE["score"], 0, own_process=True)
