"""The public face of a trained model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError, naming
from sentemb.models.encode_options import (
    EncodeKeywords,
    EncodeOptions,
    check_device,
    check_length,
    encodes,
    plain_options,
    with_progress,
)
from sentemb.models.face import Face, warn_of_texts
from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.towers.encoder import Embed, Encoder
from sentemb.models.towers.ensemble import joined
from sentemb.models.towers.inference import FEW_TEXTS, EmbedLSTM
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.towers import SIDES, Towers
from sentemb.models.words.word_memory import WordMemory
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import cosines, indexed_dots, pairwise_cosines, unit_rows
from sentemb.system.contracts import Arrays
from sentemb.system.html_tables import html_table, shade
from sentemb.system.parallel import signals_from_kernels
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_pairs, as_text, as_texts
from sentemb.text.portions import portions
from sentemb.text.vocabulary import Vocabulary

Texts: TypeAlias = str | Sequence[str]
# Embeddings (k, dim); whether the model knows a word of each text, (k,), None if it knows one of
# every text; how many texts have no words at all. A plain tuple: a single text takes a few
# microseconds.
_Read: TypeAlias = tuple[np.ndarray, NDArray[np.bool_] | None, int]

# Texts and characters of one pass at most: enough work for all threads, little memory.
_PASS_TEXTS = 8192
_PASS_CHARACTERS = 1 << 20


@dataclass(frozen=True)
class GateTrace:
    """The inside of a tower while it reads one text, word by word.

    Attributes
    ----------
    words : list of str
        In reading order, length T.
    y, c, i, o, y_g, f : (T, n) float, or None where the model does not have it
        Output, cell, input gate, output gate, candidate and forget gate after each word. In a
        bidirectional model the columns of the left-to-right cells come first, then those of the
        right-to-left cells; each row is what both held after reading that row's word. The y of an
        irnn is not yet divided by the number of words.
    """

    words: list[str]
    y: np.ndarray
    c: np.ndarray | None = None
    i: np.ndarray | None = None
    o: np.ndarray | None = None
    y_g: np.ndarray | None = None
    f: np.ndarray | None = None

    def _repr_html_(self) -> str:
        """The mean of each gate and the length of the output after each word, for notebooks."""
        rows = [
            (name, values.mean(axis=1))
            for name, values in (
                ("input gate, mean", self.i),
                ("forget gate, mean", self.f),
                ("output gate, mean", self.o),
            )
            if values is not None
        ]
        lengths = np.linalg.norm(self.y, axis=1)
        rows.append(("length of the output", lengths))
        longest = max(lengths.max(), np.finfo(float).tiny)
        return html_table(
            [(name, *(f"{value:.2f}" for value in values)) for name, values in rows],
            ["", *self.words],
            [
                [shade(value / longest if values is lengths else value) for value in values]
                for _, values in rows
            ],
        )


class SentenceEncoder(Face):
    """A model with two towers, one for queries and one for titles, and the vocabulary they share.

    Load one with ``SentenceEncoder("folder")`` or `from_pretrained`, or train one with
    `sentemb.train`. Several threads may use one model; it can be pickled and copied, and it works
    in a forked process.

    Parameters
    ----------
    encoder : path or Encoder
        A model folder, which also has everything else; or the shape of both towers.
    vocabulary : Vocabulary, optional
        With an Encoder only, as are all below but ``threads``.
    weights : dict, optional
        ``weights["query"]`` and ``weights["document"]``, stacked arrays as the encoder
        describes them; one and the same dict for shared towers.
    training : dict, optional
        How it was trained, for the model card.
    history : list of dict, optional
        One entry per epoch of the training.
    threads : int, optional
        By default all processors.

    Attributes
    ----------
    towers : Towers
        Encoder, vocabulary and weights.
    """

    def __init__(
        self,
        encoder: Encoder | AnyPath,
        vocabulary: Vocabulary | None = None,
        weights: dict[str, Arrays] | None = None,
        training: dict[str, Any] | None = None,
        history: Iterable[dict[str, Any]] = (),
        threads: int | None = None,
    ) -> None:
        if isinstance(encoder, Encoder):
            if vocabulary is None or weights is None:
                raise SentembError("an Encoder needs vocabulary and weights; or give a folder")
            self.towers = Towers(encoder, vocabulary, weights)
        else:
            if vocabulary is not None or weights is not None:
                raise SentembError("a model folder has its own vocabulary and weights; leave yours")
            saved = load_model(encoder)
            with naming(encoder):
                self.towers = saved.towers()
            training, history = saved.training, saved.history
        super().__init__(training, history, threads)

    def _parts(self) -> dict[str, Any]:
        return {"encoder": self.encoder, "vocabulary": self.vocabulary, "weights": self.weights}

    def _facts(self) -> dict[str, object]:
        towers = "shared" if self.shared_towers else "separate"
        return {"towers": towers, "length of an embedding": self.dim}

    # -- storage ------------------------------------------------------------------------------

    @classmethod
    def of(cls, saved: SavedModel, threads: int | None = None) -> Self:
        """The model from the contents of its folder; the inverse of `saved`."""
        towers = saved.towers()
        parts = towers.encoder, towers.vocabulary, towers.weights
        return cls(*parts, saved.training, saved.history, threads)

    @classmethod
    def average(cls, models: Sequence[Self]) -> Self:
        """Several models as one, whose cosine is the mean of theirs.

        The embeddings of the members, each of unit length, are joined to one vector.

        Parameters
        ----------
        models : sequence of SentenceEncoder
            At least two, for example trained from different seeds. They are copied.

        Returns
        -------
        SentenceEncoder
            It can be stored, indexed and evaluated like any other, and not trained further.

        Raises
        ------
        SentembError
            If there are fewer than two, if one is not a `SentenceEncoder` or is an average itself,
            or if they split texts differently.
        """
        wrong = [model for model in models if not isinstance(model, SentenceEncoder)]
        if wrong:
            raise SentembError(
                f"an average is of models with two towers, not of {type(wrong[0]).__name__}"
            )
        return cls.of(SavedModel(joined([model.towers for model in models])))

    def saved(self) -> SavedModel:
        """The contents of its folder: the towers, how they were trained, and the history."""
        return SavedModel(self.towers, self.training, self.history)

    # -- parts --------------------------------------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        """The shape of both towers."""
        return self.towers.encoder

    @property
    def shape(self) -> Encoder:
        """The same as `encoder`."""
        return self.towers.encoder

    def weight_sets(self) -> list[Arrays]:
        """The weights of each tower, those of a shared tower once."""
        return list(self.towers.each.values())

    @property
    def vocabulary(self) -> Vocabulary:
        """Letter trigrams and words that have rows in the input weights."""
        return self.towers.vocabulary

    @property
    def weights(self) -> dict[str, Arrays]:
        """Stacked arrays of each side; `parameters` has them under the paper's names."""
        return self.towers.weights

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return self.encoder.dim

    @property
    def dtype(self) -> np.dtype:
        """Type of weights and embeddings: float32, or float64 after `astype`."""
        return self.towers.dtype

    @property
    def shared_towers(self) -> bool:
        """Whether one tower reads queries and titles."""
        return self.towers.shared

    def parameters(self) -> dict[str, Arrays]:
        """Every parameter under the paper's name: ``parameters()["query"]["Wrec1"]``, ...

        Returns
        -------
        dict of dict of ndarray
            Views: writing to them changes the model. W_g (n, d), Wrec_g (n, n), b_g (n,), Wp_k
            (n, n) or (n,). With shared towers both sides are the same arrays.
        """
        # The caller may write to these views at any time, which would make remembered words stale.
        self._may_remember = False
        return self.towers.parameters()

    # -- embeddings ---------------------------------------------------------------------------

    @overload
    def encode_query(
        self,
        texts: Texts,
        *,
        convert_to_tensor: Literal[False] = ...,
        **keywords: Unpack[EncodeKeywords],
    ) -> np.ndarray: ...
    @overload
    def encode_query(
        self, texts: Texts, *, convert_to_tensor: bool, **keywords: Unpack[EncodeKeywords]
    ) -> Any: ...

    @encodes
    def encode_query(self, texts: Texts, **keywords: Any) -> np.ndarray:
        """Embeddings of queries; see `encode`."""
        return self._encoded(texts, "query", keywords)

    @overload
    def encode_document(
        self,
        texts: Texts,
        *,
        convert_to_tensor: Literal[False] = ...,
        **keywords: Unpack[EncodeKeywords],
    ) -> np.ndarray: ...
    @overload
    def encode_document(
        self, texts: Texts, *, convert_to_tensor: bool, **keywords: Unpack[EncodeKeywords]
    ) -> Any: ...

    @encodes
    def encode_document(self, texts: Texts, **keywords: Any) -> np.ndarray:
        """Embeddings of titles; see `encode`."""
        return self._encoded(texts, "document", keywords)

    @overload
    def encode(
        self,
        texts: Texts,
        side: str | None = ...,
        *,
        convert_to_tensor: Literal[False] = ...,
        **keywords: Unpack[EncodeKeywords],
    ) -> np.ndarray: ...
    @overload
    def encode(
        self,
        texts: Texts,
        side: str | None = ...,
        *,
        convert_to_tensor: bool,
        **keywords: Unpack[EncodeKeywords],
    ) -> Any: ...

    @encodes
    def encode(self, texts: Texts, side: str | None = None, **keywords: Any) -> np.ndarray:
        """Embed texts: for a recurrent encoder, y after the last word, then the bag if it has one.

        The keywords are those of sentence-transformers.

        Parameters
        ----------
        texts : str or list of str
            One text, or a list of them. As a keyword it may also be called ``inputs`` or
            ``sentences``.
        side : {"query", "document"}, optional
            Which tower reads them, by default that of queries. ``task`` and ``prompt_name`` are
            other names for it.
        **keywords
            The other parameters.

        Returns
        -------
        ndarray
            (dim,) for one text, (k, dim) for a list, of the model's dtype. A text without words
            gives zeros, and a warning says how many there were; another counts texts without
            a word that the model knows.

        Raises
        ------
        SentembError
            If ``side`` is unknown, ``texts`` is not one text or a list of texts, or for a keyword
            or a value that is not listed here.

        Other Parameters
        ----------------
        normalize_embeddings : bool
            Divide each vector by its length, so that a dot product is the cosine.
        truncate_dim : int, optional
            Keep this many numbers of each vector. They are not ordered by importance.
        precision : {"float32", "float16", "int8", "uint8", "binary", "ubinary"}, optional
            By default the model's own. See `sentemb.models.words.precision.in_precision`: ``int8``
            and ``uint8`` are scaled by the texts of the call, so vectors of two calls do not
            compare.
        show_progress_bar : bool, optional
            Show progress on standard error; by default on a terminal, if it takes some seconds.
        task, prompt_name : {"query", "document"}, optional
            Other names for ``side``.
        convert_to_tensor : bool
            Return a tensor of PyTorch.
        convert_to_numpy : bool
            If False, return a list of tensors.
        batch_size, chunk_size, device, pool, prompt, output_value
            Accepted where they ask for what a model does anyway: one vector per text, computed on
            the cpu in batches that it chooses itself, without a prompt.
        """
        return self._encoded(texts, side, keywords)

    def _encoded(self, texts: Texts, side: str | None, keywords: dict[str, Any]) -> np.ndarray:
        """`encode`, called by a decorated method."""
        options = EncodeOptions.of(side, keywords, self.dim) if keywords else plain_options(side)
        single = isinstance(texts, str)
        listed = [texts] if isinstance(texts, str) else as_texts(texts)
        vectors, is_known, without_words = self._encode(listed, options.side, options.show)
        if is_known is not None:
            lost, vague = "their vectors are zero", "their vectors say nothing about them"
            _warn(is_known, without_words, lost, vague)
        # An array, unless tensors are asked for: the overloads say which.
        finished: np.ndarray = options.finished(vectors, depth=5)
        return finished[0] if single else finished

    def unit_vectors(self, texts: Sequence[str], side: str) -> np.ndarray:
        """Embeddings of unit length, zero for a text without a word that the model knows.

        For rankings, which must not treat such texts as alike: no warning is given.

        Parameters
        ----------
        texts : list of str
            The texts.
        side : {"query", "document"}
            Which tower reads them.

        Returns
        -------
        (k, dim) ndarray
            Of the model's dtype.
        """
        _check_side(side)
        return self._units(as_texts(texts), side)[0]

    def _units(self, texts: list[str], side: str) -> _Read:
        """`unit_vectors`, with what else `_encode` returns."""
        vectors, is_known, without_words = self._encode(texts, side)
        units = unit_rows(vectors)
        if is_known is not None:
            units[~is_known] = 0
        return units, is_known, without_words

    def _encode(self, texts: list[str], side: str, show: bool | None = False) -> _Read:
        """The embeddings of a list of texts, and which texts have known words."""
        parts = [texts] if len(texts) == 1 else list(portions(texts, _PASS_TEXTS, _PASS_CHARACTERS))
        with self._turn, signals_from_kernels():
            tower = self._tower(side)
            if len(parts) == 1 and not show:
                return self._pass(texts, *tower)
            vectors = np.empty((len(texts), self.dim), self.dtype)
            is_known = np.ones(len(texts), np.bool_)
            end = without_words = 0
            for part in with_progress(parts, len(texts), show):
                first, end = end, end + len(part)
                of_part, known, n_empty = self._pass(part, *tower)
                self._workers.catch_up()
                self._workers.meanwhile(np.copyto, vectors[first:end], of_part)
                if known is not None:
                    is_known[first:end] = known
                without_words += n_empty
            self._workers.catch_up()
        return vectors, None if is_known.all() else is_known, without_words

    def _pass(self, texts: list[str], memory: WordMemory, embed: Embed) -> _Read:
        if isinstance(embed, EmbedLSTM) and 0 < len(texts) <= FEW_TEXTS:
            few = embed.few(len(texts), memory.arguments(texts))
            if few is not None:
                return few, None, 0
        read = memory.look_up(texts, self._workers)
        vectors = embed(read.P, read.word_index, read.offsets, self._workers)
        if read.n_known is None:
            return vectors, None, 0
        return vectors, read.n_known > 0, int(read.without_words().sum())

    def _tower(self, side: str) -> tuple[WordMemory, Embed]:
        """The words that one side remembers, and its encoder for texts."""
        return self._cached(side, self._prepare, side)

    def _prepare(self, side: str) -> tuple[WordMemory, Embed]:
        if self.shared_towers and side != SIDES[0]:
            return self._tower(SIDES[0])
        weights = self.weights[side]
        memory = WordMemory(self.encoder, self.vocabulary, weights)
        return memory, self.encoder.embedder(weights)

    def similarity(self, a: ArrayLike, b: ArrayLike) -> np.ndarray:
        """Cosine of every vector in ``a`` with every vector in ``b``.

        Parameters
        ----------
        a, b : (k, dim), (l, dim) float
            A single vector counts as one row.

        Returns
        -------
        (k, l) float
            0 with a zero vector.

        Raises
        ------
        SentembError
            If the vectors differ in length, or a value is not a finite number.
        """
        return cosines(a, b)

    def similarity_pairwise(self, a: ArrayLike, b: ArrayLike) -> np.ndarray:
        """Cosine of each vector in ``a`` with the vector in the same row of ``b``.

        Parameters
        ----------
        a, b : (k, dim) float
            Vectors, one per row.

        Returns
        -------
        (k,) float

        Raises
        ------
        SentembError
            If the shapes differ, or a value is not a finite number.
        """
        return pairwise_cosines(a, b)

    # -- names of sentence-transformers ---------------------------------------------------------

    @property
    def similarity_fn_name(self) -> str:
        """The function that `similarity` computes: the cosine."""
        return "cosine"

    @property
    def max_seq_length(self) -> None:
        """None: texts are read as a whole."""
        return None

    @max_seq_length.setter
    def max_seq_length(self, length: None) -> None:
        check_length(length)

    @property
    def device(self) -> str:
        """The device of the model: the cpu."""
        return "cpu"

    def to(self, device: object) -> Self:
        """The model itself, if ``device`` is the cpu.

        Raises
        ------
        SentembError
            For another device.
        """
        check_device(device)
        return self

    def eval(self) -> Self:
        """The model itself: encoding never changes it."""
        return self

    def get_embedding_dimension(self) -> int:
        """`dim`."""
        return self.dim

    def get_sentence_embedding_dimension(self) -> int:
        """`dim`, under the former name of sentence-transformers."""
        return self.dim

    # -- scores -------------------------------------------------------------------------------

    def _compared(self, texts: list[str], side: str) -> np.ndarray:
        """`unit_vectors`, with a warning in the name of the caller of `score` or `rank`."""
        units, is_known, without_words = self._units(texts, side)
        if is_known is not None:
            _warn(is_known, without_words, "their scores are 0", "their scores are 0")
        return units

    def _scores(self, queries: list[str], titles: list[str]) -> np.ndarray:
        Q, T = self._compared(queries, SIDES[0]), self._compared(titles, SIDES[1])
        scores: np.ndarray = Q @ T.T
        # What is not a finite number is looked for only if it has left a trace: a pair is quick.
        return scores if np.isfinite(scores).all() else self.similarity(Q, T)

    def _best(
        self, queries: list[str], titles: list[str], k: int
    ) -> tuple[NDArray[np.int64], np.ndarray]:
        return nearest(self._compared(queries, SIDES[0]), self._compared(titles, SIDES[1]), k)

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Cosines of some pairs out of many texts; see `sentemb.models.contracts.Ranker`.

        Parameters
        ----------
        queries, titles : list of str
            The texts that pairs are made of.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``titles[title_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better; 0 where a text has no known words.

        Raises
        ------
        SentembError
            For what is not a list of texts, or indices that are not integers within the texts.
        """
        first, second = as_texts(queries), as_texts(titles)
        pairs = as_pairs(query_index, title_index, len(first), len(second))
        units = self.unit_vectors(first, "query"), self.unit_vectors(second, "document")
        return indexed_dots(*units, *pairs)

    # -- what happens inside ------------------------------------------------------------------

    def trace(self, text: str, side: str = "query") -> GateTrace:
        """The gates, cell state and output after every word of a text.

        Parameters
        ----------
        text : str
            A text with at least one word.
        side : {"query", "document"}
            Which tower reads it.

        Raises
        ------
        SentembError
            If the model is not recurrent, or the text has no words.
        """
        _check_side(side)
        encoder = self.encoder
        if not isinstance(encoder, RecurrentEncoder):
            raise SentembError(
                f"model {encoder.name} does not read word by word, so there is nothing to trace; "
                "use an lstm, bilstm, rnn or irnn"
            )
        words = self.vocabulary.split(as_text(text))
        if not words:
            raise SentembError("a text without words has nothing to trace; give one with words")
        with signals_from_kernels():
            done = encoder.forward(self.weights[side], self.vocabulary.batch([text]), self._workers)
        values = [
            encoder.gate_values(state, done.packing.rows_of_tokens(direction))
            for direction, state in enumerate(done.states)
        ]
        joined = {
            name: np.hstack([of_direction[name] for of_direction in values]) for name in values[0]
        }
        return GateTrace(words=words, **joined)


def _warn(is_known: NDArray[np.bool_], without_words: int, lost: str, vague: str) -> None:
    """Warn in the name of the user's code, three calls above the method that has read the texts."""
    unknown = int((~is_known).sum()) - without_words
    warn_of_texts(is_known.size, without_words, unknown, lost, vague, depth=6)


def _check_side(side: str) -> None:
    if side not in SIDES:
        raise SentembError(f"side must be query or document, not {side!r}")
