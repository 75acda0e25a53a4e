"""An embedding that others have trained: an ONNX file with its tokeniser, without PyTorch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.bounds import is_integer
from sentemb.system.extras import package
from sentemb.system.files import is_file

_EXTRA = "embedding"
_TOKENISER = "tokenizer.json"
# Files of sentence-transformers next to the tokeniser; each may be missing.
_POOLING, _MODULES = "1_Pooling/config.json", "modules.json"
_PROMPTS = "config_sentence_transformers.json"
# Where the most tokens of a text are; version 6 writes the second.
_LENGTHS = {
    "sentence_bert_config.json": "max_seq_length",
    "tokenizer_config.json": "model_max_length",
}
_LONGEST = 512
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Layers of sentence-transformers that are done here, or make no difference to a cosine.
_LAYERS = (".Transformer", ".Pooling", ".Normalize")
# An output that is pooled already.
_POOLED = "sentence_embedding"
# Texts of one pass: sorted by length, so that few of their tokens are padding.
_TEXTS = 64
# The prompts of titles, the first that a model has.
_OF_TITLES = ("document", "passage", "corpus")


class OnnxEmbedding:
    """Vectors by an ONNX file, as sentence-transformers computes them from the same folder.

    ``tokenizer.json`` is next to the file or one folder above, and with it the settings of
    sentence-transformers: whether tokens are averaged or the first one counts, how long a text may
    be, and what is put before queries and titles.

    Parameters
    ----------
    path : Path
        The file, which takes input_ids and attention_mask and gives a vector per token or per text.

    Raises
    ------
    SentembError
        If a package or a file is missing, or the file is of another kind.
    """

    def __init__(self, path: Path) -> None:
        runtime = package("onnxruntime", _EXTRA, f"the embedding {path}")
        tokenizers = package("tokenizers", _EXTRA, f"the embedding {path}")
        folders = [each for each in (path.parent, path.parent.parent) if is_file(each / _TOKENISER)]
        if not is_file(path):
            raise SentembError(f"{path}: no such file; give an ONNX file")
        if not folders:
            raise SentembError(
                f"{path}: {_TOKENISER} is missing next to it; export the model with its tokeniser"
            )
        try:
            self._session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
            self._tokeniser = tokenizers.Tokenizer.from_file(str(folders[0] / _TOKENISER))
        except Exception as error:  # both have exceptions of their own
            raise SentembError(f"{path}: cannot be opened: {_first_line(error)}") from error
        self._inputs = [each.name for each in self._session.get_inputs()]
        unknown = set(self._inputs) - set(_INPUTS)
        if unknown:
            raise SentembError(
                f"{path}: takes {min(unknown)}; give a model of {', '.join(_INPUTS)}"
            )
        names = [each.name for each in self._session.get_outputs()]
        self._output = _POOLED if _POOLED in names else names[0]
        settings = _Settings(folders[0])
        self._takes_first = settings.takes_first()
        self._prompts = settings.prompts()
        self._tokeniser.no_padding()
        self._tokeniser.enable_truncation(settings.longest(self._tokeniser.truncation))

    def encode_query(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of queries, (n, dim)."""
        return self._vectors(texts, ["query"])

    def encode_document(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of titles, (n, dim)."""
        return self._vectors(texts, _OF_TITLES)

    def _vectors(self, texts: Sequence[str], prompts: Sequence[str]) -> NDArray[np.float32]:
        prompt = next((self._prompts[name] for name in prompts if name in self._prompts), "")
        read = self._tokeniser.encode_batch([prompt + text for text in texts])
        order = sorted(range(len(read)), key=lambda n: len(read[n].ids))
        blocks = [order[low : low + _TEXTS] for low in range(0, len(order), _TEXTS)]
        pooled = [self._pooled([read[n] for n in block]) for block in blocks]
        vectors = np.concatenate(pooled)
        return vectors[np.argsort(order, kind="stable")]

    def _pooled(self, read: Sequence[Any]) -> NDArray[np.float32]:
        shape = len(read), max(len(each.ids) for each in read)
        tokens = {name: np.zeros(shape, np.int64) for name in _INPUTS}
        for row, each in enumerate(read):
            columns = slice(len(each.ids))
            tokens["input_ids"][row, columns] = each.ids
            tokens["attention_mask"][row, columns] = 1
            tokens["token_type_ids"][row, columns] = each.type_ids
        given = {name: tokens[name] for name in self._inputs}
        (states,) = self._session.run([self._output], given)
        if states.ndim == 2:
            return np.asarray(states, np.float32)
        if self._takes_first:
            return np.asarray(states[:, 0], np.float32)
        mask = tokens["attention_mask"][:, :, None]
        sums, counts = (states * mask).sum(axis=1), np.maximum(mask.sum(axis=1), 1)
        return np.asarray(sums / counts, np.float32)


class _Settings:
    """The settings that sentence-transformers keeps next to a tokeniser."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for module in self._read(_MODULES) or ():
            kind = str(module.get("type"))
            if not kind.endswith(_LAYERS):
                raise SentembError(
                    f"{folder / _MODULES}: has the layer {kind}, which the ONNX file lacks; give "
                    "the folder, which sentence-transformers opens"
                )

    def _read(self, name: str) -> Any:
        path = self._folder / name
        if not is_file(path):
            return {}
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise SentembError(f"{path}: cannot be read: {error}") from None

    def takes_first(self) -> bool:
        """Whether the vector of a text is that of its first token, and not the mean of all."""
        pooling = self._read(_POOLING)
        # Version 6 writes the name, earlier versions a flag for each way.
        ways = {pooling.get("pooling_mode")} | {
            name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token")
            for name, value in pooling.items()
            if name.startswith("pooling_mode_") and value is True
        }
        ways.discard(None)
        if not ways <= {"mean", "cls"} or len(ways) > 1:
            raise SentembError(
                f"{self._folder / _POOLING}: tokens are pooled by {', '.join(sorted(ways))}; give "
                "the folder, which sentence-transformers opens"
            )
        return ways == {"cls"}

    def prompts(self) -> dict[str, str]:
        """The words that are put before a text, by the kind of text."""
        described = self._read(_PROMPTS)
        prompts = described.get("prompts") or {}
        default = prompts.get(described.get("default_prompt_name"), "")
        return dict.fromkeys(["query", *_OF_TITLES[:1]], default) | prompts

    def longest(self, truncation: Any) -> int:
        """The most tokens of a text."""
        lengths = [self._read(name).get(key) for name, key in _LENGTHS.items()]
        lengths.append((truncation or {}).get("max_length"))
        # A tokeniser without a limit has a huge number.
        return next((each for each in lengths if is_integer(each) and 0 < each < 2**31), _LONGEST)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
