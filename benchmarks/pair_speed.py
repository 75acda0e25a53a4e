"""How fast ARC-II is: scores of pairs and gradients of triples, compared with PyTorch.

Contenders take turns in one process on one thread; ratios compare neighbouring turns. PyTorch has
the same one-sided pools, masks for the cells that are off, planes cut to the longest text of the
batch, and channels_last. Texts are made up. Writes docs/results/speed.md.

    python benchmarks/pair_speed.py [--quick] [--rounds 5] [--clock cpu]
"""

import argparse
import time
from collections import defaultdict

import numpy as np
import torch
import torch.nn.functional as F
from pages import machine, write_tables
from rounds import DisagreementError, Result, note

from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.pair_model import Pairs, Texts
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers, one_after_the_other
from sentemb.system.tables import markdown_table

LONGEST, EMBEDDING, MLP, WORDS = 32, 50, 200, 2_000
TRIPLES = 128
MAPS = ((200, 200, 200), (48, 48, 48))
LENGTHS = {"8–20 words": (8, 20), "32 words": (32, 32)}
# Pairs scored per second and seconds per step, for 200 maps.
TARGETS = {"8–20 words": (1_400, 0.6), "32 words": (550, 1.5)}
# In float64; in float32 rounding moves a few maxima to another cell, and with them whole errors.
TOLERANCE = 1e-9
OURS, TORCH = "sentemb", "PyTorch"


class Case:
    """Weights and texts of 128 triples: each query with a title that was clicked and another."""

    def __init__(self, maps, shortest, longest, dtype=np.float32):
        rng = np.random.default_rng(0)
        self.model = make_pair_model(
            "arc2", maps=maps, embedding=EMBEDDING, mlp=MLP, max_words=LONGEST
        )
        self.weights = self.model.initialise(1, rng, dtype)
        self.P = rng.standard_normal((WORDS, EMBEDDING)).astype(dtype)
        self.texts = {}
        for side, count in (("query", TRIPLES), ("document", 2 * TRIPLES)):
            lengths = rng.integers(shortest, longest + 1, count)
            offsets = np.concatenate([[0], np.cumsum(lengths)])
            words = rng.integers(0, WORDS, offsets[-1]).astype(np.int32)
            self.texts[side] = Texts(words, offsets)
        self.queries = np.repeat(np.arange(TRIPLES), 2).astype(np.int32)
        self.titles = np.arange(2 * TRIPLES).astype(np.int32)


class Ours:
    """sentemb on one thread."""

    def __init__(self, case, workers):
        self.case, self.workers = case, workers
        self.given = Pass(case.weights, case.P, Workspace())

    def _score(self):
        case = self.case
        readings = self.workers.together(
            *(case.model.read_tasks(self.given, side, texts) for side, texts in case.texts.items())
        )
        pairs = Pairs(*readings, case.queries, case.titles)
        return self.workers.together(case.model.score_tasks(self.given, pairs))[0]

    def forward(self):
        return self._score().scores

    def step(self):
        """The gradient of the mean hinge at all weights and words."""
        done = self._score()
        better, worse = done.scores.reshape(-1, 2).T
        active = (1 + worse - better > 0).astype(done.scores.dtype) / TRIPLES
        V = np.stack([-active, active], axis=1).ravel()
        return self.workers.together(self.case.model.backward_tasks(self.given, done, V))[0]

    def gradient_of_matrix(self):
        return self.step()[0]["maps3"]


class Torch:
    """The same in PyTorch."""

    def __init__(self, case, workers):
        self.case, model = case, case.model
        tensors = {name: torch.tensor(array) for name, array in case.weights.items()}
        self.P = torch.tensor(case.P, requires_grad=True)
        k, first = model.window, model.maps[0]
        self.windows = {
            side: tensors[f"windows_{side}"].reshape(k, EMBEDDING, first).permute(2, 1, 0)
            .contiguous().requires_grad_()
            for side in case.texts
        }  # fmt: skip
        self.convolutions = []
        for number in range(3, 2 * len(model.maps) + 1, 2):
            W = tensors[f"maps{number}"]
            W = W.reshape(k, k, -1, W.shape[1]).permute(3, 2, 0, 1)
            W = W.contiguous(memory_format=torch.channels_last).requires_grad_()
            self.convolutions.append((W, tensors[f"maps_bias{number}"].requires_grad_()))
        self.others = {
            name: tensors[name].requires_grad_()
            for name in ("windows_bias", "mlp1", "mlp_bias1", "output", "output_bias")
        }
        self.padded = {}
        for side, texts in case.texts.items():
            lengths = np.diff(texts.offsets)
            words = np.zeros((lengths.size, lengths.max()), np.int64)
            for text, (low, high) in enumerate(zip(texts.offsets, texts.offsets[1:], strict=False)):
                words[text, : high - low] = texts.word_index[low:high]
            self.padded[side] = torch.tensor(words), torch.tensor(lengths)
        self.index = torch.tensor(case.queries).long(), torch.tensor(case.titles).long()

    def _pooled(self, side):
        """The pooled windows of the texts, and how many of them are on."""
        words, lengths = self.padded[side]
        size = LONGEST - self.case.model.window + 1
        X = self.P[words] * (torch.arange(words.shape[1]) < lengths[:, None])[:, :, None]
        room = min(words.shape[1] + self.case.model.window - 1, LONGEST)
        X = F.pad(X.transpose(1, 2), (0, room - words.shape[1]))
        U = F.conv1d(X, self.windows[side])
        on = lengths.clamp(max=size)
        U = U.masked_fill(torch.arange(U.shape[2]) >= on[:, None, None], -torch.inf)
        U = F.max_pool1d(U, 2, ceil_mode=True)
        on = (on + 1) // 2
        return U.masked_fill(torch.arange(U.shape[2]) >= on[:, None, None], 0), on

    def _score(self):
        sizes = self.case.model.sizes
        (U, on_x), (V, on_y) = (self._pooled(side) for side in self.case.texts)
        queries, titles = self.index
        U, V, on_x, on_y = U[queries], V[titles], on_x[queries], on_y[titles]
        Z = U[:, :, :, None] + V[:, :, None, :] + self.others["windows_bias"][:, None, None]
        Z = F.relu(Z) * _mask(on_x, on_y, Z)
        Z = Z.contiguous(memory_format=torch.channels_last)
        for (W, bias), (_, before), (size, _) in zip(
            self.convolutions, sizes, sizes[1:], strict=False
        ):
            window = W.shape[2]
            pads = [min(n + window - 1, before) - n for n in (Z.shape[3], Z.shape[2])]
            Z = F.relu(F.conv2d(F.pad(Z, (0, pads[0], 0, pads[1])), W, bias))
            on_x, on_y = on_x.clamp(max=size), on_y.clamp(max=size)
            Z = F.max_pool2d(Z * _mask(on_x, on_y, Z), 2, ceil_mode=True)
            on_x, on_y = (on_x + 1) // 2, (on_y + 1) // 2
        last = sizes[-1][1]
        Z = F.pad(Z, (0, last - Z.shape[3], 0, last - Z.shape[2]))
        H = Z.permute(0, 2, 3, 1).flatten(1)
        A = F.relu(H @ self.others["mlp1"] + self.others["mlp_bias1"])
        return A @ self.others["output"] + self.others["output_bias"]

    def forward(self):
        with torch.no_grad():
            return self._score().numpy()

    def step(self):
        weights = [self.P, *self.windows.values(), *self.others.values()]
        for pair in self.convolutions:
            weights += pair
        for weight in weights:
            weight.grad = None
        better, worse = self._score().reshape(-1, 2).T
        F.relu(1 + worse - better).mean().backward()

    def gradient_of_matrix(self):
        self.step()
        gradient = self.convolutions[0][0].grad.permute(2, 3, 1, 0)
        return gradient.reshape(-1, gradient.shape[3]).numpy()


def _mask(on_x, on_y, Z):
    rows = torch.arange(Z.shape[2]) < on_x[:, None]
    columns = torch.arange(Z.shape[3]) < on_y[:, None]
    return (rows[:, :, None] & columns[:, None, :])[:, None]


def check(case, workers):
    """Both compute the same scores and the same gradient."""
    both = Ours(case, workers), Torch(case, workers)
    for what, values in (
        ("scores", [one.forward() for one in both]),
        ("gradients", [one.gradient_of_matrix() for one in both]),
    ):
        ours, other = values
        difference = np.linalg.norm(ours - other) / np.linalg.norm(other)
        if not difference <= TOLERANCE:
            raise DisagreementError(f"{what} differ by {difference:.1e} of their norm")


def take_turns(contenders, job, rounds, clock):
    seconds = defaultdict(list)
    for _ in range(rounds):
        for name, contender in contenders.items():
            began = clock()
            getattr(contender, job)()
            seconds[name].append(clock() - began)
    return Result(seconds)


class Profiled(Workers):
    """Counts the seconds of every kernel."""

    def __init__(self, clock):
        super().__init__(1)
        self.clock, self.seconds = clock, defaultdict(float)

    def run(self, tasks):
        for function, *arguments in tasks:
            if function is one_after_the_other:
                self.run(arguments)
            else:
                began = self.clock()
                function(*arguments)
                self.seconds[function.__name__] += self.clock() - began


def profile(case, clock):
    """Milliseconds of a step per kernel, the longest first."""
    with Profiled(clock) as workers:
        ours = Ours(case, workers)
        ours.step()
        workers.seconds.clear()
        began = clock()
        ours.step()
        whole = clock() - began
    rows = sorted(workers.seconds.items(), key=lambda row: -row[1])[:8]
    rest = whole - sum(seconds for _, seconds in rows)
    return [*((f"`{name}`", seconds) for name, seconds in rows), ("everything else", rest)]


def times(spread):
    return f"{spread.median:.2f} × ({spread.least:.2f}–{spread.most:.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two rounds, results not written")
    parser.add_argument("--rounds", type=int, default=5, help="turns of every contender")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    arguments = parser.parse_args()
    rounds = 2 if arguments.quick else arguments.rounds
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    torch.set_num_threads(1)
    forward = [["maps", "texts", "sentemb pairs/s", "PyTorch pairs/s", "PyTorch / sentemb"]]
    step = [["maps", "texts", "sentemb", "PyTorch", "PyTorch / sentemb"]]
    targets = [["what", "target", "measured", ""]]
    profiles = {}
    for maps in MAPS:
        name = "-".join(map(str, maps))
        for texts, lengths in LENGTHS.items():
            note(f"{name}, {texts}")
            case = Case(maps, *lengths)
            with Workers(1) as workers:
                check(Case(maps, *lengths, np.float64), workers)
                contenders = {OURS: Ours(case, workers), TORCH: Torch(case, workers)}
                for contender in contenders.values():
                    contender.step()
                scored = take_turns(contenders, "forward", rounds, clock)
                stepped = take_turns(contenders, "step", rounds, clock)
            pairs = {one: 2 * TRIPLES / scored.time(one).median for one in contenders}
            seconds = {one: stepped.time(one).median for one in contenders}
            forward.append(
                [name, texts, f"{pairs[OURS]:,.0f}", f"{pairs[TORCH]:,.0f}",
                 times(scored.ratio(TORCH, OURS))]
            )  # fmt: skip
            step.append(
                [name, texts, f"{seconds[OURS]:.3f} s", f"{seconds[TORCH]:.3f} s",
                 times(stepped.ratio(TORCH, OURS))]
            )  # fmt: skip
            if maps == MAPS[0]:
                least, most = TARGETS[texts]
                for what, target, value, met in (
                    (f"forward, {texts}", f"at least {least:,} pairs/s",
                     f"{pairs[OURS]:,.0f} pairs/s", pairs[OURS] >= least),
                    (f"step, {texts}", f"at most {most} s", f"{seconds[OURS]:.3f} s",
                     seconds[OURS] <= most),
                ):  # fmt: skip
                    targets.append([what, target, value, "met" if met else "missed"])
            profiles[f"{name}, {texts}"] = markdown_table([
                ["kernel", "time"],
                *([kernel, f"{1e3 * took:.1f} ms"] for kernel, took in profile(case, clock)),
            ])  # fmt: skip
    tables = {
        "Targets": markdown_table(targets),
        "Forward": markdown_table(forward),
        "Step": markdown_table(step),
        **profiles,
    }
    write_tables("pair-speed", tables, machine("torch"), arguments.quick)


if __name__ == "__main__":
    main()
