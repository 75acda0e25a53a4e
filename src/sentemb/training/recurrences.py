"""The recurrences of a training's passes, computed by the workers of a cluster.

A pass runs over blocks of texts that belong to eight fixed chunks, whose gradients are added in the
order of the chunks. A worker gets some of the chunks: their part of the packing, the projected
words that occur there, and the dense weights. It runs the kernels that this process would run. What
they leave behind stays with the worker, as the result of the forward task. The backward task
depends on that result, so Dask runs it in the same place, and computes the result again if that
worker is lost. The gradients have the bits of one process, whatever the number of workers.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.recurrent import RecurrentEncoder, Scanned, States
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.packing import Packing
from sentemb.models.words.workspace import Workspace
from sentemb.system.cluster import Cluster, Task
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import CHUNKS, one_after_the_other

# Seconds between two questions which workers there are.
_BETWEEN_QUESTIONS = 2.0


class RemoteRecurrences:
    """A `sentemb.models.towers.recurrent.Scans` whose chunks are divided among workers.

    Parameters
    ----------
    encoder : RecurrentEncoder
    cluster : Cluster

    Attributes
    ----------
    sent, received : int
        Bytes of the arrays that went to workers and came from them.
    """

    def __init__(self, encoder: RecurrentEncoder, cluster: Cluster) -> None:
        self._encoder = encoder
        self._cluster = cluster
        self._workers: list[str | None] = [None]
        self._asked = -np.inf
        # A workspace belongs to one pass at a time.
        self._passes: WeakKeyDictionary[Workspace, list[_Group]] = WeakKeyDictionary()
        self.sent = self.received = 0

    def forward_scans(
        self, weights: Arrays, packing: Packing, P: np.ndarray, workspace: Workspace
    ) -> tuple[States, list[KernelTask]]:
        """As `RecurrentEncoder.forward_scans`; of the outputs only the last of each text is set."""
        dense = {name: array for name, array in weights.items() if name not in ("table", "bias")}
        groups = []
        for worker, chunks in self._divided():
            part = _Part.of(packing, chunks)
            if not part.rows.size:
                continue
            some = P[part.words]
            self._count_sent(some, *dense.values(), *part.packing.words, part.packing.step_rows)
            arguments = self._encoder, dense, part.packing, some, chunks
            state = self._cluster.submit(_forward, *arguments, worker=worker)
            outputs = self._cluster.submit(_last_outputs, state, part.places, worker=worker)
            groups.append(_Group(worker, chunks, part, dense, state, outputs))
        self._passes[workspace] = groups
        shape = packing.n_rows, self._encoder.cells
        states = [
            {"Y": workspace.empty(f"Y{direction}", shape, P.dtype)}
            for direction in range(self._encoder.directions)
        ]
        return states, [(self._receive_outputs, groups, packing, states)]

    def backward_scans(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation,
        workspace: Workspace,
    ) -> tuple[Scanned, list[KernelTask]]:
        """As `RecurrentEncoder.backward_scans`."""
        groups, packing = self._passes[workspace], done.packing
        gradients = []
        for group in groups:
            some = V[packing.order[group.part.places], : self._encoder.n_outputs]
            self._count_sent(some)
            arguments = self._encoder, group.dense, group.state, some, truncation, group.chunks
            gradients.append(self._cluster.submit(_backward, *arguments, worker=group.worker))
        scanned = self._encoder.room_for_gradients(packing, V.dtype, workspace)
        for sums in scanned.parts.values():
            sums[...] = 0  # a chunk without texts is given to nobody
        return scanned, [(self._receive_gradients, groups, gradients, scanned)]

    def _divided(self) -> list[tuple[str | None, list[int]]]:
        """The chunks of each worker."""
        if time.monotonic() - self._asked > _BETWEEN_QUESTIONS:
            # Without any, tasks wait for the first worker that comes.
            self._workers = [*self._cluster.workers()[:CHUNKS]] or [None]
            self._asked = time.monotonic()
        return list(zip(self._workers, _chunks_of(len(self._workers)), strict=True))

    def _receive_outputs(self, groups: list[_Group], packing: Packing, states: States) -> None:
        found = self._cluster.results([group.outputs for group in groups])
        for group, of_directions in zip(groups, found, strict=True):
            for state, outputs in zip(states, of_directions, strict=True):
                state["Y"][packing.last_rows[group.part.places]] = outputs
                self.received += outputs.nbytes

    def _receive_gradients(
        self, groups: list[_Group], gradients: list[Task], scanned: Scanned
    ) -> None:
        found = self._cluster.results(gradients)
        for group, own in zip(groups, found, strict=True):
            for D, of_group in zip(scanned.errors, own.errors, strict=True):
                D[group.part.rows] = of_group
                self.received += of_group.nbytes
            for name, sums in own.parts.items():
                scanned.parts[name][:, group.chunks] = sums
                self.received += sums.nbytes

    def _count_sent(self, *arrays: np.ndarray) -> None:
        self.sent += sum(array.nbytes for array in arrays)


def check_recurrent(encoder: Encoder) -> RecurrentEncoder:
    """``encoder``, or a `SentembError` if it has no recurrences."""
    if not isinstance(encoder, RecurrentEncoder):
        raise SentembError(
            f"dask does not train a {encoder.name}: its steps read and write memory, and sending "
            "that memory takes longer; leave dask out, or choose rnn, irnn, lstm or bilstm"
        )
    return encoder


def recurrences_of(encoder: Encoder, cluster: Cluster) -> RecurrentEncoder:
    """A copy of ``encoder`` whose passes leave the recurrences to the workers of a cluster.

    Raises
    ------
    SentembError
        For an encoder without recurrences.
    """
    recurrent = check_recurrent(encoder)
    remote = copy.copy(recurrent)
    remote.scans = RemoteRecurrences(recurrent, cluster)
    return remote


def divided_words(packing: Packing, count: int) -> int:
    """How many distinct words the parts of ``count`` workers have, added up."""
    return sum(_Part.of(packing, chunks).words.size for chunks in _chunks_of(count))


def _chunks_of(count: int) -> list[list[int]]:
    """The chunks of each of ``count`` workers."""
    return [list(range(first, CHUNKS, count)) for first in range(min(count, CHUNKS))]


@dataclass(frozen=True, eq=False)
class _Part:
    """Some chunks of a packing.

    Attributes
    ----------
    packing : Packing
        With the same blocks, those of other chunks empty. Words and texts have new numbers.
    rows, places, words : (k,) int64
        The packed rows, the places of the texts in `Packing.order` and the words that belong to it.
    """

    packing: Packing
    rows: NDArray[np.int64]
    places: NDArray[np.int64]
    words: NDArray[np.int64]

    @classmethod
    def of(cls, packing: Packing, chunks: list[int]) -> _Part:
        in_block = np.isin(np.arange(packing.n_blocks) % CHUNKS, chunks)
        steps, rows = np.diff(packing.block_steps), np.diff(packing.step_rows)
        in_step = np.repeat(in_block, steps)
        in_row = np.repeat(in_step, rows)
        places = np.flatnonzero(in_block[np.arange(packing.order.size) // packing.block_texts])
        own_rows = np.flatnonzero(in_row)
        occurs = np.zeros(int(packing.words[0].max(initial=-1)) + 1, np.bool_)
        occurs[packing.words[0][own_rows]] = True
        number = (np.cumsum(occurs) - 1).astype(np.int32)
        own = copy.copy(packing)
        own.order = np.zeros_like(packing.order)
        own.order[places] = np.arange(places.size)
        own.block_steps = _ends(np.where(in_block, steps, 0))
        own.step_rows = _ends(rows[in_step])
        own.last_rows = np.cumsum(in_row)[packing.last_rows] - 1
        own.words = tuple(number[words[own_rows]] for words in packing.words)
        own.tokens = packing.tokens[0][:0], packing.tokens[1][:0]  # the kernels do without
        return cls(own, own_rows, places, np.flatnonzero(occurs))


@dataclass(frozen=True, eq=False)
class _Group:
    """The chunks of one worker in one pass, and its tasks."""

    worker: str | None
    chunks: list[int]
    part: _Part
    dense: Arrays
    state: Task
    outputs: Task


def _ends(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)])


# -- on a worker --------------------------------------------------------------------------------


class _Packed(Layout):
    """The layout of a pass of which only the packing is known."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing


def _forward(
    encoder: RecurrentEncoder, dense: Arrays, packing: Packing, P: np.ndarray, chunks: list[int]
) -> ForwardPass:
    """What the kernels of some chunks leave for the backward pass."""
    states, tasks = encoder.forward_scans(dense, packing, P, Workspace(), chunks)
    one_after_the_other(*tasks)
    return ForwardPass(_Packed(packing), np.empty(0), states)


def _last_outputs(done: ForwardPass, places: NDArray[np.int64]) -> list[np.ndarray]:
    """The last output of each text in each direction, (n, cells)."""
    return [state["Y"][done.packing.last_rows[places]] for state in done.states]


def _backward(
    encoder: RecurrentEncoder,
    dense: Arrays,
    done: ForwardPass,
    V: np.ndarray,
    truncation: Truncation,
    chunks: list[int],
) -> Scanned:
    """The errors of the rows and the sums of the chunks, from dL/dy of the texts."""
    # In another workspace nothing of `done` is overwritten: Dask may run this twice.
    scanned, tasks = encoder.backward_scans(dense, done, V, truncation, Workspace(), chunks)
    one_after_the_other(*tasks)
    return Scanned(scanned.errors, {name: sums[:, chunks] for name, sums in scanned.parts.items()})
