"""Model folders and checkpoints taken apart, changed, and put together with right checksums.

All that the attacks know of the format of models stands here. Written from docs/formats.md without
the package's own writer, so that broken models can be written too.
"""

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

SIDES = ("query", "document")
DTYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U8": "u1"}
_NAMES = {np.dtype(code): name for name, code in DTYPES.items()}


@dataclass
class Raw:
    """A tensor as bytes, for types that NumPy does not have."""

    dtype: str
    shape: tuple
    data: bytes


@dataclass
class Parts:
    """What a model folder is made of.

    Attributes
    ----------
    config : dict or bytes
        Bytes are written as they are.
    vocabulary, words, history : bytes
    tensors : dict of ndarray or Raw
    """

    config: dict | bytes
    vocabulary: bytes
    words: bytes
    history: bytes
    tensors: dict = field(default_factory=dict)


def parts_of(model):
    """The `Parts` of a `SentenceEncoder`."""
    config = {
        "format": 1,
        "kind": "towers",
        "model": model.encoder.name,
        **model.encoder.settings(),
        "shared_towers": model.shared_towers,
        "dim": model.dim,
        "splitting": model.vocabulary.splitting,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "training": model.training,
        "sentemb": "0.1.0",
    }
    parameters = model.parameters()
    tensors = {
        f"{'shared' if model.shared_towers else side}.{name}": np.array(block)
        for side in (SIDES[:1] if model.shared_towers else SIDES)
        for name, block in parameters[side].items()
    }
    return Parts(
        config,
        _lines(model.vocabulary.trigrams),
        _lines(model.vocabulary.words),
        _lines(map(json.dumps, model.history)),
        tensors,
    )


def write_parts(parts, folder):
    """Write a model folder, every checksum right."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    config = parts.config
    if isinstance(config, dict):
        config = json.dumps(config, indent=2).encode() + b"\n"
    texts = {
        "vocabulary": np.frombuffer(parts.vocabulary, np.uint8),
        "words": np.frombuffer(parts.words, np.uint8),
    }
    inner = config.decode("utf-8", "surrogateescape").strip()
    history = parts.history.decode("utf-8", "surrogateescape").strip().split("\n")
    contents = f'{{"config": {inner}, "history": [{", ".join(filter(None, history))}]}}'
    weights = safetensors({**texts, **parts.tensors}, contents)
    for name, contents in {
        "config.json": config,
        "vocabulary.txt": parts.vocabulary,
        "words.txt": parts.words,
        "history.jsonl": parts.history,
        "README.md": b"# A model\n",
        "model.safetensors": weights,
    }.items():
        (folder / name).write_bytes(contents)


def safetensors(tensors, contents):
    """The bytes of a safetensors file that knows the digest of ``contents``, JSON as text."""
    try:
        plain = json.dumps(json.loads(contents), sort_keys=True)
    except (ValueError, RecursionError):
        plain = contents  # nobody can read it, so nobody can tell what its digest is
    digest = hashlib.sha256(plain.encode("utf-8", "surrogateescape"))
    header, blobs, at = {}, [], 0
    for name in sorted(tensors):
        tensor = tensors[name]
        if isinstance(tensor, Raw):
            dtype, shape, data = tensor.dtype, tensor.shape, tensor.data
        else:
            tensor = np.ascontiguousarray(tensor)
            dtype, shape, data = _NAMES[tensor.dtype], tensor.shape, tensor.tobytes()
        known = np.dtype(DTYPES[dtype]).name if dtype in DTYPES else dtype.lower()
        digest.update(f"{name} {known} {tuple(shape)}\n".encode("utf-8", "surrogatepass"))
        digest.update(data)
        header[name] = {
            "dtype": dtype,
            "shape": list(shape),
            "data_offsets": [at, at + len(data)],
        }
        blobs.append(data)
        at += len(data)
    own = f'{{"contents": {contents}, "sha256": "{digest.hexdigest()}"}}'
    text = json.dumps({"__metadata__": {"sentemb": own}, **header}, ensure_ascii=False)
    raw = text.encode("utf-8", "surrogateescape")
    raw += b" " * (-len(raw) % 8)
    return struct.pack("<Q", len(raw)) + raw + b"".join(blobs)


def rewrite_checkpoint(path, change):
    """Let ``change(arrays, progress)`` change a checkpoint; its checksum is right again."""
    arrays, progress = read_checkpoint(path)
    change(arrays, progress)
    Path(path).write_bytes(safetensors(arrays, json.dumps(progress)))


def read_checkpoint(path):
    """Arrays and progress of a checkpoint."""
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    progress = json.loads(header.pop("__metadata__")["sentemb"])["contents"]
    data = raw[8 + length :]
    arrays = {}
    for name, about in header.items():
        first, end = about["data_offsets"]
        array = np.frombuffer(data[first:end], DTYPES[about["dtype"]])
        arrays[name] = array.reshape(about["shape"]).copy()
    return arrays, progress


def _lines(items):
    return "".join(f"{item}\n" for item in items).encode()


# -- models with right checksums that must be refused ------------------------------------------


def _config(**changed):
    return lambda parts: parts.config.update(changed)


def _without(key):
    return lambda parts: parts.config.pop(key)


def _weights(change):
    """``change`` (a function of an array) for every tensor."""

    def craft(parts):
        parts.tensors = {name: change(array) for name, array in parts.tensors.items()}

    return craft


def _one_weight(value):
    def craft(parts):
        name = next(iter(parts.tensors))
        parts.tensors[name].flat[0] = value

    return craft


def _text(field, value):
    return lambda parts: setattr(parts, field, value)


def _extra(name, tensor):
    return lambda parts: parts.tensors.update({name: tensor})


def _raw_config(text):
    return lambda parts: setattr(parts, "config", text)


CRAFTED = {
    "cells true": _config(cells=True),
    "cells a fraction": _config(cells=1.0),
    "cells a text": _config(cells="1"),
    "cells 0": _config(cells=0),
    "cells -1": _config(cells=-1),
    "cells 10^9": _config(cells=10**9),
    "cells 10^30": _config(cells=10**30),
    "bag true": _config(bag_dim=True),
    "bag null": _config(bag_dim=None),
    "bag 10^9": _config(bag_dim=10**9),
    "peepholes a list": _config(peepholes=[]),
    "peepholes an object": _config(peepholes={}),
    "peepholes null": _config(peepholes=None),
    "forget_gate a number": _config(forget_gate=0),
    "forget_gate a text": _config(forget_gate="no"),
    "forget_gate a list": _config(forget_gate=[]),
    "shared_towers a number": _config(shared_towers=0),
    "model a list": _config(model=["lstm"]),
    "model unknown": _config(model="transformer"),
    "model of another kind": _config(model="rnn"),
    "format 0": _config(format=0),
    "format -1": _config(format=-1),
    "format true": _config(format=True),
    "format 1.0": _config(format=1.0),
    "format 99": _config(format=99),
    "training a list": _config(training=[]),
    "training null": _config(training=None),
    "without model": _without("model"),
    "without cells": _without("cells"),
    "without training": _without("training"),
    "config a list": _raw_config(b"[]"),
    "config nested deeply": _raw_config(b"[" * 100_000),
    "config of 5,000 digits": _raw_config(b'{"format": ' + b"9" * 5000 + b"}"),
    "config not UTF-8": _raw_config(b'{"format": 1, "model": "caf\xe9"}'),
    "vocabulary not UTF-8": _text("vocabulary", b"caf\xe9\n"),
    "words not UTF-8": _text("words", b"caf\xe9\n"),
    "vocabulary empty": _text("vocabulary", b""),
    "vocabulary too long": _text("vocabulary", b"abc\n" * 100_000),
    "NaN weights": _weights(lambda array: np.full_like(array, np.nan)),
    "one NaN": _one_weight(np.nan),
    "one infinite weight": _one_weight(np.inf),
    "float16 weights": _weights(lambda array: array.astype(np.float16)),
    "whole numbers for weights": _weights(lambda array: array.astype(np.int32)),
    "bfloat16 weights": _weights(lambda a: Raw("BF16", a.shape, bytes(2 * a.size))),
    "8-bit floats for weights": _weights(lambda a: Raw("F8_E4M3", a.shape, bytes(a.size))),
    "4-bit floats for weights": _weights(lambda a: Raw("F4", a.shape, bytes((a.size + 1) // 2))),
    "complex weights": _weights(lambda a: Raw("C64", a.shape, bytes(8 * a.size))),
    "flat weights": _weights(lambda array: array.reshape(-1)),
    "weights with one more axis": _weights(lambda array: array[None]),
    "a tensor too many": _extra("query.other", np.zeros(1, np.float32)),
    "an empty tensor with a huge axis": _extra("x", Raw("F32", (0, 1 << 60), b"")),
    "a tensor with escapes in its name": _extra("\x1b[31m\n", np.zeros(1, np.float32)),
    "a tensor with a name of 5,000 letters": _extra("n" * 5000, np.zeros(1, np.float32)),
    "no tensors": lambda parts: parts.tensors.clear(),
}


def write_crafted(name, folder):
    """The model folder called ``name`` in `CRAFTED`: whole but for what the name says."""
    parts = parts_of(_smallest())
    CRAFTED[name](parts)
    write_parts(parts, folder)


def _smallest():
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.models.towers import make_encoder
    from sentemb.text.batch import tokenize
    from sentemb.text.vocabulary import Vocabulary

    encoder = make_encoder("lstm", cells=1)
    vocabulary = Vocabulary.collect(tokenize(["hotels in rome"]), word_features=1)
    rng = np.random.default_rng(0)
    weights = {side: encoder.initialise(len(vocabulary), rng) for side in SIDES}
    return SentenceEncoder(encoder, vocabulary, weights, threads=1)


def parts_of_pair(model):
    """The `Parts` of a `PairScorer`."""
    config = {
        "format": 1,
        "kind": "pair",
        "model": model.model.name,
        **{
            key: list(value) if isinstance(value, tuple) else value
            for key, value in model.model.settings().items()
        },
        "splitting": model.vocabulary.splitting,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "training": model.training,
        "sentemb": "0.1.0",
    }
    return Parts(
        config,
        _lines(model.vocabulary.trigrams),
        _lines(model.vocabulary.words),
        _lines(map(json.dumps, model.history)),
        {f"pair.{name}": np.array(block) for name, block in model.parameters().items()},
    )


def _mean(parts):
    name = max(parts.tensors, key=lambda name: parts.tensors[name].size)
    return name, parts.tensors[name]


def _reshaped(change):
    """``change`` for the largest tensor."""

    def craft(parts):
        name, array = _mean(parts)
        parts.tensors[name] = change(array)

    return craft


PAIR_CRAFTED = {
    **{
        name: CRAFTED[name]
        for name in CRAFTED
        if not name.startswith(
            (
                "cells",
                "bag",
                "peepholes",
                "forget",
                "shared",
                "without cells",
                "model of",
            )
        )
    },
    **{
        f"{key} {value!r}"[:40]: _config(**{key: value})
        for key, values in {
            "kind": ("encoder", "towers", "pairs", None, 1, [], ""),
            "model": ("lstm", "arc3", "", 5),
            "embedding": (0, -1, 3, 5, True, 4.0, "4", None, [4], 10**9, 10**30),
            "nodes": (0, -1, 7, 15, True, 10.0, "10", None, 10**30),
            "maps": (
                [],
                [0],
                [3],
                [3, 2, 1],
                [True, 2],
                ["3", 2],
                3,
                None,
                "3,2",
                {},
                [[3], 2],
                [3.0, 2],
                [10**9] * 6,
            ),
            "max_words": (0, 1, 6, 8, 10, 11, 1000, 1001, True, 9.0, None, "9", 10**30),
            "window": (0, 1, 2, 4, 9, 10, True, None, "3"),
            "gate": ("or", "", None, 1, [], {}),
            "mlp": (0, 2, 4, True, None, 10**9),
            "mlp_layers": (0, 2, 5, True, None),
            "cells": (0, 3, 5, None, True),
            "shared_towers": (True, None, 1, "no"),
            "splitting": ("letters", 1, [], None),
        }.items()
        for value in values
    },
    "without maps": lambda parts: parts.config.pop("maps", None),
    "without max_words": lambda parts: parts.config.pop("max_words", None),
    "without kind": _without("kind"),
    "the largest tensor turned": _reshaped(lambda array: np.ascontiguousarray(array.T)),
    "the largest tensor of one row": _reshaped(lambda array: array[:1]),
    "the largest tensor missing": lambda parts: parts.tensors.pop(_mean(parts)[0]),
    "the largest tensor in float64": _reshaped(lambda array: array.astype(np.float64)),
    "float64 weights": _weights(lambda array: array.astype(np.float64)),
    "words twice": lambda parts: setattr(parts, "words", parts.words[: len(parts.words) // 2] * 2),
}


def write_crafted_pair(name, model, folder):
    """A pair model ``model`` of the samples, whole but for what ``name`` in `PAIR_CRAFTED` says."""
    from reliability.samples import make_scorer

    parts = parts_of_pair(make_scorer(model))
    PAIR_CRAFTED[name](parts)
    write_parts(parts, folder)
