"""The keyword arguments of ``encode``, most of them those of sentence-transformers.

They are checked here, and what they ask for is done here. Some ask for what a model does anyway:
they are accepted, so that code written for sentence-transformers runs, and any other value of
them is an error.
"""

import functools
import inspect
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Self, TypedDict, TypeVar

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.precision import PRECISIONS, in_precision
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.bounds import brief, whole
from sentemb.system.extras import package

F = TypeVar("F", bound=Callable[..., Any])

# What sentence-transformers calls the first argument, now and before.
_NAMES_OF_TEXTS = ("inputs", "sentences")
_MOST = 2**31 - 1
# So few texts that nobody asks how far they are.
_FEW = 2048
# Seconds: before a line that nobody asked for, between drawings, and between lines that stay where
# none can be redrawn.
_LONG, _OFTEN, _BETWEEN_LINES = 2.0, 0.2, 10.0


class EncodeKeywords(TypedDict, total=False):
    """All but ``convert_to_tensor``, on which the type of the result depends."""

    normalize_embeddings: bool
    truncate_dim: int | None
    precision: str | None
    show_progress_bar: bool | None
    task: str | None
    prompt_name: str | None
    prompt: str | None
    convert_to_numpy: bool
    output_value: str
    batch_size: int | None
    device: object
    pool: None
    chunk_size: int | None


_DEFAULTS: dict[str, Any] = {
    "normalize_embeddings": False,
    "truncate_dim": None,
    "precision": None,
    "show_progress_bar": None,
    "task": None,
    "prompt_name": None,
    "prompt": None,
    "convert_to_numpy": True,
    "convert_to_tensor": False,
    "output_value": "sentence_embedding",
    "batch_size": None,
    "device": None,
    "pool": None,
    "chunk_size": None,
}


def encodes(method: F) -> F:
    """Let a method take its ``texts`` as ``inputs`` or ``sentences`` too; write out its keywords.

    `inspect.signature`, and so notebooks, shows those of `EncodeKeywords` one by one.
    """

    @functools.wraps(method)
    def call(*arguments: Any, **keywords: Any) -> Any:
        if keywords:
            for name in _NAMES_OF_TEXTS:
                if name in keywords:
                    if "texts" in keywords or len(arguments) > 1:
                        raise SentembError(f"{name} and texts are the same; give one of them")
                    keywords["texts"] = keywords.pop(name)
        return method(*arguments, **keywords)

    signature = inspect.signature(method)
    types = EncodeKeywords.__annotations__ | {"convert_to_tensor": bool}
    keywords = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name]
        )
        for name, default in _DEFAULTS.items()
    ]
    named = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind != parameter.VAR_KEYWORD
    ]
    call.__signature__ = signature.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
    # With ``texts`` it takes what ``method`` takes.
    return call  # type: ignore[return-value]


@dataclass(frozen=True)
class EncodeOptions:
    """The options of a call of ``encode``, checked.

    side : which tower reads the texts
    unit_length : whether each vector is divided by its length
    dim : how many numbers of each vector are kept; None for all
    precision : one of `PRECISIONS`; None for the model's own
    torch : the package, if the result is one tensor or a list of tensors
    listed : whether several vectors are a list
    show : whether progress is shown; None: on a terminal, if it takes long
    """

    side: str = "query"
    unit_length: bool = False
    dim: int | None = None
    precision: str | None = None
    torch: Any = None
    listed: bool = False
    show: bool | None = None

    @classmethod
    def of(cls, side: str | None, keywords: dict[str, Any], dim: int) -> Self:
        """The options that ``keywords`` give, for vectors of ``dim`` numbers.

        Raises `SentembError` for a keyword that ``encode`` does not have, or a value that it cannot
        follow.
        """
        for name in keywords:
            if name not in _DEFAULTS:
                raise SentembError(f"encode has no {name}; it takes {', '.join(_DEFAULTS)}")
        given = _DEFAULTS | keywords
        _check_harmless(given)
        for name, default in _DEFAULTS.items():
            if isinstance(default, bool):
                _check_flag(name, given[name])
        precision, show = given["precision"], given["show_progress_bar"]
        if precision is not None and precision not in PRECISIONS:
            known = ", ".join(PRECISIONS)
            raise SentembError(f"precision is {brief(precision)}; give one of {known}")
        if show is not None:
            _check_flag("show_progress_bar", show)
        truncate_dim = given["truncate_dim"]
        if truncate_dim is not None:
            whole("truncate_dim", truncate_dim, 1, dim)
        tensor = given["convert_to_tensor"]
        torch = None
        if tensor or not given["convert_to_numpy"]:
            option = "convert_to_tensor" if tensor else "convert_to_numpy=False"
            torch = package("torch", "sentence-transformers", option)
        return cls(
            side_of(side, given["task"], given["prompt_name"]),
            given["normalize_embeddings"],
            truncate_dim,
            precision,
            torch,
            not tensor,
            show,
        )

    def finished(self, vectors: np.ndarray, depth: int) -> Any:
        """Embeddings (k, dim) in the form that is asked for: an array, a tensor or tensors.

        ``depth`` says in whose name to warn: 2 for the caller, 3 for its caller, and so on.
        """
        if self.dim is not None:
            vectors = np.ascontiguousarray(vectors[:, : self.dim])
        if self.unit_length:
            vectors = unit_rows(vectors)
        if self.precision is not None:
            vectors = in_precision(vectors, self.precision, depth + 1)
        if self.torch is None:
            return vectors
        tensor = self.torch.from_numpy(vectors)
        return list(tensor) if self.listed else tensor


# Made once: for a single text the time of making them counts.
_PLAIN = {side: EncodeOptions(side) for side in SIDES}


def plain_options(side: str | None) -> EncodeOptions:
    """The options of a call without keywords; `SentembError` if ``side`` is not a side or None."""
    return _PLAIN[SIDES[0] if side is None else side_of(side)]


def side_of(side: object, task: object = None, prompt_name: object = None) -> str:
    """The side that ``side``, ``task`` and ``prompt_name`` name; queries if none of them does.

    Raises `SentembError` if one of them is neither a side nor None, or if they name different
    sides.
    """
    if task is None and prompt_name is None and isinstance(side, str) and side in SIDES:
        return side
    named = {"side": side, "task": task, "prompt_name": prompt_name}
    given = {name: value for name, value in named.items() if value is not None}
    for name, value in given.items():
        if value not in SIDES:
            raise SentembError(f"{name} must be query or document, not {brief(value)}")
    if len(set(given.values())) > 1:
        choices = " and ".join(f"{name} {value}" for name, value in given.items())
        raise SentembError(f"{choices} are different towers; give one of them")
    return str(next(iter(given.values()), SIDES[0]))


def check_device(device: object) -> None:
    """Raise a `SentembError` unless ``device`` is the processor, or None."""
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise SentembError(
            f"device is {brief(device)}, and a model computes on the cpu; leave it out, and choose "
            "the number of threads when the model is loaded"
        )


def check_length(length: object) -> None:
    """Raise a `SentembError` unless ``length`` is None: texts are read as a whole."""
    if length is not None:
        raise SentembError("max_seq_length is None: a model reads texts as a whole; cut them first")


def _check_harmless(given: dict[str, Any]) -> None:
    """Check the keywords that change nothing."""
    if given["prompt"] not in (None, ""):
        raise SentembError(
            f"prompt is {brief(given['prompt'])}, and a model has no prompts; write the words into "
            "the texts, or give side='query' or 'document'"
        )
    for name in ("batch_size", "chunk_size"):
        if given[name] is not None:
            whole(name, given[name], 1, _MOST)
    check_device(given["device"])
    if given["pool"] is not None:
        raise SentembError("pool is of no use: a model has threads; choose them when it is loaded")
    output = given["output_value"]
    if output != _DEFAULTS["output_value"]:
        raise SentembError(
            f"output_value is {brief(output)}, and encode gives one vector per text; trace(text) "
            "gives the states after each word"
        )


def _check_flag(name: str, value: object) -> None:
    if not isinstance(value, bool | np.bool_):
        raise SentembError(f"{name} is {brief(value)}; give True or False")


def with_progress(parts: Iterable[list[str]], total: int, show: bool | None) -> Iterator[list[str]]:
    """``parts`` of ``total`` texts one by one, while standard error shows how many are done.

    If ``show`` is None, only a terminal shows it, and only after some seconds.
    """
    if show is False or (show is None and total <= _FEW):
        yield from parts
        return
    # A program that embeds a few texts need not load click, which draws.
    from sentemb.system.terminal import ProgressLine, is_terminal

    redraws = is_terminal()
    line = ProgressLine(_LONG if show is None else _OFTEN if redraws else _BETWEEN_LINES)
    began, done = time.monotonic(), 0
    try:
        for part in parts:
            yield part
            done += len(part)
            if line.is_due:
                line.draw(f"{done:,} of {total:,} texts")
                if show and not redraws:
                    line.note(f"{done:,} of {total:,} texts")
        if show:
            line.note(f"{total:,} texts, {time.monotonic() - began:.1f} seconds")
    finally:
        line.close()
