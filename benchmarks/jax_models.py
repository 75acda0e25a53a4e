"""The same training in JAX: a step is one compiled function with a scan over the cell.

It starts from the same weights, texts and mini-batches as the contenders of `torch_models`, and
makes the same updates. A compiled function needs the same shapes in every step: texts are sorted
into blocks, and all arrays are padded to the largest mini-batch. No result depends on padding: an
embedding is the output at a text's last word, no pair has a padded text, and updates of padded rows
are dropped.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from torch_models import BLOCK, MOMENTUM, SIDES, Start, marks_of, number

DENSE = ("bias", "recurrent")


def embed(X, dense, texts, n_words):
    """Embeddings of texts in their sorted order, from the input rows ``X`` at the look-ahead."""
    P = jax.ops.segment_sum(X[texts["ids"]], texts["words_of_ids"], n_words, True)
    P += dense["bias"]
    R = dense["recurrent"][0]
    n = R.shape[0]

    def read(state, x):
        y, c = state
        z = x + y @ R
        o, i, g, *f = jnp.split(z, R.shape[1] // n, axis=1)
        new = jax.nn.sigmoid(i) * jnp.tanh(g)
        c = jax.nn.sigmoid(f[0]) * c + new if f else c + new
        y = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (y, c), y

    outputs = []
    for words, last in zip(texts["words"], texts["last"], strict=True):
        zeros = jnp.zeros((BLOCK, n), X.dtype)
        # Unrolled it takes 0.7 of the time, and four times as long to compile.
        _, ys = jax.lax.scan(read, (zeros, zeros), P[words], unroll=True)
        outputs.append(ys[last, jnp.arange(BLOCK)])
    return jnp.concatenate(outputs)


def loss_of(leaves, batch, gamma, n_words):
    """The weighted sum of -log softmax(gamma cos) of the clicked titles."""
    units = []
    for side in SIDES:
        Y = embed(*leaves[side], batch[side], n_words[side])
        units.append(Y / jnp.linalg.norm(Y, axis=1, keepdims=True))
    Uq, Ud = units
    scores = jnp.einsum("pkn,pn->pk", Ud[batch["candidates"]], Uq[batch["query_of_pair"]])
    return -batch["weights"] @ jax.nn.log_softmax(gamma * scores)[:, 0]


@partial(jax.jit, static_argnums=(2, 3, 4, 5), donate_argnums=0)
def train(towers, batch, rate, gamma, max_norm, n_words):
    """One update of both towers: the towers after it, and the loss before it."""
    leaves, v_rows, moved = {}, {}, {}
    for side, (weights, velocity) in towers.items():
        texts = batch[side]
        X, v_rows[side] = (
            arrays["table"].at[texts["rows"]].get(mode="fill", fill_value=0)
            for arrays in (weights, velocity)
        )
        ahead = {name: weights[name] + MOMENTUM * velocity[name] for name in DENSE}
        leaves[side] = X + texts["far"] * v_rows[side], ahead
    loss, gradients = jax.value_and_grad(loss_of)(leaves, batch, gamma, dict(n_words))
    for side, (weights, velocity) in towers.items():
        (X, ahead), (dX, dense), texts = leaves[side], gradients[side], batch[side]
        squares = sum(jnp.sum(jnp.square(g)) for g in (dX, *dense.values()))
        step = rate * jnp.minimum(1, max_norm / jnp.sqrt(squares))
        v = {name: MOMENTUM * velocity[name] - step * dense[name] for name in DENSE}
        w = {name: ahead[name] - step * dense[name] for name in DENSE}
        how = {"mode": "drop", "unique_indices": True, "indices_are_sorted": True}
        moves = texts["power"] * v_rows[side] - step * dX, X - step * dX
        for new, old, rows in zip((v, w), (velocity, weights), moves, strict=True):
            new["table"] = old["table"].at[texts["rows"]].set(rows, **how)
        moved[side] = w, v
    return moved, loss


class Jax(Start):
    """Distinct words projected once, sorted blocks, a scan, lazy Nesterov momentum."""

    def __init__(self, folder, threads):
        super().__init__(folder, threads)
        self.towers, self.marks, self.synced, self.steps = {}, {}, {}, {}
        for side in SIDES:
            weights = {name: jnp.asarray(a.numpy()) for name, a in self.weights(side).items()}
            self.towers[side] = weights, {name: jnp.zeros_like(a) for name, a in weights.items()}
            self.marks[side] = marks_of(self.texts[side], weights["table"])
            self.synced[side] = np.zeros(len(weights["table"]), np.int64)
            longest = [self.sorted_texts(side, batch)[1][::BLOCK] for batch in self.batches]
            self.steps[side] = np.max(padded(longest, max(map(len, longest)), 1), axis=0)
        numbered = [[self.numbered(side, batch) for batch in self.batches] for side in SIDES]
        self.sizes = {
            side: [max(some[part].size for some in of_side) for part in ("ids", "distinct", "rows")]
            for side, of_side in zip(SIDES, numbered, strict=True)
        }
        self.n_words = tuple((side, self.sizes[side][1]) for side in SIDES)

    def sorted_texts(self, side, batch):
        """Where the texts of a mini-batch begin, their lengths, and their order: longest first."""
        texts = batch.queries if side == "query" else batch.titles
        lengths = self.texts[side].lengths(texts)
        order = np.argsort(-lengths, kind="stable")
        return self.texts[side].offsets[texts[order]], lengths[order], order

    def numbered(self, side, batch):
        """The words of every block, (steps, `BLOCK`), and the trigrams of the distinct words."""
        source, steps = self.texts[side], self.steps[side]
        first, lengths, order = self.sorted_texts(side, batch)
        first, lengths = padded([first, lengths], steps.size * BLOCK, 1)
        blocks = zip(first.reshape(-1, BLOCK), lengths.reshape(-1, BLOCK), steps, strict=True)
        tokens = [begin + np.minimum(np.arange(n)[:, None], of - 1) for begin, of, n in blocks]
        words = source.word_index[np.concatenate(tokens)]
        distinct, words = number(words, self.marks[side]["words"])
        ids, counts = source.trigrams_of(distinct)
        rows, ids = number(ids, self.marks[side]["rows"])
        return {
            "words": np.split(words, np.cumsum(steps)[:-1]),
            "last": lengths.reshape(-1, BLOCK) - 1,
            "distinct": distinct,
            "ids": ids,
            "words_of_ids": np.repeat(np.arange(distinct.size), counts),
            "rows": rows,
            "order": order,
        }

    def collate(self, side, batch, update):
        """A side of a mini-batch for `train`, and where each text is after sorting."""
        parts = self.numbered(side, batch)
        order, rows, synced = parts.pop("order"), parts["rows"], self.synced[side]
        n_ids, n_words, n_rows = self.sizes[side]
        del parts["distinct"]
        power = MOMENTUM ** (update + 1 - synced[rows])
        far = MOMENTUM * (1 - power) / (1 - MOMENTUM)
        synced[rows] = update + 1
        parts["power"], parts["far"] = padded([power, far], n_rows, 0).astype(np.float32)[..., None]
        (parts["rows"],) = padded([rows], n_rows, synced.size)  # beyond the table
        (parts["ids"],) = padded([parts["ids"]], n_ids, 0)
        (parts["words_of_ids"],) = padded([parts["words_of_ids"]], n_ids, n_words)
        return parts, np.argsort(order)

    def train_step(self):
        update, batch = self.number, self.next_batch()
        queries, place_of_query = self.collate("query", batch, update)
        titles, place_of_title = self.collate("document", batch, update)
        arrays = {
            "query": queries,
            "document": titles,
            "query_of_pair": place_of_query[batch.query_of_pair],
            "candidates": place_of_title[batch.candidates],
            "weights": batch.weights.numpy(),
        }
        settings = self.rate, self.gamma, self.max_norm, self.n_words
        self.towers, loss = train(self.towers, arrays, *settings)
        return float(loss)


def padded(arrays, size, value):
    """Arrays of one dimension as the rows of one array, filled with ``value`` at the end."""
    rows = np.full((len(arrays), size), value, np.result_type(*arrays))
    for row, array in zip(rows, arrays, strict=True):
        row[: len(array)] = array
    return rows
