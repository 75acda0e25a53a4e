"""ReLU against sigmoid-like functions: a small ARC-I in PyTorch, because ours has ReLU alone.

The part ``activations`` of docs/arc.md. The network is that of our ARC-I with fixed word vectors:
two convolutions with windows of 3 words, each followed by pooling over 2, and one hidden layer; a
cell is on where its window begins at a word. All functions have the same draws and mini-batches.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from arc_lab import MODELS, TRAINING, Rows
from arc_parts import SEARCH_PAIRS, part_of

from sentemb.models.pairs.arc1 import ARC1
from sentemb.system.extras import package
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

ACTIVATIONS = ("relu", "sigmoid", "tanh")
RATES = (0.0003, 0.001, 0.003, 0.01)
EPOCHS = 10
_SETTINGS = ARC1(embedding=1, maps=MODELS["arc1"]["maps"]).settings()
WINDOW, HIDDEN, LONGEST = (_SETTINGS[name] for name in ("window", "mlp", "max_words"))
MAPS = MODELS["arc1"]["maps"]
NEGATIVES = TRAINING["n_negatives"]
QUERIES = TRAINING["batch_size"] // NEGATIVES


@dataclass
class Padded:
    """Texts as rows of word vectors: X (n, dim, LONGEST) and how many words each has."""

    X: object
    lengths: object


def activations(lab, path):
    """Dev P@1 and loss after each epoch, by activation and learning rate."""
    torch = package("torch", "bench")
    torch.set_num_threads(lab.threads)
    rows = Rows(path, ("activation", "rate", "loss", "dev"), 2)
    log, dev = part_of(lab.log("completion"), SEARCH_PAIRS), lab.judged("completion", "dev")
    queries, titles = (_padded(texts, lab.vectors, torch) for texts in (log.queries, log.titles))
    judged = tuple(_padded(texts, lab.vectors, torch) for texts in (dev.queries, dev.titles))
    for activation, rate in product(ACTIVATIONS, RATES):
        if rows.has(activation, rate):
            continue
        network = Network(queries.X.shape[1], activation, torch)
        losses, figures = [], []
        for loss in trained(network, log, queries, titles, rate):
            losses.append(f"{loss:.4f}")
            figures.append(f"{precision(network, dev, *judged):.4f}")
        rows.add(activation, rate, " ".join(losses), " ".join(figures))


def _padded(texts, vectors, torch):
    tokens = tokenize(texts, plain_words)
    found = vectors.rows(tokens.words)
    table = np.where(found[:, None] < 0, 0, vectors.vectors[found]).astype(np.float32)
    X = np.zeros((len(texts), LONGEST, vectors.dim), np.float32)
    lengths = np.minimum(np.diff(tokens.offsets), LONGEST)
    for row, begin, n in zip(X, tokens.offsets[:-1], lengths, strict=True):
        row[:n] = table[tokens.word_index[begin : begin + n]]
    return Padded(torch.tensor(X.transpose(0, 2, 1)), torch.tensor(lengths))


class Network:
    """ARC-I: the vector of each text, and an MLP over both."""

    def __init__(self, dim, activation, torch):
        self.torch, self.apply = torch, getattr(torch, activation)
        self._draws = torch.Generator().manual_seed(0)
        # He's spread for ReLU, Glorot's for the others.
        self._spread = 2 if activation == "relu" else 1
        sizes = (dim, *MAPS)
        self.sides = [
            [self._layer((maps, before, WINDOW), before * WINDOW)
             for before, maps in zip(sizes, MAPS, strict=False)]
            for _ in range(2)
        ]  # fmt: skip
        cells = LONGEST
        for _ in MAPS:
            cells = -(-(cells - WINDOW + 1) // 2)
        inputs = 2 * cells * MAPS[-1]
        self.hidden, self.out = (
            self._layer((inputs, HIDDEN), inputs),
            self._layer((HIDDEN, 1), HIDDEN),
        )

    def _layer(self, shape, inputs):
        weights = self.torch.randn(shape, generator=self._draws) * (self._spread / inputs) ** 0.5
        bias = self.torch.zeros(shape[0] if len(shape) == 3 else shape[1])
        return weights.requires_grad_(), bias.requires_grad_()

    @property
    def weights(self):
        """Every array that is trained."""
        layers = [*self.sides[0], *self.sides[1], self.hidden, self.out]
        return [array for layer in layers for array in layer]

    def vectors(self, side, texts, index):
        """(n, cells * maps) of some texts."""
        torch, F = self.torch, self.torch.nn.functional
        Z, on = texts.X[index], texts.lengths[index]
        for weights, bias in self.sides[side]:
            Z = self.apply(F.conv1d(Z, weights, bias))
            on = on.clamp(max=Z.shape[2])
            Z = Z.masked_fill(torch.arange(Z.shape[2]) >= on[:, None, None], -torch.inf)
            Z = F.max_pool1d(Z, 2, ceil_mode=True)
            on = (on + 1) // 2
            Z = Z.masked_fill(torch.arange(Z.shape[2]) >= on[:, None, None], 0)
        return Z.flatten(1)

    def scores(self, x, y):
        """(n,) of the vectors of queries and titles."""
        hidden = self.apply(self.torch.hstack([x, y]) @ self.hidden[0] + self.hidden[1])
        return (hidden @ self.out[0] + self.out[1])[:, 0]


def trained(network, log, queries, titles, rate):
    """The mean loss of each epoch, while the network learns by Adam with a falling rate."""
    torch = network.torch
    rng = np.random.default_rng(0)
    optimiser = torch.optim.Adam(network.weights, lr=rate)
    steps = len(log.clicks) // QUERIES
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda k: 1 - k / (EPOCHS * steps))
    for _ in range(EPOCHS):
        total = 0.0
        for pairs in np.array_split(rng.permutation(len(log.clicks))[: steps * QUERIES], steps):
            x = network.vectors(0, queries, log.query_index[pairs])
            y = network.vectors(1, titles, log.title_index[pairs])
            # The titles of the next pairs of the mini-batch are the negatives.
            places = (np.arange(QUERIES)[:, None] + np.arange(NEGATIVES + 1)) % QUERIES
            s = network.scores(x.repeat_interleave(NEGATIVES + 1, 0), y[places.ravel()])
            s = s.reshape(places.shape)
            loss = torch.relu(1 + s[:, 1:] - s[:, :1]).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
            total += loss.item()
        yield total / steps


def precision(network, judged, queries, titles):
    """The share of queries whose right title has the highest score."""
    torch = network.torch
    of_pair = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    with torch.no_grad():
        x = network.vectors(0, queries, np.arange(len(judged.queries)))
        y = network.vectors(1, titles, np.arange(len(judged.titles)))
        s = network.scores(x[of_pair], y[judged.title_index]).numpy()
    right = [
        judged.grade[begin + np.argmax(s[begin:end])] > 0
        for begin, end in zip(judged.offsets, judged.offsets[1:], strict=False)
    ]
    return float(np.mean(right))
