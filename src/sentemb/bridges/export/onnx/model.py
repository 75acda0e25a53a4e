"""A model as ONNX: a graph for each tower, the vocabulary, a tokeniser in Python, and examples."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from sentemb.bridges.export.destination import new_folder
from sentemb.bridges.export.onnx.characters import character_table
from sentemb.bridges.export.onnx.encoders import INPUTS, add_embeddings
from sentemb.bridges.export.onnx.graph import OPSET, Graph
from sentemb.bridges.export.onnx.tokeniser import Tokeniser
from sentemb.bridges.export.targets import Exported
from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import Towers, converted
from sentemb.system.contracts import Arrays
from sentemb.system.extras import package
from sentemb.system.files import write_text, writing
from sentemb.system.paths import AnyPath
from sentemb.system.tables import markdown_table
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import BARE, LETTERED, PLAIN, WHITE_SPACE
from sentemb.version import __version__

VOCABULARY, CHARACTERS, README = "vocabulary.txt", "characters.txt", "README.md"
PYTHON, EXAMPLES = "tokeniser.py", "examples.jsonl"
VECTORS = "vectors.bin"
# The file of each tower, and the one of shared towers.
TOWERS = {"query": "query.onnx", "document": "document.onnx"}
SHARED = "model.onnx"
# Texts that show how languages differ: cases, marks, white space, signs around words, scripts.
_EXAMPLES = (
    "",
    "cheap hotel in paris",
    "Cheap  HOTEL\tin Paris",
    "banana bandana",
    "(cheap) 'rooms', 50%! c++ .net ... a_b a-b",
    "cafe\u0301 caf\u00e9",
    "\u039f\u0394\u039f\u03a3 \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u03a3",
    "\u03a3.\u0391 \u0391\u03a3\u0301",
    "\u0130stanbul ISPARTA Stra\u00dfe \u1e9e \u01c5",
    "a\u00a0b\u2003c\u200bd\u001ce\u0085f\ufeffg",
    "\u4e0a\u6d77 \u9152\u5e97 \U0001f3e8 \U00010400",
    "1\u00b23 x\u0663y \u2167",
    "\uff35\uff33\uff22\u5145\u96fb\u5668\u3001",
    "\u767d(\u30ab\u3099\u30e9\u30b9) 1\u00bd\u2033 Foo\u2122",
    "\u0e04\u0e27\u0e32\u0e21\u0e23\u0e39\u0e49\u200b",
    "\u0e19\u0e49\u0e33 \u1781\u17d2\u1798\u17c2\u179a",
    "\u060c\u0645\u0631\u062d\u0628\u0627\u061f \u300c\u300d \u00ad I\u011eDIR",
)
# A message of protobuf has less than 2 GB; the graph itself is small.
_MOST_BYTES = (1 << 31) - (1 << 20)
_BARE = (
    "Replace U+200B by a blank, remove what is in `silent`, and bring the text into "
    "Unicode's form NFC, then each run of\n   characters that are not in `unchanged` "
    "into NFKC. Replace U+0130 and U+0131 by i. Lower-case the text and split it\n   at "
    "the characters in `space`. Cut each piece further, into runs that begin with a "
    "character in `unspaced` and\n   continue with such or with `marks`, and "
    "runs of others; what is in `separators` is left out. Of a run of\n   others, drop "
    "characters in `before` from its beginning, then those in `after` from its end; "
    "what is left is a word.\n   A run of `unspaced` is read as letters: an `unspaced` "
    "with the `marks` behind it, where U+17D2 takes an\n   `unspaced` behind it"
    " along. $words A piece without\n   any word is a word as it is, and a text without any is "
    "split at white space alone, as it is."
)
_SPLITTINGS = {
    WHITE_SPACE: "Lower-case the text and split it at the characters in `space`.",
    PLAIN: "Lower-case the text; its words are the runs of characters in `word`.",
    BARE: Template(_BARE).substitute(
        words="Every two neighbouring letters are a word, and so is a single letter."
    ),
    LETTERED: Template(_BARE).substitute(
        words="Every letter is a word, and behind it\n   the letter with the next one is another. "
        "But first, where two such letters\n   with U+2060 between them stand alone between "
        "characters in `space`, both are one word, and what is\n   before and behind are texts of "
        "their own."
    ),
}
# The tokeniser has this line replaced by the text of the module.
_IMPORT = "from sentemb.text.words import SPLITTINGS, letter_trigrams, without_edges\n"


def write(
    source: SentenceEncoder,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a model of two towers as a folder that runs without sentemb.

    Weights in float64 are rounded to float32. ``out`` is a new or empty folder, or with ``force``
    one that holds such an export, which is replaced. ``on_progress`` is not called: no titles are
    written.

    Raises `SentembError` if ``onnx`` is not installed; for weights that are not finite in float32,
    more than 2 GB of them, or an encoder that is not one of `sentemb.models.towers`; if ``out``
    holds something else or cannot be written.
    """
    onnx = package("onnx", "onnx", "--to onnx")
    towers, identity = source.towers, fingerprint(source.saved())
    files = {SHARED: "query"} if towers.shared else {name: side for side, name in TOWERS.items()}
    with new_folder(out, force) as folder:
        for name, side in files.items():
            with writing(folder / name) as file:
                file.write(_model(onnx, towers, side, identity))
        texts = {
            VOCABULARY: _vocabulary_file(towers.vocabulary),
            CHARACTERS: character_table(),
            PYTHON: _resource("tokeniser.py").replace(_IMPORT, _words_module()),
            README: _readme(source),
        }
        for name, text in texts.items():
            write_text(folder / name, text)
        extra_files = []
        if towers.vocabulary.vectors is not None:
            extra_files = [VECTORS]
            with writing(folder / VECTORS) as file:
                file.write(towers.vocabulary.vectors.vectors.astype("<f4").tobytes())
        # The tokeniser of the folder, which reads what was written there.
        write_text(folder / EXAMPLES, _examples(Tokeniser(folder)))
    notes = []
    if source.dtype != "float32":
        notes.append(f"the weights are {source.dtype}; the export has them in float32")
    return Exported(
        [Path(out) / name for name in (*files, *texts, *extra_files, EXAMPLES)], notes=notes
    )


def _model(onnx: Any, towers: Towers, side: str, identity: str) -> bytes:
    """One tower as the bytes of an ONNX file: equal towers give equal bytes."""
    encoder, weights = towers.encoder, _float32(towers.weights[side], side)
    graph = Graph(onnx)
    embedding = add_embeddings(graph, encoder, weights)
    metadata = {
        "sentemb_version": __version__,
        "model": encoder.name,
        "side": "both" if towers.shared else side,
        "dim": str(encoder.dim),
        "features": str(len(towers.vocabulary)),
        "splitting": towers.vocabulary.splitting,
        "normalisation": "unit length; zeros for a text without words",
        "fingerprint": identity,
    }
    model = graph.model(
        "sentemb",
        INPUTS,
        ("embedding", embedding, ["texts", encoder.dim]),
        metadata,
        ("sentemb", __version__),
    )
    return bytes(model.SerializeToString(deterministic=True))


def _float32(weights: Arrays, side: str) -> Arrays:
    """``weights`` in float32, checked."""
    size = sum(4 * array.size for array in weights.values())
    if size > _MOST_BYTES:
        raise SentembError(
            f"the {side} tower has {size / 1e9:.1f} GB of weights, and an ONNX file holds 2; train "
            "with fewer cells or a larger --word-features"
        )
    with np.errstate(over="ignore"):
        rounded = converted(weights, "float32")
    for name, array in rounded.items():
        if not np.isfinite(array).all():
            raise SentembError(
                f"{side}.{name} has a value that is not a finite number in float32; load the "
                "model again"
            )
    return rounded


def _vocabulary_file(vocabulary: Vocabulary) -> str:
    """The splitting and the number of trigrams, then a feature per line.

    With word vectors also the number of words, and last the words that have a vector.
    """
    first = [vocabulary.splitting, str(len(vocabulary.trigrams))]
    with_vectors: list[str] = []
    if vocabulary.vectors is not None:
        first.append(str(len(vocabulary.words)))
        with_vectors = vocabulary.vectors.words
    lines = [" ".join(first), *vocabulary.trigrams, *vocabulary.words, *with_vectors, ""]
    return "\n".join(lines)


def _words_module() -> str:
    """The text of `sentemb.text.words` without its docstring."""
    source = resources.files("sentemb.text").joinpath("words.py").read_text("utf-8")
    return source.partition("\n\n")[2]


def _resource(name: str) -> str:
    return resources.files("sentemb.bridges.export.onnx").joinpath(name).read_text("utf-8")


def _examples(tokeniser: Tokeniser) -> str:
    """A JSON object per text: its words, and the features of each with their counts."""
    rows = (
        {
            "text": text,
            "words": tokeniser.split(text),
            "features": [list(tokeniser.features(word).items()) for word in tokeniser.split(text)],
        }
        for text in _EXAMPLES
    )
    return "".join(json.dumps(row) + "\n" for row in rows)


def _readme(model: SentenceEncoder) -> str:
    if model.shared_towers:
        files = {f"`{SHARED}`": "the tower, which reads queries and titles"}
    else:
        files = {f"`{TOWERS['query']}`": "the tower that reads queries"}
        files[f"`{TOWERS['document']}`"] = "the tower that reads titles"
    files |= {
        f"`{PYTHON}`": "from texts to the inputs of the models",
        f"`{VOCABULARY}`": f"the features that the model knows: {model.vocabulary}",
    }
    if model.vocabulary.vectors is not None:
        files[f"`{VECTORS}`"] = "the vectors of words, for the tokeniser"
    files |= {
        f"`{CHARACTERS}`": "properties of characters, for a tokeniser in another language",
        f"`{EXAMPLES}`": "texts with their words and features, to test such a tokeniser",
    }
    return Template(_resource("readme.md")).substitute(
        kind=model.encoder.name,
        dim=model.dim,
        opset=OPSET,
        files="\n".join(markdown_table([("file", "content"), *files.items()], left=2)),
        query=SHARED if model.shared_towers else TOWERS["query"],
        document=SHARED if model.shared_towers else TOWERS["document"],
        splitting=_SPLITTINGS[model.vocabulary.splitting],
    )
