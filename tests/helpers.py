"""Models and texts that several test files make up."""

import contextlib
import gc
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from unittest import mock

import numpy as np
import pytest

from sentemb.data.click_log import ClickLogBuilder
from sentemb.data.judged_set import JudgedSet
from sentemb.data.text_array import TextArray
from sentemb.models.files import tensor_files
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.pairs import make_pair_model
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers import make_encoder
from sentemb.search import filters, product_fields
from sentemb.search.expressions import ValueKind
from sentemb.search.index_fields import IndexFields
from sentemb.search.left import Left
from sentemb.search.segment import Segment
from sentemb.system.checked_files import checksum, sample
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.word_features import WordFeatures

LSTM_SETTINGS = [
    {"forget_gate": forget_gate, "peepholes": peepholes}
    for forget_gate in (False, True)
    for peepholes in ("none", "diagonal", "full")
]
WITHOUT_OUTPUT_GATE = [
    {"output_gate": False},
    {"output_gate": False, "peepholes": "diagonal"},
    {"output_gate": False, "forget_gate": True, "peepholes": "full"},
]
VARIANTS = [
    ("rnn", {}),
    *(("lstm", settings) for settings in LSTM_SETTINGS),
    ("bilstm", {}),
    ("bilstm", {"forget_gate": True, "peepholes": "full"}),
    ("lstm", {"bag_dim": 3}),
    *(("lstm", settings) for settings in WITHOUT_OUTPUT_GATE),
    ("irnn", {"bag_dim": 3}),
    ("bilstm", {"forget_gate": True, "peepholes": "full", "bag_dim": 3}),
]


FEED_FORWARD = [
    ("bag", {}),
    ("dssm", {"hidden": 7}),
    *(("clsm", {"hidden": 7, "window": window}) for window in (1, 3, 5)),
    ("dan", {"hidden": 7, "activation": "linear"}),
    ("dan", {"hidden": 7, "layers": 3}),
]


def variant_name(variant):
    """What pytest prints for one of `VARIANTS`."""
    name, settings = variant
    if (name, settings) in FEED_FORWARD:
        own = [str(settings[key]) for key in ("window", "activation", "layers") if key in settings]
        return "-".join([name, *own])
    forget = "-forget" if settings.get("forget_gate") else ""
    output = "" if settings.get("output_gate", True) else "-no-output"
    bag = "-bag" if settings.get("bag_dim") else ""
    return f"{name}{output}{forget}-{settings.get('peepholes', 'none')}{bag}"


def each_variant(variants=VARIANTS):
    """Keyword arguments of ``pytest.mark.parametrize`` for tests that take ``variant``."""
    return {"argnames": "variant", "argvalues": variants, "ids": map(variant_name, variants)}


def made_up_words(rng, count):
    """Words over a small alphabet, so that trigrams repeat within and between them."""
    return ["".join(rng.choice(list("abcd"), rng.integers(1, 8))) for _ in range(count)]


def made_up_texts(rng, lengths, n_words=30):
    """A text of each length, words repeated."""
    words = made_up_words(rng, n_words)
    return [" ".join(rng.choice(words, length)) for length in lengths]


def made_up_weights(encoder, n_trigrams, rng, dtype=np.float64, scale=0.5):
    """Weights with nothing at zero, small enough that no gate saturates."""
    weights = {}
    for name, shape in encoder.shapes(n_trigrams).items():
        array = scale * rng.standard_normal(shape)
        if name == "recurrent" or len(shape) == 4:
            array /= np.sqrt(encoder.cells)
        weights[name] = array.astype(dtype)
    return weights


def made_up_model(variant, texts, *, cells=5, dtype=np.float64, shared=False, seed=0, **settings):
    """A `SentenceEncoder` of one of `VARIANTS` that knows the trigrams of ``texts``."""
    name, own = variant
    rng = np.random.default_rng(seed)
    encoder = make_encoder(name, cells=cells, **own)
    vocabulary = Vocabulary.collect(tokenize(texts))
    weights = {"query": made_up_weights(encoder, len(vocabulary), rng, dtype)}
    weights["document"] = (
        weights["query"] if shared else made_up_weights(encoder, len(vocabulary), rng, dtype)
    )
    return SentenceEncoder(encoder, vocabulary, weights, threads=1, **settings)


def made_up_pair_model(texts, *, name="wordembed", seed=0, **settings):
    """A `PairScorer` in float32 that knows the trigrams of ``texts``."""
    vocabulary = Vocabulary.collect(tokenize(texts))
    model = make_pair_model(name, **{"embedding": 5, "mlp": 4, "max_words": 6, **settings})
    weights = model.initialise(len(vocabulary), np.random.default_rng(seed))
    return PairScorer(model, vocabulary, weights, threads=1)


def made_up_word_features(words, dim=4, seed=0):
    """Random vectors for every other of ``words``, and for some that need their bare form."""
    known = [word for word in dict.fromkeys(words) if not word.endswith(",")][::2]
    numbers = np.random.default_rng(seed).standard_normal((len(known), dim))
    return WordFeatures(known, numbers.astype(np.float16))


def relative_error(ours, theirs):
    """Largest difference, relative to the largest entry of ``theirs``."""
    return np.abs(ours - theirs).max(initial=0) / max(np.abs(theirs).max(initial=0), 1e-300)


def made_up_log(n_pairs=60, seed=0, skipped=False):
    """A click log on a few topics, with one query that has two clicked titles."""
    rng = np.random.default_rng(seed)
    topics = [made_up_words(rng, 6) for _ in range(8)]
    builder = ClickLogBuilder()
    for number in range(n_pairs):
        query = " ".join(rng.choice(topics[number % 8], rng.integers(1, 4)))
        title = " ".join(rng.choice(topics[number % 8], rng.integers(1, 6)))
        shown = [" ".join(rng.choice(topics[(number + 1) % 8], 3))] if skipped else []
        builder.add(query, title, int(rng.integers(1, 9)), shown)
    return builder.build()


def made_up_judged_set(log):
    """Every fifth query of ``log``: its clicked title, grade 1, against three others, grade 0."""
    chosen = np.arange(0, log.query_index.size, 5)
    titles = np.stack([log.title_index[(chosen + k) % log.query_index.size] for k in range(4)], 1)
    return JudgedSet(
        query_ids=[f"q{k}" for k in range(len(chosen))],
        queries=[log.queries[q] for q in log.query_index[chosen]],
        title_ids=[f"d{k}" for k in range(len(log.titles))],
        titles=list(log.titles),
        offsets=4 * np.arange(len(chosen) + 1),
        title_index=titles.ravel().astype(np.int32),
        grade=np.tile([1, 0, 0, 0], len(chosen)).astype(np.int32),
    )


def tree(folder):
    """Every path below ``folder`` with its bytes, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write_onet(folder, titles, alternates, reported, related, end="\n"):
    """A release of the O*NET database: its tables from lists of lines."""
    tables = {
        "Occupation Data.txt": ["O*NET-SOC Code\tTitle\tDescription", *titles],
        "Alternate Titles.txt": [
            "O*NET-SOC Code\tAlternate Title\tShort Title\tSource(s)",
            *alternates,
        ],
        "Sample of Reported Titles.txt": [
            "O*NET-SOC Code\tReported Job Title\tShown in My Next Move",
            *reported,
        ],
        "Related Occupations.txt": [
            "O*NET-SOC Code\tRelated O*NET-SOC Code\tRelatedness Tier\tIndex",
            *related,
        ],
        "Read Me.txt": ["O*NET 99.1 Database", "-----"],
    }
    folder.mkdir()
    for name, lines in tables.items():
        (folder / name).write_bytes("".join(f"{line}{end}" for line in lines).encode())


_NUMBER = re.compile(r"(?<![\w.])[+-]?(?:\d*\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+)(?![\w.])")


def assert_same_output(shown, printed, tolerance=3e-3):
    """A text is another one, up to the last digits of fractions.

    Processors without fused multiply-adds, and libraries that have the BLAS, differ in those.
    """
    assert len(shown.splitlines()) == len(printed.splitlines())
    for line, result in zip(shown.splitlines(), printed.splitlines(), strict=True):
        assert _NUMBER.sub("", line) == _NUMBER.sub("", result)
        numbers, results = (list(map(float, _NUMBER.findall(text))) for text in (line, result))
        assert numbers == pytest.approx(results, tolerance, tolerance)


def failing_calls(monkeypatch, names, count, error):
    """Let call number ``count`` of the functions ``names`` of `os` raise ``error``.

    Returns the list that their calls are noted in.
    """
    calls = []

    def failing(whole):
        def function(*arguments, **more):
            calls.append((whole.__name__, *map(str, arguments)))
            if len(calls) == count:
                raise error
            return whole(*arguments, **more)

        return function

    for name in names:
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    return calls


@contextlib.contextmanager
def full_disk(size):
    """In the body no file grows beyond ``size`` bytes, which fails as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # What is imported meanwhile would leave bytecode that is cut off, for every later process.
    with mock.patch.object(sys, "dont_write_bytecode", True):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def run_python(code, *arguments, check=False, **environment):
    """Run ``code`` in a fresh interpreter, with ``environment`` added to this one's."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=check,
        timeout=300,
    )


def forked(code, *arguments, cache=None, **settings):
    """A `Popen` that runs ``code`` as ``python -c`` would, in a fork that has Numba already.

    To start another interpreter and import Numba takes half a second of a processor. With ``cache``
    the fork imports the package again, which keeps its kernels in that folder; "" is the usual one.
    """

    def run():
        os.closerange(3, 1 << 16)
        gc.freeze()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        sys.stdin, sys.stdout, sys.stderr = map(open, range(3), "rww")
        sys.argv, status = ["-c", *map(str, arguments)], 1
        if cache is not None:
            os.environ["NUMBA_CACHE_DIR"] = str(cache) or os.environ.get("NUMBA_CACHE_DIR", "")
            for name in [name for name in sys.modules if name.split(".")[0] == "sentemb"]:
                del sys.modules[name]
        try:
            exec(code, {"__name__": "__main__"})
            status = 0
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
            else:
                status = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)

    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable], preexec_fn=run, **pipes | settings)


def run_forked(code, *arguments, cache=None):
    """Run ``code`` to its end as `forked` does: its exit code, and what it said."""
    with forked(code, *arguments, cache=cache) as process:
        said, complained = process.communicate(timeout=300)
        return subprocess.CompletedProcess(code, process.returncode, said, complained)


def write_any_tensors(path, tensors, metadata):
    """`write_tensors` also of values that it refuses."""
    with mock.patch.object(tensor_files, "_is_moderate", return_value=True):
        tensor_files.write_tensors(path, tensors, metadata)


def fields_of_index(*fields):
    """The fields of an index with one segment for each of ``fields``."""
    segments = [Segment(TextArray.of([]), None, each, Left(each.count)) for each in fields]
    return IndexFields(segments)


def joined_fields(first, second, ids):
    """The fields of an index with those of more titles, as `Index.add` joins them."""
    types = fields_of_index(first).joined_types(second, ids)
    return fields_of_index(first.as_types(types), second.as_types(types)).as_one()


def list_again(folder):
    """Let the description of an index list its files as they are, as a hostile sender would."""
    path = folder / "index.json"
    told = json.loads(path.read_text())
    for name in told["files"]:
        told["files"][name] = {**checksum(folder / name), "sample": sample(folder / name)}
    path.write_text(json.dumps(told))


def with_slow_function(monkeypatch, fields, seconds):
    """Let conditions on fields call a function that only waits."""
    slow = filters._Function((ValueKind.NUMBER,), ValueKind.NUMBER, 1)
    monkeypatch.setitem(filters._FUNCTIONS, "slow", slow)
    monkeypatch.setattr(product_fields, "_FUNCTIONS", product_fields._FUNCTIONS | {"slow"})
    opened = product_fields.ProductFields._opened

    def opened_with(self):
        reader = opened(self)

        def wait(value):
            time.sleep(seconds)
            return value

        reader.base.create_function("slow", 1, wait)
        return reader

    monkeypatch.setattr(product_fields.ProductFields, "_opened", opened_with)
    fields._local = threading.local()


class WordSums:
    """An embedding for tests: sums of random vectors of words, others for queries and titles."""

    def __init__(self, dim=10, seed=0):
        self.dim, self.seed = dim, seed

    def encode_query(self, texts):
        return [self._sum(text, 1) for text in texts]

    def encode_document(self, texts):
        return [self._sum(text, 0.5) for text in texts]

    def _sum(self, text, share):
        total = np.zeros(self.dim)
        for word in text.lower().split():
            key = [self.seed, *word.encode()]
            own, other = np.random.default_rng(key).standard_normal((2, self.dim))
            total += share * own + (1 - share) * other
        return total
