"""The same training in PyTorch: as a competent user writes it, and as well as it goes.

All start from the weights, texts and mini-batches in a case's folder (see `Ours.prepare`) and make
the same updates as the package. `torch.optim.SGD(nesterov=True)` keeps the look-ahead point
theta + mu v as its parameter, which with a constant mu is the same sequence of gradients.
`torch.optim.SparseAdam` leaves rows without a gradient alone, as the package does; the dense
`torch.optim.Adam` moves them by their moments, so only its first two losses are the same.
"""

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, embedding_bag, normalize
from torch.optim.adam import adam

MOMENTUM = 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8
SIDES = ("query", "document")
# Texts that `torch.nn.LSTM` reads at once, and a bias of its forget gate whose sigmoid is 1.
BLOCK, OPEN = 128, 40.0


class Texts:
    """One side's texts as words, and words as trigram ids, repeats repeated."""

    def __init__(self, arrays, side):
        self.word_index = arrays[f"{side}.word_index"]
        self.offsets = arrays[f"{side}.offsets"]
        counts = arrays[f"{side}.feature_values"].astype(np.int64)
        ends = np.concatenate([[0], np.cumsum(counts)])
        self.trigram_offsets = ends[arrays[f"{side}.feature_offsets"]]
        self.trigram_ids = np.repeat(arrays[f"{side}.feature_ids"], counts).astype(np.int64)

    def lengths(self, texts):
        return self.offsets[texts + 1] - self.offsets[texts]

    def trigrams_of(self, words):
        """(ids, lengths) of the trigrams of ``words`` one after the other."""
        first = self.trigram_offsets[words]
        lengths = self.trigram_offsets[words + 1] - first
        return self.trigram_ids[spans(first, lengths)], lengths


def spans(first, lengths):
    """first[0], first[0] + 1, ... (lengths[0] of them), then the same from first[1], ..."""
    ends = np.cumsum(lengths)
    return np.repeat(first - ends + lengths, lengths) + np.arange(ends[-1] if ends.size else 0)


@dataclass
class Batch:
    """One mini-batch; the texts are distinct, all other numbers are places among them.

    Attributes
    ----------
    queries, titles : (n,) int
        Numbers of texts.
    weights : (n_pairs,) tensor
    query_of_pair : (n_pairs,) tensor
    candidates : (n_pairs, k) tensor
        The competing titles of each pair, the clicked one first. Otherwise all titles compete:
    clicked : (n_pairs,) tensor
    excluded : (2, n) tensor
        Pairs, and titles that do not compete for them.
    """

    queries: np.ndarray
    titles: np.ndarray
    weights: torch.Tensor
    query_of_pair: torch.Tensor
    candidates: torch.Tensor | None = None
    clicked: torch.Tensor | None = None
    excluded: torch.Tensor | None = None

    @classmethod
    def read(cls, arrays, step):
        parts = {}
        for name in cls.__dataclass_fields__:
            array = arrays.get(f"batch.{step}.{name}")
            if array is None or name in ("queries", "titles"):
                parts[name] = array
            else:
                kind = np.float32 if name == "weights" else np.int64
                parts[name] = torch.from_numpy(array.astype(kind))
        return cls(**parts)

    def loss(self, Yq, Yd, gamma):
        """The weighted sum of -log softmax(gamma cos) of the clicked titles."""
        Uq, Ud = normalize(Yq)[self.query_of_pair], normalize(Yd)
        if self.clicked is None:
            chosen = Ud[self.candidates.view(-1)].view(*self.candidates.shape, -1)
            scores = gamma * torch.bmm(chosen, Uq.unsqueeze(2)).squeeze(2)
            clicked = torch.zeros(len(Uq), dtype=torch.int64)
        else:
            scores, clicked = gamma * (Uq @ Ud.T), self.clicked
            scores[self.excluded[0], self.excluded[1]] = -math.inf
        return self.weights @ cross_entropy(scores, clicked, reduction="none")


class Memory:
    """Words to trigram ids, remembered: what encoding needs of a vocabulary."""

    def __init__(self, folder):
        trigrams = (Path(folder) / "vocabulary.txt").read_text("utf-8").split("\n")[:-1]
        self.ids = {trigram: number for number, trigram in enumerate(trigrams)}
        self.words = {}

    def trigrams(self, word):
        known = self.words.get(word)
        if known is None:
            marked = f"#{word}#"
            parts = (marked[k : k + 3] for k in range(len(marked) - 2))
            known = self.words[word] = [self.ids[part] for part in parts if part in self.ids]
        return known


class Start:
    """What both contenders read before they begin."""

    def __init__(self, folder, threads):
        torch.set_num_threads(threads)
        self.folder = Path(folder)
        self.case = json.loads((self.folder / "case.json").read_text())
        with np.load(self.folder / "start.npz") as file:
            self.arrays = {name: file[name] for name in file.files}
        self.texts = {side: Texts(self.arrays, side) for side in SIDES}
        steps = sum(name.endswith(".queries") for name in self.arrays)
        self.batches = [Batch.read(self.arrays, step) for step in range(steps)]
        self.rate, self.gamma = self.case["rate"], self.case["gamma"]
        self.max_norm = self.case["max_norm"]
        self.forget_gate = self.case["settings"].get("forget_gate", False)
        self.memory = Memory(folder)
        self.number = 0

    def weights(self, side):
        names = ("table", "bias", "recurrent", "peepholes")
        return {
            name: torch.from_numpy(self.arrays[f"{side}.{name}"].copy())
            for name in names
            if f"{side}.{name}" in self.arrays
        }

    def next_batch(self):
        self.number += 1
        return self.batches[(self.number - 1) % len(self.batches)]

    def titles(self):
        lines = Path(self.case["log"]).read_text("utf-8").splitlines()
        return list(dict.fromkeys(line.split("\t")[1] for line in lines))


# -- as a competent user writes it ----------------------------------------------------------------


class DenseTower(nn.Module):
    """EmbeddingBag over trigram ids and a loop over the cell, texts padded to the longest."""

    def __init__(self, weights, forget_gate):
        super().__init__()
        self.bag = nn.EmbeddingBag.from_pretrained(weights["table"], freeze=False, mode="sum")
        self.bias = nn.Parameter(weights["bias"])
        self.recurrent = nn.Parameter(weights["recurrent"])
        self.peepholes = nn.Parameter(weights["peepholes"]) if "peepholes" in weights else None
        self.forget_gate = forget_gate

    def forward(self, ids, bags, lengths):
        """ids, bags: EmbeddingBag's input for every place of (steps, texts); lengths: (texts,)."""
        return self.read(self.bag(ids, bags) + self.bias, lengths)

    def read(self, x, lengths):
        """Embeddings of texts from the inputs at every place of (steps, texts)."""
        x = x.view(-1, lengths.numel(), x.shape[1])
        if len(self.recurrent) == 1:
            return self.scan(x, lengths, 0)
        ahead, back = x.chunk(2, dim=2)
        # Each text is read backwards within its own length.
        place = (lengths - 1 - torch.arange(len(x))[:, None]).clamp(min=0)
        back = back.gather(0, place[:, :, None].expand_as(back))
        return torch.cat([self.scan(ahead, lengths, 0), self.scan(back, lengths, 1)], dim=1)

    def scan(self, x, lengths, direction):
        R = self.recurrent[direction]
        n = R.shape[0]
        peepholes = None if self.peepholes is None else self.peepholes[direction]
        y = x.new_zeros(x.shape[1], n)
        c = torch.zeros_like(y)
        outputs = []
        for x_t in x:
            parts = torch.addmm(x_t, y, R).chunk(R.shape[1] // n, dim=1)
            o, i, g = parts[:3]
            if peepholes is not None:
                i = i + peepholes[2] * c
            new = torch.sigmoid(i) * torch.tanh(g)
            if self.forget_gate:
                f = parts[3] if peepholes is None else parts[3] + peepholes[1] * c
                c = torch.sigmoid(f) * c + new
            else:
                c = c + new
            if peepholes is not None:
                o = o + peepholes[0] * c
            y = torch.sigmoid(o) * torch.tanh(c)
            outputs.append(y)
        return torch.stack(outputs)[lengths - 1, torch.arange(lengths.numel())]


def clip(gradients, max_norm):
    """clip_grad_norm_ with a norm row by row.

    `clip_grad_norm_` itself adds up millions of squares in float32 one after the other and is off
    by 2e-4, which the comparison of losses would see. As fast, and faster where nothing is clipped.
    """
    rows = [torch.linalg.vector_norm(gradient, dim=-1).reshape(-1) for gradient in gradients]
    norm = torch.cat(rows).norm().item()
    if norm > max_norm:
        for gradient in gradients:
            gradient.mul_(max_norm / norm)


class Dense(Start):
    """EmbeddingBag, cell loop, autograd, clipping and SGD(nesterov=True)."""

    fused = None

    def __init__(self, folder, threads):
        super().__init__(folder, threads)
        self.towers = {side: DenseTower(self.weights(side), self.forget_gate) for side in SIDES}
        self.optimiser = self.make_optimiser(
            [p for tower in self.towers.values() for p in tower.parameters()]
        )

    def make_optimiser(self, parameters):
        return torch.optim.SGD(
            parameters, lr=self.rate, momentum=MOMENTUM, nesterov=True, fused=self.fused
        )

    def collate(self, side, texts):
        source = self.texts[side]
        lengths = source.lengths(texts)
        place = np.arange(lengths.max())[:, None]
        here = place < lengths
        words = source.word_index[(source.offsets[texts] + place)[here]]
        ids, counts = source.trigrams_of(words)
        in_bag = np.zeros(here.shape, np.int64)
        in_bag[here] = counts
        bags = np.cumsum(in_bag.ravel()) - in_bag.ravel()
        return torch.from_numpy(ids), torch.from_numpy(bags), torch.from_numpy(lengths)

    def train_step(self):
        batch = self.next_batch()
        self.optimiser.zero_grad()
        Yq = self.towers["query"](*self.collate("query", batch.queries))
        Yd = self.towers["document"](*self.collate("document", batch.titles))
        loss = batch.loss(Yq, Yd, self.gamma)
        loss.backward()
        for tower in self.towers.values():
            clip([parameter.grad for parameter in tower.parameters()], self.max_norm)
        self.optimiser.step()
        return loss.item()

    @torch.inference_mode()
    def encode(self, texts, chunk=256):
        words = [text.lower().split() for text in texts]
        order = sorted(range(len(words)), key=lambda k: len(words[k]))
        tower = self.towers["document"]
        vectors = torch.empty(len(texts), tower.recurrent.shape[0] * tower.recurrent.shape[1])
        for start in range(0, len(order), chunk):
            part = order[start : start + chunk]
            rows = itertools.zip_longest(*(words[k] for k in part))
            bags = [self.memory.trigrams(w) if w is not None else () for row in rows for w in row]
            ids = torch.tensor(list(itertools.chain.from_iterable(bags)))
            offsets = torch.tensor([0, *itertools.accumulate(map(len, bags))][:-1])
            lengths = torch.tensor([len(words[k]) for k in part])
            vectors[part] = tower(ids, offsets, lengths)
        return vectors.numpy()


class Fused(Dense):
    """`Dense` with the optimiser's ``fused=True``: one pass over memory instead of several."""

    fused = True


class DenseAdam(Dense):
    """`Dense` with `torch.optim.Adam`, fused."""

    def make_optimiser(self, parameters):
        return torch.optim.Adam(parameters, lr=self.rate, betas=BETAS, eps=EPSILON, fused=True)


class SparseAdam(Start):
    """Distinct words projected once from compact rows, the cell loop, autograd, SparseAdam."""

    def __init__(self, folder, threads):
        super().__init__(folder, threads)
        self.towers = {side: DenseTower(self.weights(side), self.forget_gate) for side in SIDES}
        tables, others = [], []
        for tower in self.towers.values():
            for name, parameter in tower.named_parameters():
                (tables if name == "bag.weight" else others).append(parameter)
        self.of_tables = torch.optim.SparseAdam(tables, lr=self.rate, betas=BETAS)
        self.of_others = torch.optim.Adam(
            others, lr=self.rate, betas=BETAS, eps=EPSILON, fused=True
        )
        self.marks = {side: marks_of(self.texts[side], tables[0]) for side in SIDES}

    def embed(self, side, texts):
        """Embeddings, the rows of the table, and what they hold, a leaf of the graph."""
        source, marks, tower = self.texts[side], self.marks[side], self.towers[side]
        lengths = source.lengths(texts)
        place = np.arange(lengths.max())[:, None]
        words = source.word_index[source.offsets[texts] + np.minimum(place, lengths - 1)]
        distinct, words = number(words.ravel(), marks["words"])
        ids, counts = source.trigrams_of(distinct)
        rows, ids = number(ids, marks["rows"])
        rows = torch.from_numpy(rows)
        X = tower.bag.weight.detach().index_select(0, rows).requires_grad_()
        P = embedding_bag(torch.from_numpy(ids), X, offsets_of(counts), mode="sum") + tower.bias
        x = P.index_select(0, torch.from_numpy(words))
        return tower.read(x, torch.from_numpy(lengths)), rows, X

    def train_step(self):
        batch = self.next_batch()
        self.of_others.zero_grad()
        Yq, *of_queries = self.embed("query", batch.queries)
        Yd, *of_titles = self.embed("document", batch.titles)
        loss = batch.loss(Yq, Yd, self.gamma)
        loss.backward()
        for tower, (rows, X) in zip(self.towers.values(), (of_queries, of_titles), strict=True):
            dense = [p.grad for name, p in tower.named_parameters() if name != "bag.weight"]
            clip([X.grad, *dense], self.max_norm)
            table = tower.bag.weight
            table.grad = torch.sparse_coo_tensor(
                rows[None], X.grad, table.shape, check_invariants=False, is_coalesced=True
            )
        # It adds epsilon before the bias correction, Adam after it.
        for group in self.of_tables.param_groups:
            group["eps"] = EPSILON * math.sqrt(1 - BETAS[1] ** self.number)
        self.of_tables.step()
        self.of_others.step()
        return loss.item()


# -- as well as it goes ---------------------------------------------------------------------------


class Plan:
    """A side of a mini-batch: distinct words, compact rows, tokens time-major without padding.

    Texts are sorted from long to short, so those that still run at a step are the first of those
    at the step before.
    """

    def __init__(self, words_of, trigrams_of, lengths, directions, marks):
        self.order = np.argsort(-lengths, kind="stable")
        lengths = lengths[self.order]
        t, k = self.tokens(lengths)
        words = words_of(self.order[k], t)
        distinct, words = number(words, marks["words"])
        ids, counts = trigrams_of(distinct)
        rows, ids = number(ids, marks["rows"])
        self.rows = torch.from_numpy(rows)
        self.rows_array = rows
        self.ids, self.bags = torch.from_numpy(ids), offsets_of(counts)
        self.counts, self.local_ids = counts, ids
        self.word_arrays = [words]
        if directions == 2:
            turned = np.empty_like(words)
            turned[self.first[lengths[k] - 1 - t] + k] = words
            self.word_arrays.append(turned)
        self.words = [torch.from_numpy(some) for some in self.word_arrays]

    def tokens(self, lengths):
        """Steps and texts of all tokens, in the order in which the recurrence reads them."""
        t, k = np.nonzero(np.arange(lengths[0])[:, None] < lengths)
        self.running = np.bincount(t).tolist()
        self.first = np.concatenate([[0], np.cumsum(self.running)])
        self.last = torch.from_numpy(self.first[lengths - 1] + np.arange(lengths.size))
        later = slice(self.running[0], None)
        self.before = torch.from_numpy(self.first[t[later] - 1] + k[later])
        return t, k

    def inverse_words(self, direction):
        """For every distinct word its tokens, as EmbeddingBag's input."""
        return inverse(self.word_arrays[direction], np.arange(len(self.words[0])), self.counts.size)

    def inverse_rows(self):
        """For every row the words that it is in."""
        words = np.repeat(np.arange(self.counts.size), self.counts)
        return inverse(self.local_ids, words, self.rows_array.size)


def number(items, marks):
    """(distinct items, places of the items among them), without sorting."""
    marks[items] = 1
    distinct = np.flatnonzero(marks)
    marks[distinct] = np.arange(distinct.size)
    places = marks[items]
    marks[distinct] = 0
    return distinct, places


def marks_of(texts, table):
    """Scratch for `number`: words of ``texts``, and rows of ``table``."""
    words = texts.trigram_offsets.size - 1
    return {"words": np.zeros(words, np.int64), "rows": np.zeros(len(table), np.int64)}


def joined(parts, axis):
    """Both directions side by side; of one direction itself, not a copy."""
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=axis)


def offsets_of(counts):
    return torch.from_numpy(np.cumsum(counts) - counts)


def inverse(keys, values, size):
    order = np.argsort(keys, kind="stable")
    return torch.from_numpy(values[order]), offsets_of(np.bincount(keys, minlength=size))


def gates(z, c_last, c, h, y, n, peepholes, forget_gate):
    """One step forward in place; z (texts, G n) holds the pre-activations, then the gates."""
    o, i, g = z[:, :n], z[:, n : 2 * n], z[:, 2 * n : 3 * n]
    if peepholes is not None and c_last is not None:
        i.addcmul_(peepholes[2], c_last)
        if forget_gate:
            z[:, 3 * n :].addcmul_(peepholes[1], c_last)
    if peepholes is None:
        z[:, : 2 * n].sigmoid_()
    else:
        i.sigmoid_()
    g.tanh_()
    if forget_gate:
        z[:, 3 * n :].sigmoid_()
    if c_last is None:
        torch.mul(i, g, out=c)
    elif forget_gate:
        torch.mul(i, g, out=c)
        c.addcmul_(z[:, 3 * n :], c_last)
    else:
        torch.addcmul(c_last, i, g, out=c)
    if peepholes is not None:
        o.addcmul_(peepholes[0], c)
        o.sigmoid_()
    torch.tanh(c, out=h)
    torch.mul(o, h, out=y)


class BestTower:
    """Forward and backward by hand, and Nesterov momentum that touches only a batch's rows."""

    def __init__(self, weights, forget_gate):
        self.weights = weights
        self.velocity = {name: torch.zeros_like(array) for name, array in weights.items()}
        self.synced = np.zeros(len(weights["table"]), np.int64)
        self.forget_gate = forget_gate
        self.n = weights["recurrent"].shape[1]

    def look_ahead(self, plan, update):
        """Weights at theta + mu v; of the table only the rows of ``plan``."""
        power = MOMENTUM ** torch.from_numpy(update + 1 - self.synced[plan.rows_array])
        self.power = power.float()[:, None]
        far = (MOMENTUM * (1 - power) / (1 - MOMENTUM)).float()[:, None]
        self.v_rows = self.velocity["table"].index_select(0, plan.rows)
        X = self.weights["table"].index_select(0, plan.rows)
        ahead = {
            name: torch.add(array, self.velocity[name], alpha=MOMENTUM)
            for name, array in self.weights.items()
            if name != "table"
        }
        return ahead | {"table": X.addcmul_(far, self.v_rows)}

    def forward(self, weights, plan):
        """Embeddings in the order of ``plan.order``; what the backward pass needs is kept."""
        n, width = self.n, weights["recurrent"].shape[2]
        P = embedding_bag(plan.ids, weights["table"], plan.bags, mode="sum")
        P += weights["bias"]
        self.states, outputs = [], []
        for direction, R in enumerate(weights["recurrent"]):
            peepholes = weights["peepholes"][direction] if "peepholes" in weights else None
            part = P if len(weights["recurrent"]) == 1 else P[:, direction * width :][:, :width]
            Z = part.index_select(0, plan.words[direction])
            C, H, Y = (Z.new_empty(len(Z), n) for _ in range(3))
            low = before = 0
            for running in plan.running:
                high = low + running
                z, c_last = Z[low:high], None
                if low:
                    z.addmm_(Y[before : before + running], R)
                    c_last = C[before : before + running]
                gates(
                    z, c_last, C[low:high], H[low:high], Y[low:high], n, peepholes, self.forget_gate
                )
                before, low = low, high
            self.states.append((Z, C, H, Y))
            outputs.append(Y.index_select(0, plan.last))
        return joined(outputs, 1)

    def backward(self, weights, plan, V):
        """Gradients; V is the loss's gradient at the embeddings as `forward` gave them."""
        n = self.n
        gradient = {name: [] for name in weights}
        words_of_row, row_bags = plan.inverse_rows()
        for direction, R in enumerate(weights["recurrent"]):
            state = self.states[direction]
            peepholes = weights["peepholes"][direction] if "peepholes" in weights else None
            D = self._errors(state, plan, V[:, direction * n : (direction + 1) * n], R, peepholes)
            C, Y = state[1], state[3]
            later = D[plan.running[0] :]
            gradient["recurrent"].append(Y.index_select(0, plan.before).T @ later)
            if peepholes is not None:
                c_last = C.index_select(0, plan.before)
                sums = torch.zeros_like(peepholes)
                sums[0] = (D[:, :n] * C).sum(0)
                sums[2] = (later[:, n : 2 * n] * c_last).sum(0)
                if self.forget_gate:
                    sums[1] = (later[:, 3 * n :] * c_last).sum(0)
                gradient["peepholes"].append(sums)
            tokens, bags = plan.inverse_words(direction)
            dP = embedding_bag(tokens, D, bags, mode="sum")
            gradient["bias"].append(dP.sum(0))
            gradient["table"].append(embedding_bag(words_of_row, dP, row_bags, mode="sum"))
        return {
            "table": joined(gradient.pop("table"), 1),
            "bias": joined(gradient.pop("bias"), 0),
            **{name: torch.stack(parts) for name, parts in gradient.items()},
        }

    def _errors(self, state, plan, V, R, peepholes):
        """The errors at all pre-activations, last step first."""
        Z, C, H, _ = state
        n = self.n
        o, i, g = Z[:, :n], Z[:, n : 2 * n], Z[:, 2 * n : 3 * n]
        # All factors at once; D takes them in and becomes the errors.
        D = torch.empty_like(Z)
        one = torch.ones(())
        torch.mul(o - o * o, H, out=D[:, :n])
        torch.mul(i - i * i, g, out=D[:, n : 2 * n])
        torch.mul(one - g * g, i, out=D[:, 2 * n : 3 * n])
        to_cell = o * (one - H * H)
        if self.forget_gate:
            first = plan.running[0]
            f = Z[first:, 3 * n :]
            D[:first, 3 * n :] = 0
            torch.mul(f - f * f, C.index_select(0, plan.before), out=D[first:, 3 * n :])
        E, rho = V.contiguous(), torch.zeros_like(V)
        Rt = R.T
        for t in range(len(plan.running) - 1, -1, -1):
            running, low, high = plan.running[t], int(plan.first[t]), int(plan.first[t + 1])
            d, e, eps = D[low:high], E[:running], rho[:running]
            d[:, :n].mul_(e)
            eps.addcmul_(to_cell[low:high], e)
            if peepholes is not None:
                eps.addcmul_(d[:, :n], peepholes[0])
            d.view(running, -1, n)[:, 1:].mul_(eps[:, None])
            if t == 0:
                break
            if self.forget_gate:
                eps.mul_(Z[low:high, 3 * n :])
            if peepholes is not None:
                eps.addcmul_(d[:, n : 2 * n], peepholes[2])
                if self.forget_gate:
                    eps.addcmul_(d[:, 3 * n :], peepholes[1])
            torch.mm(d, Rt, out=e)
        return D

    def step(self, ahead, gradient, plan, update, rate, max_norm):
        rate *= scale_of(gradient, max_norm)
        for name, theta in self.weights.items():
            if name != "table":
                self.velocity[name].mul_(MOMENTUM).sub_(gradient[name], alpha=rate)
                torch.sub(ahead[name], gradient[name], alpha=rate, out=theta)
        dX = gradient["table"]
        self.velocity["table"].index_copy_(
            0, plan.rows, self.v_rows.mul_(self.power).sub_(dX, alpha=rate)
        )
        self.weights["table"].index_copy_(0, plan.rows, ahead["table"].sub_(dX, alpha=rate))
        self.synced[plan.rows_array] = update + 1


def scale_of(gradient, max_norm):
    """What makes a gradient no longer than ``max_norm``; row by row, as in `clip`."""
    norms = [torch.linalg.vector_norm(g, dim=-1).reshape(-1) for g in gradient.values()]
    return min(1.0, max_norm / torch.cat(norms).norm().item())


class BestAdamTower(BestTower):
    """The same passes with Adam that touches only a batch's rows."""

    def __init__(self, weights, forget_gate):
        super().__init__(weights, forget_gate)
        self.moments = {
            name: (torch.zeros_like(array), torch.zeros_like(array))
            for name, array in weights.items()
        }

    def look_ahead(self, plan, update):
        """The weights themselves; of the table only the rows of ``plan``."""
        return self.weights | {"table": self.weights["table"].index_select(0, plan.rows)}

    def step(self, ahead, gradient, plan, update, rate, max_norm):
        scale = scale_of(gradient, max_norm)
        if scale < 1:
            torch._foreach_mul_(list(gradient.values()), scale)
        moments = dict(self.moments)
        moments["table"] = tuple(m.index_select(0, plan.rows) for m in self.moments["table"])
        # One pass over memory: twice as fast as addcmul_ and addcdiv_.
        adam(
            list(ahead.values()),
            [gradient[name] for name in ahead],
            *(list(some) for some in zip(*(moments[name] for name in ahead), strict=True)),
            [],
            [torch.tensor(float(update)) for _ in ahead],
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=rate,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )
        tables = self.weights["table"], *self.moments["table"]
        for whole, rows in zip(tables, (ahead["table"], *moments["table"]), strict=True):
            whole.index_copy_(0, plan.rows, rows)


class BlockPlan(Plan):
    """Blocks of texts of about equal lengths, each padded to its longest by repeated last words."""

    def tokens(self, lengths):
        parts, last, self.blocks, self.sizes = [], [], [], []
        for first in range(0, lengths.size, BLOCK):
            of_block = lengths[first : first + BLOCK]
            steps, texts = int(of_block[0]), of_block.size
            t, k = divmod(np.arange(steps * texts), texts)
            parts.append((np.minimum(t, of_block[k] - 1), first + k))
            last.append(sum(self.sizes) + (of_block - 1) * texts + np.arange(texts))
            self.blocks.append((steps, texts))
            self.sizes.append(steps * texts)
        self.last = torch.from_numpy(np.concatenate(last))
        return map(np.concatenate, zip(*parts, strict=True))


class LstmTower(BestTower):
    """`torch.nn.LSTM` as the recurrence, by autograd; all around it as in `BestTower`.

    The layer multiplies its input by weights of its own: here ones that only put the gates into
    its order. It always has a forget gate: for the reduced LSTM one that is open and stays so.
    """

    def __init__(self, weights, forget_gate):
        super().__init__(weights, forget_gate)
        n, width = self.n, weights["recurrent"].shape[2]
        self.layer = layer = nn.LSTM(width, n)
        for name, parameter in layer.named_parameters():
            parameter.requires_grad_(name == "weight_hh_l0").detach().zero_()
        # Ours are o, i, g and perhaps f; the layer's i, f, g, o.
        self.places = [3, 0, 2, 1][: width // n]
        for gate, place in enumerate(self.places):
            self.of_gate(layer.weight_ih_l0, place)[:, gate * n : (gate + 1) * n] = torch.eye(n)
        if not forget_gate:
            self.of_gate(layer.bias_ih_l0, 1).fill_(OPEN)

    def of_gate(self, array, place):
        return array.detach()[place * self.n : (place + 1) * self.n]

    def forward(self, weights, plan):
        """As `BestTower.forward`."""
        P = embedding_bag(plan.ids, weights["table"], plan.bags, mode="sum") + weights["bias"]
        R = weights["recurrent"][0].T
        for gate, place in enumerate(self.places):
            self.of_gate(self.layer.weight_hh_l0, place).copy_(R[gate * self.n :][: self.n])
        self.layer.weight_hh_l0.grad = None
        self.x = P.index_select(0, plan.words[0]).requires_grad_()
        outputs = []
        with torch.enable_grad():
            for x, shape in zip(self.x.split(plan.sizes), plan.blocks, strict=True):
                outputs.append(self.layer(x.view(*shape, -1))[0].reshape(len(x), -1))
            self.outputs = torch.cat(outputs).index_select(0, plan.last)
        return self.outputs.detach()

    def backward(self, weights, plan, V):
        """As `BestTower.backward`."""
        self.outputs.backward(V)
        words_of_row, row_bags = plan.inverse_rows()
        tokens, bags = plan.inverse_words(0)
        dP = embedding_bag(tokens, self.x.grad, bags, mode="sum")
        dR = [self.of_gate(self.layer.weight_hh_l0.grad, place) for place in self.places]
        return {
            "table": embedding_bag(words_of_row, dP, row_bags, mode="sum"),
            "bias": dP.sum(0),
            "recurrent": torch.cat(dR).T[None],
        }


class Best(Start):
    """Unique words, compact rows, packed steps, gradients by hand, lazy Nesterov momentum."""

    tower, plan = BestTower, Plan

    def __init__(self, folder, threads):
        super().__init__(folder, threads)
        self.towers = {side: self.tower(self.weights(side), self.forget_gate) for side in SIDES}
        self.marks = {
            side: marks_of(self.texts[side], tower.weights["table"])
            for side, tower in self.towers.items()
        }
        self.directions = len(self.towers["query"].weights["recurrent"])

    def collate(self, side, texts):
        source = self.texts[side]
        first = source.offsets[texts]
        return self.plan(
            lambda text, t: source.word_index[first[text] + t],
            source.trigrams_of,
            source.lengths(texts),
            self.directions,
            self.marks[side],
        )

    @torch.no_grad()
    def train_step(self):
        update = self.number
        batch = self.next_batch()
        plans = {"query": self.collate("query", batch.queries)}
        plans["document"] = self.collate("document", batch.titles)
        ahead, Y, leaves = {}, {}, {}
        for side, tower in self.towers.items():
            ahead[side] = tower.look_ahead(plans[side], update)
            sorted_rows = tower.forward(ahead[side], plans[side])
            Y[side] = torch.empty_like(sorted_rows)
            Y[side][plans[side].order] = sorted_rows
        with torch.enable_grad():
            leaves = {side: Y[side].requires_grad_() for side in SIDES}
            loss = batch.loss(*leaves.values(), self.gamma)
            loss.backward()
        for side, tower in self.towers.items():
            V = leaves[side].grad.index_select(0, torch.from_numpy(plans[side].order))
            gradient = tower.backward(ahead[side], plans[side], V)
            tower.step(ahead[side], gradient, plans[side], update, self.rate, self.max_norm)
        return loss.item()

    @torch.inference_mode()
    def encode(self, texts, chunk=1024):
        words = [text.lower().split() for text in texts]
        order = sorted(range(len(words)), key=lambda k: -len(words[k]))
        tower = self.towers["document"]
        weights = tower.weights
        vectors = np.empty((len(texts), self.directions * tower.n), np.float32)
        for start in range(0, len(order), chunk):
            part = order[start : start + chunk]
            places, index = {}, []
            for k in part:
                index += [places.setdefault(word, len(places)) for word in words[k]]
            lengths = np.array([len(words[k]) for k in part])
            vectors[part] = self._encode(tower, weights, list(places), np.array(index), lengths)
        return vectors

    def _encode(self, tower, weights, words, index, lengths):
        bags = [self.memory.trigrams(word) for word in words]
        counts = np.fromiter(map(len, bags), np.int64, len(bags))
        ids = torch.tensor(list(itertools.chain.from_iterable(bags)))
        P = embedding_bag(ids, weights["table"], offsets_of(counts), mode="sum") + weights["bias"]
        first = np.cumsum(lengths) - lengths
        running = np.bincount(np.concatenate([np.arange(size) for size in lengths])).tolist()
        n = tower.n
        outputs = P.new_empty(len(lengths), n)
        R = weights["recurrent"][0]
        y = c = None
        for t, count in enumerate(running):
            z = P.index_select(0, torch.from_numpy(index[first[:count] + t]))
            if t:
                # Texts that end here are the last ones.
                outputs[count : len(y)] = y[count:]
                z.addmm_(y[:count], R)
            z[:, : 2 * n].sigmoid_()
            new = z[:, n : 2 * n].mul_(z[:, 2 * n :].tanh_())
            c = new if c is None else c[:count].add_(new)
            y = z[:, :n] * torch.tanh(c)
        outputs[: len(y)] = y
        return outputs.numpy()


class BestAdam(Best):
    """`Best` with lazy Adam instead of momentum."""

    tower = BestAdamTower


class Lstm(Best):
    """`Best` with `torch.nn.LSTM`, which oneDNN computes, on blocks of sorted texts."""

    tower, plan = LstmTower, BlockPlan
