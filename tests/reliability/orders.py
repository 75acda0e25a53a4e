"""Orders of commands, each in a process of its own, on one cache of compiled kernels.

A kernel that is compiled while another one comes from the cache is saved too. So what a command
does may depend on the commands before it, on one that runs at the same time, and on the processor
that filled the cache. Each must end well, and with the bits that it has on an empty cache.

Run it with ``python -m reliability.orders`` in the folder ``tests``.
"""

import hashlib
import os
import platform
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
from helpers import made_up_judged_set, made_up_log

from reliability.count import Count, held
from sentemb.data.click_log import write_click_log
from sentemb.data.judged_set import write_judged_set

_TRAIN = "train log.tsv --epochs 1 --batch-size 16 --threads 1 --no-ranker"
_PAIRS = f"{_TRAIN} --embedding 6 --mlp 7"
# Each command, and the file that it writes; its bits, or else those of its output, are compared.
COMMANDS = {
    **{f"{_TRAIN} --model {model} --cells 8 -o out": "out/model.safetensors"
       for model in ("lstm", "bilstm", "rnn", "irnn", "bag")},
    f"{_TRAIN} --model lstm --cells 8 --dev dev --hard-negatives 2 --epochs 3 -o out":
        "out/model.safetensors",
    f"{_TRAIN} --model lstm --cells 8 --forget-gate --peepholes full -o out":
        "out/model.safetensors",
    f"{_TRAIN} --model lstm --cells 8 --preset paper --n-negatives 2 -o out":
        "out/model.safetensors",
    f"{_TRAIN} --model bag --cells 8 --objective hinge -o out": "out/model.safetensors",
    f"{_TRAIN} --model dssm --cells 8 --hidden 9 -o out": "out/model.safetensors",
    f"{_TRAIN} --model clsm --cells 8 --hidden 9 -o out": "out/model.safetensors",
    f"{_TRAIN} --model dan --cells 8 --hidden 9 -o out": "out/model.safetensors",
    f"{_TRAIN} --model dan --cells 8 --hidden 9 --activation linear -o out":
        "out/model.safetensors",
    **{f"{_PAIRS} --model {model} -o out": "out/model.safetensors"
       for model in ("wordembed", "senmlp")},
    f"{_PAIRS} --model senna --maps 5 -o out": "out/model.safetensors",
    f"{_PAIRS} --model arc1 --maps 5,4 -o out": "out/model.safetensors",
    f"{_PAIRS} --model arc2 --maps 5,4 -o out": "out/model.safetensors",
    f"{_PAIRS} --epochs 3 --model urae --cells 6 -o out": "out/model.safetensors",
    f"{_TRAIN} --mlp 7 --model deepmatch --nodes 20 -o out": "out/model.safetensors",
    "gradcheck --model lstm --cells 4": "",
    "gradcheck --model dssm --cells 4": "",
    "gradcheck --model arc2": "",
    "score model FIRST_QUERY FIRST_TITLE": "",
    "evaluate model dev": "",
    "topics model dev/queries.tsv": "",
    "index model dev/docs.tsv -o out": "out/cosine/vectors.npy",
    "encode model dev/queries.tsv -o out.npy": "out.npy",
}  # fmt: skip
_DSSM = next(command for command in COMMANDS if "--model dssm" in command)
_SECONDS = 900
# Orders to choose each from.
_DRAWS = 500


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    Attributes
    ----------
    code : int
        Below 0 for a signal.
    digest : str
        Of what it wrote.
    message : str
        The last line of its errors, which may hold times and is not compared.
    """

    code: int
    digest: str
    message: str = field(compare=False)

    @property
    def ending(self) -> str:
        """The signal, or the code with the last line of its errors."""
        if self.code < 0:
            return signal.Signals(-self.code).name
        return f"code {self.code}, {self.message or 'other bits'}"


class Shop:
    """A folder with a log, a dev set and a model, in which commands are run.

    Parameters
    ----------
    folder : Path
        Empty.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        log = made_up_log(80)
        write_click_log(log, folder / "log.tsv")
        write_judged_set(made_up_judged_set(log), folder / "dev")
        self._texts = {"FIRST_QUERY": log.queries[0], "FIRST_TITLE": log.titles[0]}
        self._alone: dict[tuple[str, ...], Outcome] = {}
        model = self.folder / "model"
        made = self.run(f"{_TRAIN} --model lstm --cells 8 -o {model}", folder / "first")
        assert made.code == 0, made.message

    def run(self, command: str, cache: Path, processor: str = "") -> Outcome:
        """Run one command in a fresh process on a cache, which is made where it is missing."""
        cache.mkdir(mode=0o700, exist_ok=True)
        words = [self._texts.get(word, word) for word in command.split()]
        target = {"NUMBA_CPU_NAME": processor, "NUMBA_CPU_FEATURES": ""} if processor else {}
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            folder = Path(name)
            for source in ("log.tsv", "dev", "model"):
                os.symlink(self.folder / source, folder / source)
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "sentemb", *words],
                    cwd=folder,
                    env={
                        **os.environ,
                        "NUMBA_CACHE_DIR": str(cache),
                        "SENTEMB_THREADS": "1",
                        **target,
                    },
                    capture_output=True,
                    timeout=_SECONDS,
                )
            except subprocess.TimeoutExpired:
                return Outcome(1, "", f"did not end in {_SECONDS} seconds")
            output = folder / COMMANDS.get(command, "")
            bits = output.read_bytes() if output.is_file() else done.stdout
        message = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        return Outcome(done.returncode, hashlib.sha256(bits).hexdigest(), "".join(message))

    def alone(self, command: str, processor: str = "") -> Outcome:
        """How a command ends on an empty cache; each is run once."""
        key = command, processor
        if key not in self._alone:
            cache = self.folder / f"empty-{len(self._alone)}"
            self._alone[key] = self.run(command, cache, processor)
        return self._alone[key]


def orders(n_orders: int = 40, length: int = 8, seed: int = 0) -> Count:
    """Compare commands in random orders with the same commands on an empty cache.

    Parameters
    ----------
    n_orders, length : int
        How many orders, of how many commands; see `drawn_orders`.
    seed : int
    """
    count = Count("orders of commands on one cache of kernels")
    commands = list(COMMANDS)
    chosen = drawn_orders(n_orders, length, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shop = Shop(folder)
        for number, order in enumerate(chosen):
            for k, command in enumerate(order):
                outcome = shop.run(command, folder / f"cache-{number}")
                count.tried += 1
                if outcome.code or outcome != shop.alone(command):
                    before = "; ".join(order[:k])
                    count.failures.append(f"{command}: {outcome.ending}, after: {before}")
        tried = {command for order in chosen for command in order}
        pairs = {pair for order in chosen for pair in combinations(order, 2)} & pairs_of_trainings()
        count.notes.append(f"{len(tried)} of {len(commands)} commands in {n_orders} orders")
        count.notes.append(f"{len(pairs)} of {len(pairs_of_trainings())} trainings after another")
        _at_the_same_time(shop, commands, count)
        _on_another_processor(shop, [commands[0], _DSSM, commands[-1]], count)
    return count


def pairs_of_trainings() -> set[tuple[str, str]]:
    """Each training with each other, in both orders."""
    trainings = [command for command in COMMANDS if command.startswith("train ")]
    return set(permutations(trainings, 2))


def drawn_orders(n_orders: int, length: int, seed: int) -> list[list[str]]:
    """Orders of commands, in 40 of which every training comes after every other.

    The first order is one that once ended with a segmentation fault; the next ones hold every
    command once. Of those drawn for each of the rest, it is that with the most new pairs.
    """
    generator = np.random.default_rng(seed)
    commands = list(COMMANDS)

    def draw() -> list[str]:
        return [commands[c] for c in generator.permutation(len(commands))]

    shuffled = draw()
    chosen = [[next(command for command in commands if "linear" in command), _DSSM, _DSSM]]
    chosen += [shuffled[k : k + length] for k in range(0, len(shuffled), length)]
    missing = pairs_of_trainings()
    for order in chosen:
        missing.difference_update(combinations(order, 2))
    while len(chosen) < n_orders:
        draws = (draw()[:length] for _ in range(_DRAWS))
        best = max(draws, key=lambda order: len(missing.intersection(combinations(order, 2))))
        missing.difference_update(combinations(best, 2))
        chosen.append(best)
    return chosen[:n_orders]


def _at_the_same_time(shop, commands, count, n_pairs=8):
    """Two processes that fill one empty cache."""
    generator = np.random.default_rng(1)
    for number in range(n_pairs):
        pair = [commands[c] for c in generator.choice(len(commands), 2, replace=number % 2 == 0)]
        cache = shop.folder / f"shared-{number}"
        with ThreadPoolExecutor(2) as threads:
            outcomes = list(threads.map(shop.run, pair, [cache, cache]))
        for k, (command, outcome) in enumerate(zip(pair, outcomes, strict=True)):
            count.tried += 1
            if outcome.code or outcome != shop.alone(command):
                count.failures.append(f"{command}: {outcome.ending}, next to: {pair[1 - k]}")
    count.notes.append(f"{n_pairs} empty caches were filled by two processes at once")


def _on_another_processor(shop, commands, count):
    """A cache that moves between two processors, as in a shared home folder."""
    for number, command in enumerate(commands):
        cache = shop.folder / f"moved-{number}"
        for processor in ("", "x86-64" if platform.machine() == "x86_64" else "generic", ""):
            outcome = shop.run(command, cache, processor)
            count.tried += 1
            if outcome.code or outcome != shop.alone(command, processor):
                count.failures.append(f"{command}: {outcome.ending} on {processor or 'the host'}")
    count.notes.append(f"{len(commands)} caches were moved to another processor and back")


if __name__ == "__main__":
    held(orders(*map(int, sys.argv[1:])))
