"""Model folders as earlier versions wrote them."""

import hashlib
import json

import numpy as np

from sentemb.storage.tensor_files import write_tensors


def write_format_2(model, folder, **changes):
    """Write ``model`` in format 2: configuration and vocabulary in files of their own.

    ``changes`` are put into the configuration; None leaves a key out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = "".join(f"{trigram}\n" for trigram in model.vocabulary.trigrams).encode()
    words = "".join(f"{word}\n" for word in model.vocabulary.words).encode()
    config = {
        "format": 2,
        "model": model.encoder.name,
        **model.encoder.settings(),
        "shared_towers": model.shared_towers,
        "dim": model.dim,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "vocabulary_sha256": hashlib.sha256(vocabulary).hexdigest(),
        "words_sha256": hashlib.sha256(words).hexdigest(),
        "training": model.training,
        "sentemb": "0.1.0",
        **changes,
    }
    text = json.dumps({k: v for k, v in config.items() if v is not None}, indent=2) + "\n"
    (folder / "config.json").write_text(text, encoding="utf-8")
    (folder / "vocabulary.txt").write_bytes(vocabulary)
    (folder / "words.txt").write_bytes(words)
    lines = "".join(json.dumps(line) + "\n" for line in model.history)
    (folder / "history.jsonl").write_text(lines, encoding="utf-8")
    tensors = {
        f"{'shared' if model.shared_towers else side}.{name}": np.ascontiguousarray(block)
        for side, weights in model.towers.each.items()
        for name, block in model.encoder.blocks(weights).items()
    }
    digest = hashlib.sha256(text.encode()).hexdigest()
    write_tensors(folder / "model.safetensors", tensors, {"config_sha256": digest})


def write_format_1(model, folder):
    """Write ``model``, which must not know words, in format 1: without ``words.txt``."""
    write_format_2(model, folder, format=1, words=None, words_sha256=None)
    (folder / "words.txt").unlink()
