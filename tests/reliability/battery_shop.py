"""Cases of the battery: from a shop's clicks to an index, searches, exports and a server."""

import gzip
import json
import shutil
import signal

from reliability import battery_cases as table
from reliability.battery import Case
from reliability.samples import pairs, write_beir, write_click_tables, write_indexes

REFUSED = (1, 2)
ANY = (0, 1, 2)
BROKEN_PIPE = (0, 1, 141)
HUGE = str(10**30)
ESCAPES = "red\x1b[31m\x07ink"
MAKES = ("new", "new/*", "new.*")
# What a command that changes an index may change.
OF_INDEX = ("index/*", "sums/*", "index8/*")
QUICK = ("--cells", "3", "--epochs", "1", "--batch-size", "4", "--n-negatives", "1")

# Each command, with what it needs to do something.
WHOLE = {
    "import": ("import", "clicks.csv", "-o", "new.tsv", "--clicks-column", "n"),
    "import ids": (
        *("import", "ids.jsonl", "-o", "new.tsv", "--id-column", "sku", "--catalogue", "skus.csv"),
        *("--title-column", "name", "--min-clicks", "2", "--write-catalogue", "new.titles"),
    ),
    "import shown": (
        *(
            "import",
            "shown.csv",
            "-o",
            "new.jsonl",
            "--clicks-column",
            "clicked",
            "--search-column",
            "sid",
        ),
        *("--position-column", "place"),
    ),
    "split": ("split", "log.tsv", "-o", "new", "--dev", "20%", "--test", "20%"),
    "split by time": ("split", "log.jsonl", "-o", "new", "--by", "time", "--dev", "20%"),
    "prepare": ("prepare", "log.tsv", "-o", "new"),
    "data beir": ("data", "beir", "beir", "-o", "new"),
    "train --dev share": ("train", "log.tsv", *QUICK, "-o", "new", "--dev", "20%"),
    "train --dev clicks": (
        *("train", "log.tsv", *QUICK, "-o", "new", "--dev", "held.tsv"),
        *("--catalogue", "docs.tsv"),
    ),
    "train --replay": (
        *("train", "new-words.tsv", "-o", "new", "--start-from", "bag", "--replay", "log.tsv"),
        *("--epochs", "1", "--batch-size", "4", "--n-negatives", "1"),
    ),
    "evaluate clicks": (
        *("evaluate", "bag", "held.tsv", "--catalogue", "docs.tsv", "--compare-with", "bm25"),
        *("--compare-with", "bm25-clicks", "--log", "log.tsv"),
    ),
    "index": ("index", "bag", "docs.tsv", "-o", "new"),
    "index of a ranker": ("index", "ranked", "docs.tsv", "-o", "new", "--dtype", "int8"),
    "index --sync": ("index", "sums", "--sync", "docs.tsv", "-o", "new"),
    "index --add": ("index", "index", "--add", "more.tsv", "--remove", "ids.txt", "-o", "new"),
    "search": ("search", "index", "hotels in rome"),
    "search sums": ("search", "sums", "hotels in rome", "--json", "--only", "ids.txt"),
    "search --queries": ("search", "index8", "--queries", "queries.tsv", "--tsv"),
    "search --trec": ("search", "sums", "--queries", "queries.tsv", "--trec"),
    "tune": ("tune", "sums", "held.tsv", "--dry-run"),
    "calibrate": ("calibrate", "sums", "held.tsv", "--dry-run"),
    "explain": ("explain", "bag", "hotels in rome", "Rome hotels", "--log", "log.tsv"),
    "explain INDEX": ("explain", "index", "hotels in rome"),
    "diff": ("diff", "bag", "lstm", "--catalogue", "docs.tsv", "--clicks", "held.tsv"),
    "diff -o": (
        *("diff", "bag", "lstm", "--catalogue", "docs.tsv", "--queries", "queries.tsv"),
        *("-o", "new.html"),
    ),
    "neighbours": ("neighbours", "bag", "hotels"),
    "synonyms": ("synonyms", "bag", "--log", "log.tsv", "--min-uses", "1", "-o", "new.txt"),
    "average": ("average", "bag", "lstm", "-o", "new"),
    "rank with a ranker": ("rank", "ranked", "queries.tsv", "docs.tsv"),
    "encode --ids": ("encode", "bag", "docs.tsv", "--ids", "-o", "new.npy"),
    "export elasticsearch": (
        *("export", "sums", "-o", "new", "--to", "elasticsearch", "--clicked-queries", "no"),
        *("--part-bytes", "2000"),
    ),
    "export -": ("export", "index8", "-o", "-", "--to", "page"),
    "export parquet": ("export", "index", "-o", "new.parquet", "--to", "parquet"),
    "export page": ("export", "sums", "-o", "new.html", "--to", "page"),
    "export sentence-transformers": ("export", "bag", "-o", "new", "--to", "sentence-transformers"),
}
# It does not end by itself.
SERVE = ("serve", "index", "--port", "0")

INPUTS = {
    "import FILE": ("file", ("import", "X", "-o", "new.tsv", "--clicks-column", "n")),
    "import --catalogue": (
        "file",
        ("import", "ids.jsonl", "-o", "new.tsv", "--id-column", "sku", "--catalogue", "X"),
    ),
    "split LOG": ("file", ("split", "X", "-o", "new")),
    "prepare LOG": ("file", ("prepare", "X", "-o", "new")),
    "split --catalogue": ("file", (*WHOLE["split"], "--catalogue", "X")),
    "train --dev": ("either", ("train", "log.tsv", *QUICK, "-o", "new", "--dev", "X")),
    "train --replay": (
        "file",
        tuple("X" if p == "log.tsv" else p for p in WHOLE["train --replay"]),
    ),
    "train --catalogue": (
        "file",
        tuple("X" if part == "docs.tsv" else part for part in WHOLE["train --dev clicks"]),
    ),
    "evaluate CLICKS": ("either", ("evaluate", "bag", "X", "--catalogue", "docs.tsv")),
    "evaluate --catalogue": ("file", ("evaluate", "bag", "held.tsv", "--catalogue", "X")),
    "evaluate --log": (
        "file",
        ("evaluate", "bag", "held.tsv", "--compare-with", "bm25-clicks", "--log", "X"),
    ),
    "evaluate --compare-with": ("folder", ("evaluate", "bag", "held.tsv", "--compare-with", "X")),
    "index MODEL": ("folder", ("index", "X", "docs.tsv", "-o", "new")),
    "index TITLES": ("file", ("index", "bag", "X", "-o", "new")),
    "index --sync": ("file", ("index", "sums", "--sync", "X")),
    "index INDEX": ("folder", ("index", "X", "--add", "more.tsv")),
    "index --add": ("file", ("index", "index", "--add", "X")),
    "index --remove": ("file", ("index", "index", "--remove", "X")),
    "search INDEX": ("folder", ("search", "X", "hotels")),
    "search --queries": ("file", ("search", "index", "--queries", "X")),
    "search --only": ("file", ("search", "index", "hotels", "--only", "X")),
    "tune INDEX": ("folder", ("tune", "X", "held.tsv")),
    "tune DEV": ("either", ("tune", "sums", "X")),
    "calibrate INDEX": ("folder", ("calibrate", "X", "held.tsv")),
    "calibrate DEV": ("either", ("calibrate", "sums", "X")),
    "explain MODEL": ("folder", ("explain", "X", "hotels in rome", "rome")),
    "explain --log": ("file", ("explain", "bag", "hotels in rome", "--log", "X")),
    "explain --catalogue": ("file", ("explain", "bag", "hotels in rome", "--catalogue", "X")),
    "diff MODEL_B": (
        "folder",
        ("diff", "bag", "X", "--catalogue", "docs.tsv", "--clicks", "held.tsv"),
    ),
    "diff --catalogue": (
        "file",
        ("diff", "bag", "lstm", "--catalogue", "X", "--clicks", "held.tsv"),
    ),
    "diff --clicks": ("file", ("diff", "bag", "lstm", "--catalogue", "docs.tsv", "--clicks", "X")),
    "diff --queries": (
        "file",
        ("diff", "bag", "lstm", "--catalogue", "docs.tsv", "--queries", "X"),
    ),
    "neighbours --among": ("file", ("neighbours", "bag", "hotels", "--among", "X")),
    "neighbours --log": ("file", ("neighbours", "bag", "hotels", "--log", "X")),
    "synonyms --log": ("file", ("synonyms", "bag", "--log", "X")),
    "average MODEL": ("folder", ("average", "bag", "X", "-o", "new")),
    "export INDEX": ("folder", ("export", "X", "-o", "new.html", "--to", "page")),
    "export MODEL": ("folder", ("export", "X", "-o", "new", "--to", "sentence-transformers")),
    "serve INDEX": ("folder", ("serve", "X", "--port", "0")),
    "serve --log": ("file", (*SERVE, "--log", "X")),
    "data beir SRC": ("folder", ("data", "beir", "X", "-o", "new")),
}
# Texts in which an id of a line, or a word of a file, is as good as another.
READ_AS_LINES = ("search --only", "index --remove", "neighbours --among", "import FILE",
                 "import --catalogue")  # fmt: skip

STANDARD_INPUT = {
    "import": (("import", "-", "-o", "new.tsv"), b"query,title\nhotels,Rome\n"),
    "split": (("split", "-", "-o", "new", "--dev", "40%", "--test", "0"), None),
    "prepare": (("prepare", "-", "-o", "new"), None),
    "index TITLES": (("index", "bag", "-", "-o", "new"), b"1\thotels\n"),
    "index --add": (("index", "index", "--add", "-", "-o", "new"), b"x1\thotels\n"),
    "index --remove": (("index", "index", "--remove", "-", "-o", "new"), b"d1\n"),
    "search --queries": (("search", "index", "--queries", "-"), b"1\thotels\n"),
    "search --only": (("search", "index", "hotels", "--only", "-"), b"d1\n"),
}

# As in `battery_cases`: what must be refused beyond what a declaration forbids, and what may be.
NUMBERS = {
    "search": {
        "--top-k": ((), ("2147483647",)),
        "--min-score": (("nan",), ("-1e300", "inf", "-inf")),
        "--min-confidence": (("nan", "-1", "2", "inf", "0.5"), ()),
    },
    "search sums": {
        "--min-confidence": (("nan", "-1", "2", "inf"), ("0", "1")),
        "--top-k": ((HUGE,), ("2147483647",)),
    },
    "split": {
        "--seed": (("-1",), (HUGE,)),
        "--dev": (("-1", "nan", "1", "100%", "1e-400", "inf", "90%", "5%%", "٣%"), ("0",)),
        "--test": (("-1", "nan", "1", "100%"), ("0", " 30 % ")),
    },
    "train --dev share": {
        "--dev": (("0", "0%", "100%", "200%", "nan"), ("0.3",)),
    },
    "import ids": {"--min-clicks": (("-1", "0", HUGE), ("9",))},
    "data beir": {"--title-words": (("-1", "0"), (HUGE,))},
    "explain": {"--top-k": ((), ("1000",))},
    "diff": {"--top-k": ((), ("1000",)), "--show": ((), ("0", HUGE))},
    "neighbours": {"--top-k": ((), ("10000",))},
    "synonyms": {
        "--top-k": ((), ("20",)),
        "--min-uses": ((), (HUGE,)),
        "--min-score": (("inf",), ("-1", "1")),
    },
    "export elasticsearch": {"--part-bytes": (("-1", "0", "1", HUGE), ("2147483647",))},
    "serve": {
        "--rate": (("0", "-1", "nan", "inf", "1e300"), ()),
        "--queue": (("0", "-1", HUGE), ()),
    },
}

PRINTS = (
    *("search", "search sums", "search --queries", "search --trec", "evaluate clicks", "tune"),
    *(
        "calibrate",
        "explain",
        "explain INDEX",
        "diff",
        "neighbours",
        "rank with a ranker",
        "export -",
    ),
)
OUTPUT_FILES = {
    "import -o": (".tsv", ("import", "clicks.csv", "-o", "X", "--clicks-column", "n")),
    "import --write-catalogue": (".tsv", (*WHOLE["import"], "--write-catalogue", "X")),
    "search -o": (".txt", ("search", "index", "hotels", "-o", "X")),
    "synonyms -o": (".txt", (*WHOLE["synonyms"][:-1], "X")),
    "diff -o": (".html", (*WHOLE["diff -o"][:-1], "X")),
    "export --to parquet": (
        ".parquet",
        ("export", "index", "-o", "X", "--to", "parquet", "--force"),
    ),
}
OUTPUT_FOLDERS = {
    "prepare OUT": ("prepare", "log.tsv", "-o", "X"),
    "split OUT": ("split", "log.tsv", "-o", "X", "--dev", "20%", "--test", "20%"),
    "index -o": ("index", "bag", "docs.tsv", "-o", "X"),
    "index --add -o": ("index", "index", "--add", "more.tsv", "-o", "X"),
    "average -o": ("average", "bag", "lstm", "-o", "X"),
    "data beir OUT": ("data", "beir", "beir", "-o", "X"),
    **{
        f"export --to {to}": ("export", source, "-o", "X", "--to", to)
        for source, to in (
            ("index", "onnx"),
            ("bag", "sentence-transformers"),
        )
    },
}


def prepare(folder):
    """What the cases name that the samples do not have."""
    some = pairs()
    write_indexes(folder)
    write_beir(folder)
    write_click_tables(folder)
    (folder / "skus.csv").write_text(
        "sku,name\n" + "".join(f"s{k},{t}\n" for k, (_, t) in enumerate(some))
    )
    (folder / "ids.jsonl").write_text(
        "".join(json.dumps({"query": q, "sku": f"s{k // 2 * 2}"}) + "\n"
                for k, (q, _) in enumerate([*some, *some]))
    )  # fmt: skip
    (folder / "shown.csv").write_text(
        "sid,query,title,place,clicked\n"
        + "".join(f"{k // 3},{some[k // 3][0]},{t},{k % 3 + 1},{int(k % 3 == 1)}\n"
                  for k, (_, t) in enumerate(some))
    )  # fmt: skip
    # Queries that the log lacks, of its words: an index refuses to be measured by its clicks.
    held = ((f"{q} {q.split()[0]}", t) for q, t in some)
    (folder / "held.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in held))
    (folder / "many.tsv").write_text("".join(f"{k}\thotels\n" for k in range(70)))
    (folder / "more.tsv").write_text("x1\tOslo castles\nx2\t...\n")
    (folder / "ids.txt").write_text("d0\nd1\nd1\n\n")
    (folder / "new-words.tsv").write_text("quokkas in perth\tPerth quokkas\nhotels\tRome hotels\n")


def warm_up():
    """Commands that compile all kernels of the cases."""
    yield from WHOLE.values()
    yield from (("search", name, "hotels") for name in ("index", "index8", "sums"))
    yield ("index", "index8", "--add", "more.tsv", "-o", "shop1")
    yield ("index", "sums", "--add", "more.tsv", "--remove", "ids.txt", "-o", "shop2")
    for name in ("index", "index8"):
        yield ("search", name, "--queries", "many.tsv", "--only", "ids.txt")


def cases():
    """All of them, area by area."""
    areas = (usage, numbers, inputs, standard_input, outputs, streams, damaged, texts, places)
    for area in (*areas, signals):
        yield from area()


def usage():
    for name, argv in WHOLE.items():
        yield Case(f"shop usage: {name}, unknown option", (*argv, "--no-such-option"), 2)
        if not name.startswith(("import", "prepare", "average", "neighbours")):
            yield Case(f"shop usage: {name}, too many arguments", (*argv, "a", "b", "c"), 2)
    for own in dict.fromkeys(argv[: 2 if argv[0] == "data" else 1] for argv in WHOLE.values()):
        yield Case(f"shop usage: {' '.join(own)} without arguments", own, 2)
        yield Case(f"shop usage: {' '.join(own)} --help", (*own, "--help"), 0)
    for argv, says in (
        (("index", "bag", "docs.tsv"), "-o"),
        (("index", "bag"), "TITLES"),
        (("index", "index"), "--add"),
        (("index", "index", "--add", "more.tsv", "--sync", "docs.tsv"), "--sync"),
        (("index", "index", "docs.tsv", "--add", "more.tsv"), "--add"),
        (("index", "index", "--add", "-", "--remove", "-"), "standard input"),
        (("search", "index"), "QUERY"),
        (("search", "index", "hotels", "--queries", "queries.tsv"), "QUERY"),
        (("search", "index", "hotels", "--json", "--tsv"), "--json"),
        (("search", "index", "--queries", "-", "--only", "-"), "standard input"),
        (("export", "index", "-o", "new"), "--to"),
        (("export", "index", "-o", "new", "--to", "excel"), "no such target"),
        (("export", "index", "-o", "new", "--to", "opensearch", "--dtype", "int8"), "--dtype"),
        (("export", "index", "-o", "new", "--to", "page", "--name", "x"), "--name"),
        (("serve",), "INDEX"),
        (("serve", "index", "docs.tsv"), "docs.tsv"),
    ):
        yield Case(f"shop usage: {' '.join(argv)}", argv, 2, (says,))
    for argv, says in (
        (("index", "index", "docs.tsv", "-o", "new"), "--add"),
        (("index", "arc2", "docs.tsv", "-o", "new"), "pair"),
        (("search", "bag", "hotels"), "index"),
        (("evaluate", "bag", "held.tsv", "--metrics", ""), "metric"),
        (("evaluate", "bag", "held.tsv", "--metrics", "ndcg@99999999999999999999"), "ndcg"),
        (("evaluate", "bag", "held.tsv", "--metrics", "mrr@10,,"), "metric"),
        (("average", "bag", "arc2", "-o", "new"), "pair"),
        (("export", "bag", "-o", "new", "--to", "page"), "index"),
        (("export", "arc2", "-o", "new", "--to", "onnx"), "pair"),
        (("export", "sums", "-o", "new", "--to", "elasticsearch", "--name", "../x"), "name"),
        (
            ("export", "sums", "-o", "new", "--to", "opensearch", "--clicked-queries", "x"),
            "'yes', 'no'",
        ),
        (("export", "sums", "-o", "-", "--to", "parquet"), "standard output"),
        (("export", "sums", "-o", "sums", "--to", "opensearch", "--force"), "sums"),
        (("export", "sums", "-o", "new", "--to", "parquet", "--dtype", "x"), "dtype"),
        ((*SERVE, "--host", "a b"), "host"),
        ((*SERVE, "--allow-origin", "*"), "origin"),
        ((*SERVE, "--allow-host", "a:80"), "host"),
        (("serve", "bag", "--port", "0"), "index"),
        (("neighbours", "bag", ""), ""),
        (("neighbours", "arc2", "hotels"), "pair"),
        (("diff", "bag", "arc2", "--catalogue", "docs.tsv", "--clicks", "held.tsv"), ""),
    ):
        yield Case(f"shop usage: {' '.join(argv)}", argv, ANY if not says else REFUSED, (says,))


def numbers():
    for name, options in NUMBERS.items():
        for option, (bad, perhaps) in options.items():
            argv = list(SERVE if name == "serve" else WHOLE[name])
            if option in argv:
                at = argv.index(option)
                del argv[at : at + 2]
            for value in (*bad, "abc", ""):
                yield Case(
                    f"shop numbers: {name} {option} {value[:9]!r}", (*argv, option, value), REFUSED,
                    makes=MAKES if value in ("", "abc") else (),
                )  # fmt: skip
            for value in perhaps:
                yield Case(
                    f"shop numbers: {name} {option} {value[:9]!r}, perhaps",
                    (*argv, option, value), ANY, makes=MAKES,
                )  # fmt: skip


def inputs():
    for label, (kind, argv) in INPUTS.items():
        bad = dict(table.NO_PLACES)
        if kind in ("file", "either"):
            bad |= table.NO_FILES
        if kind in ("folder", "either"):
            bad |= table.NO_FOLDERS
        for what, value in bad.items():
            code = REFUSED if value == "" else 1
            plain = isinstance(value, str) and 2 < len(value) < 99 and value.isprintable()
            says = (value,) if plain else ()
            if label in READ_AS_LINES or (label == "train --dev" and value == "file"):
                code, says = (0, 1, 2), ()
            made = (*MAKES, "index/*") if label in READ_AS_LINES else ()
            yield Case(
                f"shop inputs: {label}, {what}", table._in(argv, value), code, says, makes=made
            )


def standard_input():
    log = "".join(f"{q}\t{t}\n" for q, t in pairs()).encode()
    for name, (argv, good) in STANDARD_INPUT.items():
        makes = (*MAKES, "index/*")
        yield Case(f"shop stdin: {name}", argv, 0, stdin=good or log, makes=makes)
        yield Case(f"shop stdin: {name}, closed", argv, 1, ("standard input",), stdin="closed")
        only_ids = name in ("search --only", "index --remove")
        yield Case(
            f"shop stdin: {name}, empty", argv, ANY if only_ids else 1, ("standard input",),
            makes=makes,
        )  # fmt: skip
        for what, given in (("binary", bytes(range(256))), ("not UTF-8", b"q\tcaf\xe9\n")):
            yield Case(
                f"shop stdin: {name}, {what}", argv, 1, ("standard input",), stdin=given
            )  # fmt: skip


def outputs():
    for label, (suffix, argv) in OUTPUT_FILES.items():
        out = f"out{suffix}"
        also = ("new.*",)
        yield Case(
            f"shop outputs: {label}, in a new folder", table._in(argv, f"deep/{out}"), 0,
            makes=("deep", "deep/*", *also),
        )  # fmt: skip
        for what, value in {
            "a folder": "nothing",
            "a symlink loop": "loop",
            "below a file": f"file/{out}",
            "a long name": table.LONG + suffix,
            "an empty name": "",
            "this folder": ".",
        }.items():
            yield Case(
                f"shop outputs: {label}, {what}", table._in(argv, value), REFUSED, makes=also
            )
        for what, value in (
            ("not UTF-8", table.NOT_UTF8 + suffix.encode()),
            ("escapes in its name", ESCAPES + suffix),
            ("blanks in its name", f"my new shop{suffix}"),
        ):
            yield Case(
                f"shop outputs: {label}, {what}", table._in(argv, value), ANY,
                makes=(table._printable(value), *also),
            )  # fmt: skip
        yield Case(
            f"shop outputs: {label}, a full disk", table._in(argv, "/dev/full"), REFUSED, makes=also
        )
    for label, argv in OUTPUT_FOLDERS.items():
        for what, value in {
            "a file": "file",
            "a symlink loop": "loop",
            "below a file": "file/out",
            "a folder of notes": "notes",
            "a long name": table.LONG,
            "an empty name": "",
            "this folder": ".",
            "the folder above": "..",
        }.items():
            says = () if len(value) > 99 or len(value) < 3 else (value,)
            yield Case(f"shop outputs: {label}, {what}", table._in(argv, value), REFUSED, says)
        for what, value in (
            ("not UTF-8", table.NOT_UTF8),
            ("escapes in its name", ESCAPES),
            ("blanks in its name", "my new shop"),
            ("an empty folder", "nothing"),
        ):
            made = table._printable(value)
            yield Case(
                f"shop outputs: {label}, {what}", table._in(argv, value), ANY,
                makes=(made, f"{made}/*"),
            )  # fmt: skip
    for label, name in (("an index", "index"), ("a model", "lstm"), ("notes", "notes")):
        for how in ((), ("--force",)):
            yield Case(
                f"shop outputs: index over {label} {how}", ("index", "bag", "docs.tsv", "-o", name, *how),  # noqa: E501
                0 if name == "index" and how else 1, (name,), makes=OF_INDEX,
            )  # fmt: skip
    for name, argv in (
        ("index --add", ("index", "index", "--add", "more.tsv")),
        ("tune", ("tune", "sums", "held.tsv")),
        ("calibrate", ("calibrate", "sums", "held.tsv")),
    ):
        yield Case(
            f"shop outputs: {name} without the right to write", argv, 1, ("permission",),
            setup=lambda box: [path.chmod(0o555) for path in (box, box / "index", box / "sums")],
            user=True, makes=("",),
        )  # fmt: skip


def streams():
    for name in PRINTS:
        for what, code, says in (
            ("closed", 1, ("standard output",)),
            ("full", 1, ("standard output", "no space")),
            ("broken", BROKEN_PIPE, ()),
        ):
            yield Case(f"shop streams: {name}, stdout {what}", WHOLE[name], code, says, stdout=what)
        yield Case(f"shop streams: {name}, stderr closed", WHOLE[name], 0, stderr="closed")
    for name in ("split", "prepare", "import", "index", "average", "data beir"):
        for what in ("closed", "full", "broken"):
            yield Case(
                f"shop streams: {name}, stderr {what}", WHOLE[name], (0, 1, 120, 141),
                stderr=what, makes=MAKES,
            )  # fmt: skip
    for what, code in (("closed", 1), ("full", 1), ("broken", BROKEN_PIPE)):
        yield Case(
            f"shop streams: search, stdout {what}, a process of its own", WHOLE["search"], code,
            stdout=what, own_process=True,
        )  # fmt: skip


def damaged():
    """Every file of an index, damaged in every way that the table of models has."""
    files = {
        "index": ("index.json", "ids.txt", "titles.txt", "id-offsets.npy", "title-offsets.npy",
                  "cosine/vectors.npy", "empty.npy", "model/model.safetensors"),
        "index8": ("cosine/codes.npy", "cosine/scales.npy"),
        "sums": ("memory/offsets.npy", "memory/codes.npy", "memory/scales.npy", "memory/texts.npy",
                 "bm25/words.npy", "bm25/offsets.npy", "bm25/titles.npy", "bm25/weights.npy",
                 "clicked_bm25/titles.npy", "unclicked/values.npy",
                 "model/ranker/ranker.safetensors"),
    }  # fmt: skip
    for folder, names in files.items():
        for name in names:
            for what, damage in table.DAMAGES.items():
                yield Case(
                    f"shop damaged: {folder}/{name}, {what}",
                    ("search", folder, "hotels in rome"),
                    1,
                    # A model is described as one.
                    (name.split("/")[0],),
                    setup=table._damaged(folder, name, damage),
                )
    for what, ids in {
        "twice": "d0\tRome\nd0\tOslo\n",
        "with blanks": "d 0\tRome\n",
        "empty": "\tRome\n",
    }.items():
        yield Case(
            f"shop damaged: ids {what}", ("index", "bag", "titles.tsv", "-o", "new"), 1,
            ("titles.tsv",), setup=lambda box, ids=ids: (box / "titles.tsv").write_text(ids),
        )  # fmt: skip


TITLES = {
    "one": "a\tRome hotels\n",
    "all equal": "".join(f"{k}\tRome hotels\n" for k in range(99)),
    "without words": "".join(f"{k}\t...\n" for k in range(9)),
    "CRLF": "1\tRome hotels\r\n2\tOslo maps\r\n",
    "BOM": "\ufeff1\tRome hotels\n",
    "no line end": "1\tRome hotels",
    "other scripts": "1\tローマ ホテル\n2\tفندق روما\n3\tגשר\n4\t호텔\n5\tΡώμη\n",
    "marks of direction": "1\t\u202eemoR\u202c \u200fhotels\u2066x\n",
    "escapes": f"1\tRome {ESCAPES}\x9b31m hotels\n",
    "line separators": "1\tRome\u2028hotels\x85in\x0btown\n",
    "carriage returns": "1\tRome\rhotels\n",
    "three columns": "1\tRome\thotels\n",
    "quotes": '1\t"Rome\n2\thotels"\n',
}


def texts():
    def plain(outcome):
        text = outcome.stdout.decode()
        bad = [letter for letter in text if table.unprintable(letter)]
        return f"control characters on stdout: {bad[:4]!r}" if bad else None

    for what, titles in TITLES.items():
        for model in ("bag", "ranked"):
            yield Case(
                f"shop texts: index of {model}, {what}",
                ("index", model, "titles.tsv", "-o", "new"), 0,
                setup=lambda box, t=titles: (box / "titles.tsv").write_text(t, newline=""),
                makes=MAKES,
            )  # fmt: skip
        for name, argv in {
            "explain": ("explain", "bag", "hotels in rome", "--catalogue", "titles.tsv", "--log", "log.tsv"),  # noqa: E501
            "diff": ("diff", "bag", "lstm", "--catalogue", "titles.tsv", "--queries", "queries.tsv"),  # noqa: E501
            "diff -o": (*WHOLE["diff -o"][:3], "--catalogue", "titles.tsv", *WHOLE["diff -o"][5:]),
            "evaluate": ("evaluate", "bag", "held.tsv", "--catalogue", "titles.tsv", "--per-query"),
            "split": (*WHOLE["split"], "--catalogue", "titles.tsv"),
            "encode": ("encode", "bag", "titles.tsv", "--ids", "-o", "new.npy"),
        }.items():  # fmt: skip
            nothing_found = name == "explain" and what in {"without words", "other scripts"}
            yield Case(
                f"shop texts: {name}, {what}", argv, int(nothing_found),
                setup=lambda box, t=titles: (box / "titles.tsv").write_text(t, newline=""),
                makes=MAKES, check=plain,
            )  # fmt: skip
        add = titles.replace("d0", "x0")
        yield Case(
            f"shop texts: added, {what}", ("index", "sums", "--add", "titles.tsv", "-o", "new"), 0,
            setup=lambda box, t=add: (box / "titles.tsv").write_text(t, newline=""), makes=MAKES,
        )  # fmt: skip
    for what, query in {
        "empty": "",
        "blanks": " \t ",
        "no words": "...",
        "unknown": "zzqqxx",
        "escapes": ESCAPES,
        "not UTF-8": table.NOT_UTF8,
        "long": "rome " * 50_000,
        "a long word": "r" * 200_000,
        "of two lines": "hotels\nin rome",
        "an option": "--",
        "a mark of direction": "\u202erome",
    }.items():
        for name, argv in {
            "search": ("search", "index", "--", query),
            "search --json": ("search", "sums", "--json", "--", query),
            "explain": ("explain", "bag", "--log", "log.tsv", "--", query),
            "explain INDEX": ("explain", "sums", "--", query),
            "neighbours": ("neighbours", "bag", "--", query),
        }.items():  # fmt: skip
            yield Case(f"shop texts: {name}, a query: {what}", argv, ANY, check=plain)
    for what, log in {
        "escapes": f"hotels {ESCAPES}\tRome {ESCAPES}\n" * 3 + "maps\tOslo\nfun\tx\n",
        "one line": "hotels\tRome\n",
        "no words": "...\t...\n",
        "all equal": "hotels\tRome\n" * 99,
        "CRLF": "hotels\tRome\r\nmaps\tOslo\r\nfun\tParis\r\n",
        "huge counts": f"hotels\tRome\t{10**12}\nhotels\tRome\t{10**12}\nmaps\tOslo\t1\n",
    }.items():
        for name, argv in {
            "split": ("split", "bad.tsv", "-o", "new", "--dev", "40%"),
            "prepare": ("prepare", "bad.tsv", "-o", "new"),
            "split by time": ("split", "bad.tsv", "-o", "new", "--by", "time", "--dev", "40%"),
            "split by title": ("split", "bad.tsv", "-o", "new", "--by", "title", "--dev", "40%"),
            "train --dev": ("train", "bad.tsv", *QUICK, "-o", "new", "--dev", "40%"),
            "train --dev FILE": ("train", "log.tsv", *QUICK, "-o", "new", "--dev", "bad.tsv"),
            "train --replay": (*WHOLE["train --replay"][:6], "bad.tsv", *WHOLE["train --replay"][8:]),  # noqa: E501
            "evaluate": ("evaluate", "bag", "bad.tsv", "--per-query"),
            "tune": ("tune", "sums", "bad.tsv", "--dry-run"),
            "calibrate": ("calibrate", "sums", "bad.tsv", "--dry-run"),
            "explain --log": ("explain", "bag", "hotels", "--log", "bad.tsv"),
            "diff --clicks": ("diff", "bag", "lstm", "--catalogue", "docs.tsv", "--clicks", "bad.tsv"),  # noqa: E501
            "index --log": ("index", "bag", "docs.tsv", "-o", "new", "--log", "bad.tsv"),
            "neighbours --log": ("neighbours", "bag", "hotels", "--log", "bad.tsv", "--min-uses", "1"),  # noqa: E501
            "synonyms --log": ("synonyms", "bag", "--log", "bad.tsv", "--min-uses", "1"),
        }.items():  # fmt: skip
            yield Case(
                f"shop texts: {name}, a log: {what}", argv, ANY, makes=MAKES, check=plain,
                setup=lambda box, text=log: (box / "bad.tsv").write_text(text, newline=""),
            )  # fmt: skip
    many = "".join(f"d{k}\n" for k in range(10_000))
    for what, ids in {
        "10,000": many,
        "none that is there": "x\n",
        "no": "",
        "CRLF": "d1\r\nd2\r\n",
    }.items():
        for folder in ("index", "sums", "index8"):
            yield Case(
                f"shop texts: {what} ids in --only, {folder}",
                ("search", folder, "hotels", "--only", "some.txt"), 0,
                setup=lambda box, ids=ids: (box / "some.txt").write_text(ids, newline=""),
            )  # fmt: skip
        yield Case(
            f"shop texts: {what} ids in --remove", ("index", "sums", "--remove", "some.txt"), ANY,
            setup=lambda box, ids=ids: (box / "some.txt").write_text(ids, newline=""),
            makes=OF_INDEX,
        )  # fmt: skip
    everything = "".join(f"d{k}\n" for k in range(6))
    for folder in ("index", "sums", "index8"):

        def empty(box, folder=folder):
            from sentemb.search.index import Index

            index = Index.open(box / folder, 1)
            index.remove(list(index.ids))
            index.save(box / folder, force=True)

        yield Case(
            f"shop texts: all titles of {folder} removed", ("index", folder, "--remove", "some.txt"),  # noqa: E501
            ANY, setup=lambda box: (box / "some.txt").write_text(everything),
            makes=OF_INDEX,
        )  # fmt: skip
        for name, argv in {
            "search": ("search", folder, "hotels"),
            "search --json": ("search", folder, "hotels", "--json", "-k", "3"),
            "explain": ("explain", folder, "hotels"),
            "--add": ("index", folder, "--add", "more.tsv", "-o", "new"),
            "tune": ("tune", folder, "held.tsv", "--dry-run"),
            "calibrate": ("calibrate", folder, "held.tsv", "--dry-run"),
            "rank": ("rank", "bag", "queries.tsv", folder),
        }.items():  # fmt: skip
            yield Case(
                f"shop texts: {name} of {folder} without titles", argv, ANY, setup=empty,
                makes=MAKES,
            )  # fmt: skip


TABLES = {
    "only a header": b"query,title\n",
    "a BOM": "\ufeffquery,title\nhotels,Rome\n".encode(),
    "CRLF": b"query,title\r\nhotels,Rome\r\n",
    "NULs": b"query,title\nho\0tels,Rome\n",
    "an open quote": b'query,title\n"hotels,Rome\nmaps,Oslo\n',
    "a huge open quote": b'query,title\n"' + b"hotels\n" * 99_999,
    "UTF-16": "query,title\nhotels,Rome\n".encode("utf-16"),
    "not UTF-8": b"query,title\ncaf\xe9,Rome\n",
    "a column twice": b"query,query,title\na,b,c\n",
    "rows of other lengths": b"query,title\na\na,b,c\n",
    "escapes": f"query,title\n{ESCAPES},{ESCAPES}\n".encode(),
    "escapes in its header": f"que{ESCAPES},title\na,b\n".encode(),
    "many columns": b"query,title" + b",x" * 50_000 + b"\na,b\n",
    "line ends in texts": b'query,title\n"hot\nels","Ro\tme"\n',
    "clicks that are none": b"query,title,n\na,b,-1\nc,d,nan\ne,f,1e400\ng,h,\n",
    "huge clicks": f"query,title,n\na,b,{2**63}\na,b,{10**12}\n".encode(),
    "JSON of lists": b'{"query": ["a"], "title": {"b": 1}}\n',
    "deep JSON": b"[" * 100_000 + b"\n",
    "JSON of surrogates": b'{"query": "\\ud800", "title": "b"}\n',
    "a Parquet file that is none": b"PAR1" + bytes(99) + b"PAR1",
    "packed": gzip.compress(b"query,title\nhotels,Rome\n"),
}


def places():
    for what, data in TABLES.items():
        for ending in ("csv", "jsonl", "parquet", "csv.gz"):
            for more in ((), ("--skip-bad-lines",), ("--clicks-column", "n", "--min-clicks", "2")):
                yield Case(
                    f"shop tables: {ending} {' '.join(more)}, {what}",
                    ("import", f"t.{ending}", "-o", "new.tsv", *more), ANY,
                    setup=lambda box, d=data, e=ending: (box / f"t.{e}").write_bytes(d),
                    makes=MAKES,
                )  # fmt: skip
    for what, argv in {
        "the log as its own output": ("import", "clicks.csv", "-o", "clicks.csv", "--force"),
        "two outputs in one": (*WHOLE["import"], "--write-catalogue", "new.tsv"),
        "an encoding of no kind": (*WHOLE["import"], "--encoding", "klingon"),
        "an encoding of bytes": (*WHOLE["import"], "--encoding", "base64"),
        "an empty encoding": (*WHOLE["import"], "--encoding", ""),
        "an encoding with NUL": (*WHOLE["import"], "--encoding", "utf-8-sig"),
        "a long delimiter": (*WHOLE["import"], "--delimiter", "ab"),
        "a delimiter of a line": (*WHOLE["import"], "--delimiter", "\n"),
        "a delimiter of a quote": (*WHOLE["import"], "--delimiter", '"'),
        "a delimiter of no letter": (*WHOLE["import"], "--delimiter", ""),
        "column 0": (*WHOLE["import"], "--query-column", "0"),
        "column 10**30": (*WHOLE["import"], "--query-column", HUGE),
        "no such column": (*WHOLE["import"], "--query-column", "x"),
        "no column": (*WHOLE["import"], "--query-column", ""),
        "one column twice": (*WHOLE["import"], "--query-column", "title"),
        "many files": ("import", *["clicks.csv"] * 99, "-o", "new.tsv"),
        "standard input twice": ("import", "-", "-", "-o", "new.tsv"),
        "split over its own log": ("split", "data/pairs.tsv", "-o", "data", "--force"),
        "split of a split": ("split", "log.tsv", "-o", "judged", "--force", "--dev", "30%"),
        "an index into its model": ("index", "bag", "docs.tsv", "-o", "bag/x"),
        "an index into itself": ("index", "index", "--add", "more.tsv", "-o", "index/x"),
        "an average of itself": ("average", "bag", "bag", "-o", "bag", "--force"),
        "an average of one": ("average", "bag", "-o", "new"),
        "an average of many": ("average", *["bag"] * 40, "-o", "new"),
        "replay of the same": (*WHOLE["train --replay"], "--replay", "new-words.tsv"),
        "replay without a start": ("train", "log.tsv", *QUICK, "-o", "new", "--replay", "log.tsv"),
        "replay of a pair model": (
            "train", "log.tsv", "--model", "arc2", "-o", "new", "--replay", "log.tsv",
        ),
        "dev share of a stream": ("train", "-", *QUICK, "-o", "new", "--dev", "30%"),
        "start from an index": ("train", "log.tsv", *QUICK, "-o", "new", "--start-from", "index"),
    }.items():  # fmt: skip
        yield Case(
            f"shop places: {what}", argv, ANY, stdin=b"query,title\na,b\n",
            makes=(*MAKES, "judged/*", "index/*", "bag/*"),
        )  # fmt: skip
    for name, to in (("not UTF-8", table.NOT_UTF8), ("blanks", "my index"), ("escapes", ESCAPES)):

        def named(box, to=to):
            shutil.move(box / "sums", box / table.os.fsdecode(to))

        for what, argv in {
            "search": ("search", to, "hotels"),
            "explain": ("explain", to, "hotels in rome"),
            "tune": ("tune", to, "held.tsv", "--dry-run"),
            "index --add": ("index", to, "--add", "more.tsv"),
            "calibrate": ("calibrate", to, "held.tsv"),
        }.items():  # fmt: skip
            shown = table._printable(to)
            yield Case(
                f"shop places: {what} of an index called {name}", argv, ANY if name != "blanks" else 0,  # noqa: E501
                setup=named, makes=(shown, f"{shown}/*"),
            )  # fmt: skip


def signals():
    for number, codes in ((signal.SIGINT, table.INTERRUPTED), (signal.SIGTERM, table.TERMINATED)):
        for name, argv in WHOLE.items():
            for fraction in (0.1, 0.5, 0.8, 0.95):
                yield Case(
                    f"shop signals: {name}, {number.name} after {fraction:.0%}", argv,
                    (*codes, 0) if fraction >= 0.8 else codes,
                    # The next command there removes what is left if even the tidying is stopped.
                    stop=(number, fraction),
                    makes=(*MAKES, ".sentemb-*.tmp*") if fraction > 0.9 else MAKES,
                )  # fmt: skip
        for name, argv in (
            ("index --add", ("index", "index", "--add", "more.tsv")),
            ("calibrate", ("calibrate", "sums", "held.tsv")),
        ):
            for fraction in (0.3, 0.7, 0.9, 0.97):
                yield Case(
                    f"shop signals: {name} in place, {number.name} after {fraction:.0%}", argv,
                    (*codes, 0), stop=(number, fraction), makes=OF_INDEX,
                )  # fmt: skip
        for name, (argv, _) in STANDARD_INPUT.items():
            yield Case(
                f"shop signals: {name}, {number.name} before standard input comes", argv, codes,
                stdin="endless", stop=(number, None),
            )  # fmt: skip
        for stdout in ("file", "closed", "broken"):
            # Without its standard output, nobody knows where it listens.
            yield Case(
                f"shop signals: serve, {number.name}, standard output {stdout}", SERVE,
                codes if stdout == "file" else (1, *BROKEN_PIPE[1:], *codes),
                stdout=stdout, stop=(number, None),
            )  # fmt: skip
