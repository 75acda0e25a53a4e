"""Model directories: written whole, read with every byte checked, nothing executed.

docs/formats.md describes the files. ``config.json`` stays the same while a model trains, so that
replacing ``model.safetensors`` alone is enough, and atomic.
"""

import contextlib
import hashlib
import json
from pathlib import Path

import numpy as np

from sentemb.errors import SentembError
from sentemb.files import replacing, unwritable
from sentemb.models import ENCODERS, make_encoder
from sentemb.sentence_encoder import SIDES, SentenceEncoder
from sentemb.text.vocabulary import Vocabulary
from sentemb.version import __version__

FORMAT = 2
_METADATA = "sentemb"
CONFIG, TENSORS, VOCABULARY, WORDS, CARD, HISTORY = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "words.txt",
    "README.md",
    "history.jsonl",
)


def is_model(path):
    """Whether a model stands in folder ``path``."""
    return (Path(path) / CONFIG).exists()


def save_model(model, path, force=False):
    """Write ``model`` to the folder ``path``: all of it, or, on a full disk, nothing."""
    path = Path(path)
    if not force and is_model(path):
        raise SentembError(f"{path}: a model is there already; choose another place or use --force")
    vocabulary = _lines(model.vocabulary.trigrams)
    words = _lines(model.vocabulary.words)
    config = {
        "format": FORMAT,
        "model": model.encoder.name,
        **model.encoder.settings(),
        "shared_towers": model.shared_towers,
        "dim": model.dim,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "vocabulary_sha256": _sha256(vocabulary.encode("utf-8")),
        "words_sha256": _sha256(words.encode("utf-8")),
        "training": model.training,
        "sentemb": __version__,
    }
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    texts = {
        CONFIG: text,
        VOCABULARY: vocabulary,
        WORDS: words,
        HISTORY: "".join(json.dumps(line) + "\n" for line in model.history),
        CARD: _card(model, path.resolve().name),
    }
    tensors = {}
    for side in SIDES[:1] if model.shared_towers else SIDES:
        prefix = "shared" if model.shared_towers else side
        for name, block in model.parameters()[side].items():
            tensors[f"{prefix}.{name}"] = np.ascontiguousarray(block)
    with contextlib.ExitStack() as stack:
        # On leaving they take their names, the last one first: the small files once the weights
        # are on the disk.
        for name, contents in texts.items():
            stack.enter_context(replacing(path / name)).write_bytes(contents.encode("utf-8"))
        write_tensors(path / TENSORS, tensors, {"config_sha256": _sha256(text.encode("utf-8"))})


def load_model(path, threads=None):
    """The `SentenceEncoder` in folder ``path``; a `SentembError` if it is not whole."""
    path = Path(path)
    if not path.is_dir() or not is_model(path):
        raise SentembError(
            f"{path}: no model is here ({CONFIG} is missing); train one with `sentemb train`"
        )
    text = _read(path / CONFIG)
    config = _config(path / CONFIG, text)
    vocabulary = Vocabulary(
        _checked_lines(path / VOCABULARY, config["vocabulary_sha256"]),
        # Models of format 1 know no words.
        _checked_lines(path / WORDS, config["words_sha256"]) if config["format"] > 1 else (),
    )
    try:
        shape = {key: config[key] for key in ENCODERS.get(config["model"], ()) if key in config}
        encoder = make_encoder(config["model"], **shape)
    except SentembError as error:
        raise _damaged(path / CONFIG, str(error)) from error
    tensors, metadata = read_tensors(path / TENSORS)
    if metadata.get("config_sha256") != _sha256(text):
        raise _damaged(path / TENSORS, f"it belongs to another {CONFIG}")
    weights = {}
    for side in SIDES[:1] if config["shared_towers"] else SIDES:
        shapes = encoder.shapes(len(vocabulary))
        weights[side] = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
        prefix = "shared" if config["shared_towers"] else side
        for name, block in encoder.blocks(weights[side]).items():
            tensor = tensors.pop(f"{prefix}.{name}", None)
            if tensor is None or tensor.shape != block.shape or tensor.dtype != np.float32:
                raise _damaged(path / TENSORS, f"{prefix}.{name} is missing or of another shape")
            block[...] = tensor
    if tensors:
        raise _damaged(path / TENSORS, f"it holds {next(iter(tensors))}, which is no part of it")
    weights.setdefault("document", weights["query"])
    return SentenceEncoder(
        encoder, vocabulary, weights, config["training"], _history(path), threads
    )


def write_tensors(path, tensors, metadata):
    """Write arrays as a safetensors file that knows the hash of its own contents."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    # One entry only: safetensors writes several in random order, and equal models should be equal
    # files.
    own = json.dumps({"contents": metadata, "sha256": _hash(tensors, metadata)})
    with replacing(path) as temporary:
        try:
            save_file(tensors, temporary, {_METADATA: own})
        except SafetensorError as error:
            raise unwritable(path, error) from error


def read_tensors(path):
    """The arrays and metadata of a file that `write_tensors` wrote, every byte checked."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as file:
            own = _json((file.metadata() or {}).get(_METADATA, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise _damaged(path, "it is missing") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _damaged(path, f"it is no whole safetensors file ({error})") from error
    metadata = own.get("contents") if isinstance(own, dict) else None
    if metadata is None or own.get("sha256") != _hash(tensors, metadata):
        raise _damaged(path, "its contents do not match their own checksum")
    return tensors, metadata


def _config(path, raw):
    try:
        config = _json(raw)
    except ValueError as error:
        raise _damaged(path, f"it is not JSON ({error})") from error
    if not isinstance(config, dict) or not isinstance(config.get("format"), int):
        raise SentembError(f"{path}: this is not the configuration of a sentemb model")
    if config["format"] > FORMAT:
        raise SentembError(
            f"{path}: written by a newer sentemb (format {config['format']}, this one reads up to "
            f"{FORMAT}); upgrade sentemb"
        )
    needed = {"model": str, "cells": int, "shared_towers": bool, "vocabulary_sha256": str}
    if config["format"] > 1:
        needed["words_sha256"] = str
    for key, kind in (needed | {"training": dict}).items():
        if not isinstance(config.get(key), kind):
            raise _damaged(path, f"{key} is missing or of the wrong kind")
    return config


def _lines(items):
    return "".join(f"{item}\n" for item in items)


def _checked_lines(path, sha256):
    raw = _read(path)
    if _sha256(raw) != sha256:
        raise _damaged(path, "it is not the file that the model was saved with")
    return raw.decode("utf-8").split("\n")[:-1]


def _history(path):
    if not (path / HISTORY).exists():
        return []
    try:
        history = [_json(line) for line in _read(path / HISTORY).decode("utf-8").splitlines()]
    except ValueError as error:
        raise _damaged(path / HISTORY, "it is not JSON lines") from error
    if not all(isinstance(line, dict) for line in history):
        raise _damaged(path / HISTORY, "a line is no JSON object")
    return history


def _read(path):
    try:
        return path.read_bytes()
    except OSError as error:
        raise _damaged(path, error.strerror) from error


def _damaged(path, why):
    return SentembError(
        f"{path}: the model is damaged: {why}; restore the file from a copy or train again"
    )


def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def _json(text):
    """`json.loads` whose every failure is a ValueError."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _hash(tensors, metadata):
    """SHA-256 over the metadata and names, types, shapes and bytes of all arrays."""
    digest = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
    for name in sorted(tensors):
        array = tensors[name]
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b"")
    return digest.hexdigest()


def _card(model, name):
    """The README.md of a model directory."""
    shape = ", ".join(f"{key} {value}" for key, value in model.encoder.settings().items())
    lines = [
        f"# {name}",
        "",
        f"A sentence-embedding model: {model.encoder.name} ({shape}), "
        f"{'one shared tower' if model.shared_towers else 'a query and a title tower'}, "
        f"{model.vocabulary}, {model.dim} dimensions.",
        "",
        "```python",
        "from sentemb import SentenceEncoder",
        "",
        f'model = SentenceEncoder.from_pretrained("{name}")',
        'model.score("a query", "a title")',
        "```",
        "",
    ]
    if model.training:
        lines += ["| training setting | value |", "| --- | --- |"]
        lines += [f"| {key} | {value} |" for key, value in model.training.items()]
        lines.append("")
    measured = [line for line in model.history if line.get("dev")]
    if measured:
        best = max(measured, key=lambda line: line["dev"]["ndcg@1"])
        figures = ", ".join(f"{key} {value:.3f}" for key, value in best["dev"].items())
        lines += [f"Best on the dev set after epoch {best['epoch']}: {figures}.", ""]
    return "\n".join(lines)
