"""Cases of the battery: pair models, labelled pairs, re-ranking and completion sets."""

import gzip
import json
import signal

from reliability.battery import Case
from reliability.samples import PAIR_MODELS, write_pair_training

REFUSED = (1, 2)
ANY = (0, 1, 2)
INTERRUPTED = (130, -signal.SIGINT)
TERMINATED = (143, -signal.SIGTERM)
MAKES = ("new", "new/*", "new.*")
NAMES = tuple(PAIR_MODELS)
# Some that differ most: of a convolution in a plane, of a first phase, of words of its own.
SOME = ("arc2", "urae", "deepmatch")
WITH_MAPS = ("arc1", "arc2", "senna")
QUICK = ("--mlp", "3", "--epochs", "1", "--batch-size", "8", "--n-negatives", "2")
# The smallest that each model can be.
SMALL = {
    name: tuple(
        part
        for key, value in settings.items()
        for part in (
            f"--{key.replace('_', '-')}",
            ",".join(map(str, value)) if key == "maps" else str(value),
        )
    )
    for name, settings in PAIR_MODELS.items()
}
VECTORS = ("--vectors", "vectors")


def train(name="arc2", *more, log="log.tsv", small=None):
    """The command that trains a small pair model."""
    own = SMALL[name] if small is None else small
    if name == "urae":
        own = (*own, "--epochs", "3")
    return ("train", log, "-o", "new", "--model", name, *QUICK, *own, *more)


def labels(name="arc2", *more, log="labelled.tsv"):
    """The same from labelled pairs."""
    own = [part for part in QUICK if part not in ("--n-negatives", "2")]
    own += ("--epochs", "3") if name == "urae" else ()
    return ("train", log, "--labels", "-o", "new", "--model", name, *SMALL[name], *own, *more)


# Each command on a pair model, as in the table of all commands.
WHOLE = {
    "train arc2": train(),
    "train --labels": labels("arc1", "--dev", "labelled.tsv"),
    "train deepmatch": train("deepmatch"),
    "train urae": train("urae", "--teacher", "bm25"),
    "score": ("score", "arc2", "hotels in rome", "Rome hotels", "Oslo"),
    "rank": ("rank", "arc2", "queries.tsv", "docs.tsv"),
    "rank --candidates": ("rank", "arc1", "queries.tsv", "docs.tsv", "--candidates", "run.txt"),
    "evaluate": ("evaluate", "arc2", "judged"),
    "evaluate --labels": ("evaluate", "arc2", "labelled.tsv", "--labels"),
    "compare": (
        *("compare", "data", "--models", "random", "--seeds", "1", "-o", "new"),
        *("--compare-with", "arc2"),
    ),
    "report": ("report", "arc2", "queries.tsv", "-o", "new.html"),
    "plot-match": ("plot-match", "arc2", "hotels in rome", "Rome hotels", "-o", "new.svg"),
    "plot-loss": ("plot-loss", "arc2", "-o", "new.svg"),
    "gradcheck": ("gradcheck", "--model", "arc2"),
}


def prepare(folder):
    """What the cases name that the samples do not have."""
    write_pair_training(folder / "pair-training")
    (folder / "dev.tsv").write_text((folder / "labelled.tsv").read_text())
    write_bad_vectors(folder)


def warm_up():
    """Commands that compile all kernels of the cases."""
    yield from WHOLE.values()
    for name in NAMES:
        yield train(name, "--force", "--dropout", "0.5", "--dev", "judged")
    yield train("arc2", "--force", *VECTORS, small=("--maps", "2"))
    yield train("arc1", "--force", *VECTORS, "--train-vectors", small=("--maps", "2"))
    yield train("arc2", "--force", "--gate", "printed", "--optimiser", "sgd")
    yield train("arc2", "--force", "--teacher", "rnn")


BAD_VECTORS = {
    "wrong count": "in 1 2\nrome 1 2 3\n",
    "one number only in one line": "in 1 2\nrome 1\n",
    "NaN": "in 1 nan\nrome 1 2\n",
    "inf": "in 1 inf\nrome 1 2\n",
    "overflow": "in 1 1e39\nrome 1 2\n",
    "no number": "in 1 x\nrome 1 2\n",
    "not UTF-8": b"in 1 2\nr\xff 1 2\n",
    "a header of too many": "5 2\nin 1 2\nrome 1 2\n",
    "a header of too few": "1 2\nin 1 2\nrome 1 2\n",
    "a header of another width": "2 3\nin 1 2\nrome 1 2\n",
    "a huge header": "99999999999 300\nin 1 2\n",
    "words only": "in\nrome\n",
    "empty": "",
    "one empty line": "\n",
    "other words": "xyzzy 1 2\nplugh 3 4\n",
    "NULs": b"\0" * 999,
}


def write_bad_vectors(folder):
    """Files of `BAD_VECTORS`, as text and packed."""
    for k, text in enumerate(BAD_VECTORS.values()):
        data = text if isinstance(text, bytes) else text.encode()
        (folder / f"bad{k}.txt").write_bytes(data)
        (folder / f"bad{k}.txt.gz").write_bytes(gzip.compress(data, mtime=0))
        (folder / f"bad{k}.bin").write_bytes(data)


def cases():
    """All of them, area by area."""
    for area in (usage, shapes, sources, data, damaged, places, logs, commands, signals):
        yield from area()


def usage():
    argv = WHOLE["gradcheck"]
    yield Case("pairs usage: gradcheck --model other", (*argv, "--model", "other"), 2, ("--model",))
    for value in ("1,,2", "1,0"):
        argv = train(small=("--maps", value))
        yield Case(f"pairs usage: --maps {value}", argv, REFUSED, ("maps",))
    for argv, says in (
        (
            ("rank", "arc2", "queries.tsv", "docs.tsv", "--depth", "0", "--candidates", "run.txt"),
            "--depth",
        ),
        (("rank", "arc2", "queries.tsv", "docs.tsv", "--depth", "5"), "--candidates"),
        (("rank", "arc2", "-", "docs.tsv", "--candidates", "-"), "standard input"),
        (("evaluate", "arc2", "labelled.tsv", "--labels", "--per-query"), "--per-query"),
        (("evaluate", "arc2", "labelled.tsv", "--labels", "--metrics", "mrr@1"), "--metrics"),
        (("evaluate", "arc2", "judged", "--threshold", "0"), "--labels"),
        (("plot-match", "arc2", "hotels"), "TITLE"),
    ):
        yield Case(f"pairs usage: {' '.join(argv[:2])} {argv[-2]} {argv[-1]}", argv, 2, (says,))


def shapes():
    """Sizes that go together, and those that do not."""
    for name in NAMES:
        yield Case(f"pairs shapes: {name}", train(name), 0, makes=MAKES)
        yield Case(f"pairs shapes: {name} of labels", labels(name), 0, makes=MAKES)
        yield Case(
            f"pairs shapes: {name}, dropout",
            train(name, "--dropout", "0.9", "--mlp-layers", "2"),
            0,
            makes=MAKES,
        )
        yield Case(
            f"pairs shapes: {name}, one word",
            train(name, "--max-words", "1"),
            ANY,
            ("--max-words",) if name.startswith("arc") else (),
            makes=MAKES,
        )
        yield Case(
            f"pairs shapes: {name}, 1,000 words", train(name, "--max-words", "1000"), 0, makes=MAKES
        )
        yield Case(
            f"pairs shapes: {name}, paper",
            train(name, "--preset", "paper", small=()),
            ANY,
            makes=MAKES,
            seconds=120,
        )
        yield Case(f"pairs shapes: {name}, large", train(name, "--preset", "large"), 2, ("preset",))
        yield Case(
            f"pairs shapes: {name}, printed gate",
            train(name, "--gate", "printed"),
            0 if name == "arc2" else 2,
            ("gate", "out"),
            makes=MAKES,
        )
        yield Case(
            f"pairs shapes: {name}, one tower",
            train(name, "--shared-towers"),
            0 if name in ("arc1", "senna") else 2,
            ("--shared-towers",),
            makes=MAKES,
        )
        yield Case(
            f"pairs shapes: {name}, maps",
            train(name, small=("--maps", "2")),
            0 if name in WITH_MAPS else 2,
            ("maps", "out"),
            makes=MAKES,
        )
        if name in SOME:
            argv = [part for part in train(name) if part not in ("--n-negatives", "2")]
            for option, value in (
                ("--negatives", "batch"),
                ("--n-negatives", "all"),
                ("--optimiser", "nesterov"),
                ("--objective", "softmax"),
            ):
                yield Case(f"pairs shapes: {name}, {option} {value}", (*argv, option, value), 2)
    for name in ("lstm", "bag"):
        argv = ("train", "log.tsv", "-o", "new", "--model", name, "--epochs", "1")
        for more in (
            ("--teacher", "bm25"),
            ("--optimiser", "sgd"),
            ("--objective", "logistic"),
            ("--train-vectors",),
            ("--labels",),
        ):
            yield Case(f"pairs shapes: {name} with {more[0]}", (*argv, *more), 2)
    for what, more, code, says in (
        ("window 9 in 8 words", ("--window", "9", "--max-words", "8"), 1, ("max",)),
        ("6 words for 2 maps", ("--maps", "2,2", "--max-words", "4"), 1, ("words",)),
        ("6 convolutions", ("--maps", "1,1,1,1,1,1"), ANY, ()),
        ("6 convolutions of 9 words", ("--maps", "1,1,1,1,1,1", "--window", "9"), 0, ()),
        (
            "6 convolutions of 9 words in 64",
            ("--maps", "1,1,1,1,1,1", "--window", "9", "--max-words", "64"),
            1,
            ("words",),
        ),
        ("wide maps of long texts", ("--maps", "1000,1000", "--max-words", "1000"), ANY, ()),
        (
            "a wide MLP of long texts",
            ("--maps", "1000", "--max-words", "1000", "--mlp", "1000"),
            ANY,
            (),
        ),
    ):
        for name in ("arc1", "arc2"):
            yield Case(
                f"pairs shapes: {name}, {what}",
                train(name, *more, small=()),
                code,
                says,
                makes=MAKES,
                seconds=120,
            )


def sources():
    """Word vectors, starts and teachers."""
    for name in SOME:
        reads = name != "deepmatch"
        own = ("--maps", "2") if name in WITH_MAPS else ()
        for what, file in (
            ("a folder", "vectors"),
            ("halves", "halves"),
            ("text", "glove.txt"),
            ("packed text", "glove.txt.gz"),
            ("word2vec text", "word2vec.txt"),
            ("binary", "word2vec.bin"),
        ):
            for more in ((), ("--train-vectors",)):
                code = 0 if reads and not (name == "urae" and more) else 1
                yield Case(
                    f"pairs sources: {name}, {what} {' '.join(more)}".rstrip(),
                    train(name, "--vectors", file, *more, small=own),
                    code,
                    (),
                    makes=MAKES,
                )
        yield Case(
            f"pairs sources: {name}, another width",
            train(name, *VECTORS, "--embedding", "5", small=own),
            1 if reads else 2,
            ("embedding",) if reads else (),
        )
        yield Case(
            f"pairs sources: {name}, word features of vectors",
            train(name, *VECTORS, "--word-features", "2", small=own),
            1,
        )
        for start in ("lstm", "shared", "bag", "weighted", "dssm", "clsm", "rnn", *NAMES):
            same = start == name
            code = 0 if same or (start not in NAMES and reads) else 1
            for more in ((), ("--train-vectors",)):
                wanted = 1 if name == "urae" and more else code
                small = SMALL[name] + ("--max-words", "9") if same else own
                argv = list(train(name, "--start-from", start, *more, small=small))
                yield Case(
                    f"pairs sources: {name} from {start} {' '.join(more)}".rstrip(),
                    tuple(argv),
                    wanted,
                    makes=MAKES,
                )
        for start in (
            "nowhere",
            "file",
            "nothing",
            "judged",
            "vectors",
            "pair-training",
            "run.txt",
            "",
        ):
            yield Case(
                f"pairs sources: {name} from {start or 'an empty name'}",
                train(name, "--start-from", start, small=own),
                ANY if start == "pair-training" else REFUSED,
                (start,) if start else (),
                makes=MAKES if start == "pair-training" else (),
            )
        for teacher in ("bm25", "lstm", "weighted", "shared"):
            yield Case(
                f"pairs sources: {name} taught by {teacher}",
                train(name, "--teacher", teacher),
                0,
                makes=MAKES,
            )
    for name in ("lstm", "bag"):
        yield Case(
            f"pairs sources: {name} from a pair model",
            (
                "train",
                "log.tsv",
                "-o",
                "new",
                "--model",
                name,
                "--start-from",
                "arc2",
                "--epochs",
                "1",
            ),
            1,
        )
    yield Case(
        "pairs sources: a start alone",
        ("train", "log.tsv", "-o", "new", "--start-from", "arc2", "--epochs", "1"),
        ANY,
        makes=MAKES,
    )
    for teacher, says in (
        ("arc2", "two-tower"),
        ("nowhere", "nowhere"),
        ("file", "file"),
        ("nothing", "nothing"),
        ("", ""),
        ("bm26", "bm26"),
        ("vectors", "vectors"),
        ("judged", "judged"),
        ("run.txt", "run.txt"),
    ):
        yield Case(
            f"pairs sources: taught by {teacher!r}",
            train("arc2", "--teacher", teacher),
            REFUSED,
            (says,),
        )
    yield Case(
        "pairs sources: hard negatives without a teacher",
        train("arc2", "--hard-negatives", "2"),
        1,
        ("teacher",),
    )
    yield Case(
        "pairs sources: a teacher without hard negatives",
        train("arc2", "--teacher", "bm25", "--hard-negatives", "0"),
        1,
        ("teacher",),
    )
    yield Case(
        "pairs sources: a teacher of labels", labels("arc2", "--teacher", "bm25"), 1, ("teacher",)
    )
    yield Case(
        "pairs sources: the hinge of labels",
        labels("arc2", "--objective", "hinge"),
        1,
        ("logistic",),
    )
    yield Case(
        "pairs sources: negatives of labels", labels("arc2", "--n-negatives", "3"), ANY, makes=MAKES
    )
    yield Case(
        "pairs sources: vectors and a start",
        train("arc2", *VECTORS, "--start-from", "lstm"),
        1,
        ("one of both",),
    )
    yield Case(
        "pairs sources: tuned without vectors",
        train("arc2", "--train-vectors"),
        1,
        ("train_vectors",),
    )
    yield Case(
        "pairs sources: margin of the logistic loss",
        train("arc2", "--objective", "logistic", "--margin", "2"),
        REFUSED,
    )
    for k, what in enumerate(BAD_VECTORS):
        for suffix in ("txt", "txt.gz", "bin"):
            yield Case(
                f"pairs sources: vectors, {what}, {suffix}",
                train("arc1", "--vectors", f"bad{k}.{suffix}", small=("--maps", "2")),
                1,
                (f"bad{k}.{suffix}",),
            )
    for place in (
        "nowhere",
        "nothing",
        "judged",
        "lstm",
        "arc2",
        "run.txt",
        "log.tsv",
        "binary",
        "loop",
        "",
        "bad.gz",
        "cut.gz",
        "utf16.txt",
    ):
        yield Case(
            f"pairs sources: vectors from {place!r}",
            train("arc1", "--vectors", place, small=("--maps", "2")),
            REFUSED,
            (place,),
        )


LABELLED = {
    "empty": "",
    "one class": "1\ta\tb\n1\tc\td\n",
    "another class": "0\ta\tb\n",
    "label 2": "1\ta b\tb\n2\ta\tb\n",
    "label yes": "yes\ta\tb\n0\tc\td\n",
    "label 1.0": "1.0\ta\tb\n0\tc\td\n",
    "label empty": "\ta\tb\n0\tc\td\n",
    "label NaN": "nan\ta\tb\n0\tc\td\n",
    "two fields": "1\ta\n0\tc\td\n",
    "four fields": "1\ta\tb\tc\n0\tc\td\n",
    "an empty text": "1\ta\t \n0\tc\td\n",
    "an empty line": "1\ta\tb\n\n0\tc\td\n",
    "no tabs": "1 a b\n",
    "not UTF-8": b"1\ta\tb\xff\n0\tc\td\n",
    "a NUL": b"1\ta\tb\0\n0\tc\td\n",
    "a long label": "1" * 5000 + "\ta\tb\n",
    "of a log": "hotels in rome\tRome hotels\n",
    "of a judged set": "q1\thotels\n",
}
FINE = ("an empty line", "a NUL")


def data():
    """Files of labelled pairs, runs and judged sets."""
    for what, text in LABELLED.items():
        raw = text if isinstance(text, bytes) else text.encode()

        def setup(box, raw=raw):
            (box / "given.tsv").write_bytes(raw)

        code = ANY if what in FINE else 1
        one_class = what in ("one class", "another class")
        for name, argv in {
            "train": labels("arc1", log="given.tsv"),
            "dev": labels("arc1", "--dev", "given.tsv"),
            "evaluate": ("evaluate", "arc2", "given.tsv", "--labels"),
            "threshold": (
                "evaluate",
                "arc2",
                "labelled.tsv",
                "--labels",
                "--threshold",
                "given.tsv",
            ),
        }.items():
            wanted = ANY if one_class else code
            yield Case(
                f"pairs data: labels {what}, {name}",
                argv,
                wanted,
                ("given.tsv",),
                setup=setup,
                makes=MAKES,
            )
    for threshold in ("nan", "inf", "x", "nowhere", "judged", "", "1e999", "-5", "0.5", "dev.tsv"):
        yield Case(
            f"pairs data: --threshold {threshold!r}",
            ("evaluate", "arc2", "labelled.tsv", "--labels", "--threshold", threshold),
            ANY,
        )
    for place in ("nowhere", "judged", "arc2", "log.tsv", "empty", "binary", "bad.gz"):
        yield Case(f"pairs data: labels from {place}", labels("arc1", log=place), 1, (place,))
        yield Case(
            f"pairs data: dev of labels from {place}", labels("arc1", "--dev", place), 1, (place,)
        )
    yield Case(
        "pairs data: a judged dev of labels", labels("arc1", "--dev", "judged"), 1, ("judged",)
    )
    yield Case(
        "pairs data: labelled dev of a log",
        train("arc1", "--dev", "labelled.tsv"),
        1,
        ("labelled.tsv",),
    )
    yield Case("pairs data: labels as a log", train("arc1", log="labelled.tsv"), 1)
    yield Case(
        "pairs data: evaluate, two towers without threshold",
        ("evaluate", "lstm", "labelled.tsv", "--labels"),
        1,
        ("--threshold",),
    )
    yield Case(
        "pairs data: evaluate, two towers",
        ("evaluate", "lstm", "labelled.tsv", "--labels", "--threshold", "dev.tsv", "--json"),
        0,
    )
    yield Case(
        "pairs data: evaluate, a run of labels",
        ("evaluate", "run.txt", "labelled.tsv", "--labels"),
        1,
        ("run.txt",),
    )
    yield Case(
        "pairs data: evaluate, labels without the option",
        ("evaluate", "arc2", "labelled.tsv"),
        1,
        ("labelled.tsv",),
    )
    yield Case(
        "pairs data: labels from standard input",
        labels("arc1", log="-"),
        0,
        stdin=b"1\ta\tb\n0\tc\td\n",
        makes=MAKES,
    )
    yield Case(
        "pairs data: empty standard input for labels",
        labels("arc1", log="-"),
        1,
        ("standard input",),
    )
    yield Case(
        "pairs data: a log from standard input",
        train("arc1", log="-"),
        0,
        stdin=b"a\tb\nc\td\ne\tf\n",
        makes=MAKES,
    )
    yield Case(
        "pairs data: an empty log from standard input",
        train("arc1", log="-"),
        1,
        ("standard input",),
    )
    runs = {
        "empty": b"",
        "unknown queries": b"x Q0 d0 1 1 t\n",
        "unknown titles": b"q0 Q0 x 1 1 t\n",
        "NaN": b"q0 Q0 d0 1 nan t\n",
        "a text": b"q0 Q0 d0 1 high t\n",
        "five fields": b"q0 Q0 d0 1 1\n",
        "a title twice": b"q0 Q0 d0 1 1 t\nq0 Q0 d0 2 1 t\n",
        "not UTF-8": b"q0 Q0 d0\xff 1 1 t\n",
        "mixed": b"q0 Q0 d0 1 1 t\nx Q0 d0 1 1 t\nq1 Q0 y 1 1 t\nq1 Q0 d1 2 0 t\n",
    }
    for what, raw in runs.items():

        def setup(box, raw=raw):
            (box / "given.run").write_bytes(raw)

        for model in ("arc2", "lstm", "deepmatch"):
            yield Case(
                f"pairs data: rank {model}, a run, {what}",
                ("rank", model, "queries.tsv", "docs.tsv", "--candidates", "given.run"),
                0 if what == "mixed" else 1,
                ("given.run",),
                setup=setup,
            )
    for place in ("nowhere", "nothing", "arc2", "binary", "loop", "", "log.tsv", "bad.gz"):
        yield Case(
            f"pairs data: rank, candidates from {place!r}",
            ("rank", "arc2", "queries.tsv", "docs.tsv", "--candidates", place),
            REFUSED,
            (place,),
        )
    yield Case(
        "pairs data: rank, candidates from standard input",
        ("rank", "arc2", "queries.tsv", "docs.tsv", "--candidates", "-"),
        0,
        stdin=b"q0 Q0 d0 1 1 t\n",
    )
    yield Case(
        "pairs data: rank, closed standard input",
        ("rank", "arc2", "queries.tsv", "docs.tsv", "--candidates", "-"),
        1,
        ("standard input",),
        stdin="closed",
    )
    for k in ("0", "1", "99999"):
        yield Case(
            f"pairs data: rank -k {k}",
            ("rank", "arc2", "queries.tsv", "docs.tsv", "-k", k, "--table"),
            0,
        )
        if k != "0":
            yield Case(
                f"pairs data: rank --depth {k}",
                (
                    "rank",
                    "arc2",
                    "queries.tsv",
                    "docs.tsv",
                    "-k",
                    k,
                    "--candidates",
                    "run.txt",
                    "--depth",
                    k,
                ),
                0,
            )


def damaged():
    from reliability.battery_cases import DAMAGES
    from reliability.model_format import CRAFTED, PAIR_CRAFTED, write_crafted_pair

    for model in ("arc2", "deepmatch"):
        for what, damage in DAMAGES.items():
            for command, argv in {
                "score": ("score", model, "hotels", "rome"),
                "rank": ("rank", model, "queries.tsv", "docs.tsv", "--candidates", "run.txt"),
                "start": train(model, "--start-from", model, "--max-words", "9"),
                "teacher": train("arc1", "--teacher", model),
                "labels": ("evaluate", model, "labelled.tsv", "--labels"),
                "compare": (*WHOLE["compare"][:-1], model),
                "plot-match": ("plot-match", model, "hotels", "rome", "-o", "new.svg"),
            }.items():
                yield Case(
                    f"pairs damaged: {command}, weights of {model} {what}",
                    argv,
                    1,
                    (model,),
                    setup=lambda box, damage=damage, model=model: damage(
                        box / model / "model.safetensors"
                    ),
                )
    for name in PAIR_CRAFTED:
        for model in ("arc2",) if name in CRAFTED else ("arc2", "deepmatch"):
            yield Case(
                f"pairs damaged: {model}, {name}",
                ("score", "crafted", "hotels", "rome"),
                (0, 1),
                ("crafted",),
                setup=lambda box, name=name, model=model: write_crafted_pair(
                    name, model, box / "crafted"
                ),
            )


RESUME = (
    *("train", "log.tsv", "-o", "pair-training", "--model", "arc2", "--embedding", "4"),
    *("--maps", "3,2", "--mlp", "3", "--epochs", "2", "--batch-size", "8", "--n-negatives", "2"),
    *("--teacher", "bm25", "--dropout", "0.5", "--dev", "judged", "--threads", "1", "--resume"),
)  # fmt: skip


def places():
    """Folders of trainings."""
    makes = ("pair-training/*",)
    yield Case("pairs places: resume", RESUME, 0, makes=makes)

    def other(old, new):
        return tuple(new if part == old else part for part in RESUME)

    def without(*parts):
        return tuple(part for part in RESUME if part not in parts)

    for what, argv, says in (
        ("other maps", other("3,2", "3,3"), "maps"),
        ("another model", other("arc2", "arc1"), "model"),
        (
            "an lstm",
            without(
                "--model",
                "arc2",
                "--embedding",
                "4",
                "--maps",
                "3,2",
                "--mlp",
                "3",
                "--teacher",
                "bm25",
                "--dropout",
                "0.5",
            ),
            "",
        ),
        ("another teacher", other("bm25", "rnn"), ""),
        ("no teacher", without("--teacher", "bm25"), ""),
        ("another dev", other("judged", "data/test"), "dev"),
        ("no dev", without("--dev", "judged"), "dev"),
        ("another dropout", other("0.5", "0.4"), "dropout"),
        ("vectors", (*without("--embedding", "4"), *VECTORS), ""),
        ("a start", (*without("--embedding", "4"), "--start-from", "rnn"), ""),
        ("another log", other("log.tsv", "data/dev/docs.tsv"), ""),
        ("other words", (*RESUME, "--max-words", "20"), "max_words"),
        ("another seed", (*RESUME, "--seed", "5"), "seed"),
        ("labels", (*other("log.tsv", "labelled.tsv")[:-7], "--labels", "--resume"), ""),
    ):
        yield Case(f"pairs places: resume with {what}", argv, 1, (says,))
    yield Case("pairs places: resume and force", (*RESUME, "--force"), REFUSED)
    yield Case(
        "pairs places: a training is there", without("--resume"), ANY, makes=("pair-training*",)
    )
    yield Case(
        "pairs places: resume nothing",
        tuple("new" if part == "pair-training" else part for part in RESUME),
        0,
        makes=MAKES,
    )
    into = list(train())
    into[into.index("new")] = "X"
    for place, code in (
        ("arc2", 1),
        ("lstm", 1),
        ("judged", 1),
        ("log.tsv", 1),
        ("file/x", 1),
        ("loop", 1),
        ("nothing", 0),
    ):
        argv = tuple(place if part == "X" else part for part in into)
        yield Case(f"pairs places: into {place}", argv, code, (place,), makes=("nothing/*",))
        yield Case(
            f"pairs places: into {place}, force",
            (*argv, "--force"),
            0 if place in ("arc2", "lstm", "nothing") else 1,
            (place,),
            makes=(f"{place}/*",),
        )
    yield Case(
        "pairs places: onto its start",
        tuple("arc2" if part == "X" else part for part in into)
        + ("--force", "--start-from", "arc2", "--max-words", "9"),
        1,
        ("arc2", "is read by the command"),
    )
    yield Case(
        "pairs places: onto its teacher",
        tuple("lstm" if part == "X" else part for part in into) + ("--force", "--teacher", "lstm"),
        1,
        ("lstm", "is read by the command"),
    )
    yield Case(
        "pairs places: onto its vectors",
        tuple(
            "vectors" if part == "X" else part
            for part in train("arc1", *VECTORS, "--force", small=("--maps", "2"))
        )[:3]
        + ("vectors",)
        + train("arc1", *VECTORS, "--force", small=("--maps", "2"))[4:],
        1,
        ("vectors",),
    )


def logs():
    """Logs and texts at the edge of what can be learned from."""
    long = " ".join(f"w{k % 50}" for k in range(10_000))
    letters = "x" * 100_000
    table = {
        "one pair": "a b\tc d\n",
        "one query": "".join(f"a\tt{k}\n" for k in range(9)),
        "one title": "".join(f"q{k}\tt\n" for k in range(9)),
        "every title clicked": "a\tb\na\tc\n",
        "two pairs": "a b\tc d\ne f\tg h\n",
        "10,000 words": f"{long}\tb\nc\td\ne f\t{long}\n",
        "a word of 100,000 letters": f"{letters}\tb\nc\td\ne f\t{letters}\n",
        "no letters": "!!!\t???\n...\t,,,\n",
        "the same words": "a a\ta\na\ta a a\nb\tb\n",
        "a huge count": "a\tb\t2147483647\nc\td\t1\n",
        "only spaces": " \t \n",
        "a NUL": "a\0b\tc\nd\te\n",
        "many pairs": "".join(f"q{k % 70} w\tt{k % 90} v\n" for k in range(700)),
    }
    for what, text in table.items():

        def setup(box, text=text):
            (box / "given.tsv").write_text(text)

        for name in ("arc1", *SOME):
            code = (
                ANY
                if what
                in (
                    "one title",
                    "every title clicked",
                    "one query",
                    "one pair",
                    "only spaces",
                    "a NUL",
                    "a huge count",
                    "no letters",
                )
                else 0
            )
            yield Case(
                f"pairs logs: {name}, {what}",
                train(name, log="given.tsv"),
                code,
                setup=setup,
                makes=MAKES,
                seconds=100,
            )
            if name in ("arc1", "arc2"):
                yield Case(
                    f"pairs logs: {name}, {what}, bm25",
                    train(name, "--teacher", "bm25", "--hard-negatives", "30", log="given.tsv"),
                    code,
                    setup=setup,
                    makes=MAKES,
                    seconds=100,
                )
    for name in ("arc1", *SOME):
        for more in (
            ("--learning-rate", "1e29"),
            ("--learning-rate", "1e29", "--dev", "judged"),
            ("--learning-rate", "1e29", "--optimiser", "sgd"),
            ("--learning-rate", "1e8", "--objective", "logistic", "--optimiser", "sgd"),
            ("--margin", "1e30"),
            ("--learning-rate", "1e-300"),
        ):
            yield Case(
                f"pairs logs: {name} {' '.join(more)}",
                train(name, *more, "--epochs", "2"),
                ANY,
                makes=MAKES,
            )
    skipped = "".join(
        json.dumps(
            {"query": f"q{k}", "clicked": [f"t{k}"], "skipped": [f"t{k - 1}"] if k % 2 else []}
        )
        + "\n"
        for k in range(9)
    )

    def lines(box):
        (box / "given.jsonl").write_text(skipped)

    yield Case(
        "pairs logs: negatives of the log",
        train("arc1", "--negatives", "log", log="given.jsonl"),
        ANY,
        setup=lines,
        makes=MAKES,
    )
    yield Case(
        "pairs logs: no negatives in the log", train("arc1", "--negatives", "log"), 1, ("skipped",)
    )

    def empty_text(box):
        (box / "judged/docs.tsv").write_text(
            (box / "judged/docs.tsv").read_text().replace("Paris hotels and more", " ")
        )

    yield Case(
        "pairs logs: an empty text in the dev set",
        train("arc1", "--dev", "judged"),
        ANY,
        setup=empty_text,
        makes=MAKES,
    )
    yield Case(
        "pairs logs: an empty text in the judged set",
        ("evaluate", "arc2", "judged"),
        ANY,
        setup=empty_text,
    )


NO_VECTOR = {
    "encode": ("encode", "X", "texts.txt", "-o", "new.npy"),
    "keywords": ("keywords", "X", "hotels in rome"),
    "keywords --compare-with": ("keywords", "lstm", "hotels", "--compare-with", "X"),
    "topics": ("topics", "X", "queries.tsv"),
    "plot-gates": ("plot-gates", "X", "hotels", "-o", "new.svg"),
    "plot-gates --compare-with": (
        "plot-gates",
        "lstm",
        "hotels",
        "--compare-with",
        "X",
        "-o",
        "new.svg",
    ),
    "sts": ("sts", "X", "sts"),
}


def commands():
    """Every command with every pair model."""
    for name in NAMES:
        for command, argv in WHOLE.items():
            if command.startswith(("train", "data")):
                continue
            argv = tuple(name if part in ("arc1", "arc2") else part for part in argv)
            yield Case(f"pairs commands: {command} of {name}", argv, 0, makes=MAKES)
        for command, argv in NO_VECTOR.items():
            argv = tuple(name if part == "X" else part for part in argv)
            yield Case(f"pairs commands: {command} of {name}", argv, 1, (name,))
        if name not in SOME:
            continue
        for what, query, title in (
            ("no words", " ", " "),
            ("empty", "", ""),
            ("unknown", "xyzzy", "plugh"),
            ("long", "a b " * 9999, "c " * 9999),
            ("letters", "x" * 100_000, "y"),
            ("escapes", "red\x1b[31m\x07ink", "rome\x1b[2J"),
        ):
            for command, argv in (
                ("score", ("score", name, query, title)),
                ("plot-match", ("plot-match", name, query, title, "-o", "new.svg")),
                ("plot-match --json", ("plot-match", name, query, title, "--json")),
            ):
                yield Case(
                    f"pairs commands: {command} of {name}, {what}",
                    argv,
                    ANY,
                    makes=MAKES,
                    check=_plain,
                )
        for suffix in (".png", ".pdf", ".gif", "", ".svg.gz"):
            yield Case(
                f"pairs commands: plot-match of {name} to {suffix!r}",
                ("plot-match", name, "hotels in", "rome", "-o", f"new{suffix}"),
                0 if suffix in (".png", ".pdf") else REFUSED,
                makes=MAKES,
            )
        for value in ("hinge", "logistic"):
            yield Case(
                f"pairs commands: gradcheck of {name}, {value}",
                ("gradcheck", "--model", name, "--objective", value),
                0,
            )
        for more in (
            ("--form", "loops"),
            ("--form", "printed"),
            ("--form", "paper"),
            ("--gate", "printed"),
            ("--break", "all"),
            ("--lengths", "1,40"),
            ("--lengths", "1"),
            ("--cells", "3"),
            ("--task", "sentiment"),
        ):
            yield Case(
                f"gradients: {name} {' '.join(more)}",
                ("gradcheck", "--model", name, *more),
                ANY,
            )
    for name, argv in {
        "plot-match": WHOLE["plot-match"],
        "plot-match --json": (*WHOLE["plot-match"][:-2], "--json"),
    }.items():
        yield Case(
            f"pairs commands: {name} of two towers",
            tuple("lstm" if p == "arc2" else p for p in argv),
            1,
            ("lstm",),
        )
    for place in ("nowhere", "file", "nothing", "judged", "vectors", "pair-training", "", "loop"):
        yield Case(
            f"pairs commands: plot-match of {place!r}",
            ("plot-match", place, "hotels", "rome", "-o", "new.svg"),
            ANY if place == "pair-training" else REFUSED,
            (place,),
            makes=MAKES,
        )
    for command in (
        "score",
        "rank",
        "rank --candidates",
        "evaluate",
        "evaluate --labels",
        "plot-match --json",
    ):
        argv = {
            "plot-match --json": (*WHOLE["plot-match"][:-2], "--json"),
        }.get(command) or WHOLE[command]
        for what in ("full", "closed", "broken"):
            yield Case(
                f"pairs commands: {command}, stdout {what}",
                argv,
                (0, 1, 141) if what == "broken" else 1,
                () if what == "broken" else ("standard output",),
                stdout=what,
            )
    for name in ("score", "rank", "evaluate"):
        yield Case(f"pairs commands: {name}, escapes", WHOLE[name], 0, setup=_escapes, check=_plain)


def _escapes(box):
    for name in ("queries.tsv", "docs.tsv"):
        (box / name).write_text("x1\tred\x1b[31m\x07ink\nx2\thotels\n")


def _plain(outcome):
    bad = [byte for byte in outcome.stdout if byte < 32 and byte not in b"\n\t"]
    return f"control characters on stdout: {bytes(bad[:4])!r}" if bad else None


def signals():
    for number, codes in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
        for name, argv in WHOLE.items():
            for fraction in (0.1, 0.6, 0.9):
                last = fraction > 0.7
                yield Case(
                    f"pairs signals: {name}, {number.name} after {fraction:.0%}",
                    argv,
                    (*codes, 0) if name.startswith("train") and last else codes,
                    stop=(number, fraction),
                    makes=MAKES,
                )
