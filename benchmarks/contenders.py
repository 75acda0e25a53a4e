"""Contenders as long-lived processes that take jobs in turn.

A process reads one job per line, ``{"job": "train", "steps": 10}``, and answers in a line of JSON,
so that contenders can alternate round by round without restarting.
"""

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

KINDS = (
    "ours", "dense", "fused", "best", "lstm", "jax",
    "dense_adam", "sparse_adam", "best_adam", "machine",
)  # fmt: skip


class Contender:
    """The parent's end of a process.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    environment : dict, optional
        Variables to set in addition to the present ones.
    """

    def __init__(self, kind, environment=None):
        self.kind = kind
        # Numerical libraries must not start threads of their own.
        alone = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
        self.process = subprocess.Popen(
            [sys.executable, __file__, kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **alone, **(environment or {})},
        )

    def ask(self, job, timeout=None, **details):
        """Do a job and wait for its answer; `TimeoutError` after ``timeout`` seconds."""
        self.process.stdin.write(json.dumps({"job": job, **details}) + "\n")
        self.process.stdin.flush()
        if timeout is not None and not select.select([self.process.stdout], [], [], timeout)[0]:
            raise TimeoutError(f"{self.kind} took more than {timeout} s")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.kind} ended without an answer; see its messages above")
        return json.loads(line)

    def seconds(self, clock):
        """A reading of the wall clock, or the processor time of the process so far."""
        if clock == "wall":
            return time.monotonic()
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.stdin.close()
        self.process.wait()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        if exception[0] is None:
            self.close()
        else:
            self.kill()


def contender_class(kind):
    # Imported late: each process loads only its own side.
    if kind == "ours":
        from our_side import Ours

        return Ours
    if kind == "jax":
        # One thread: XLA starts as many as it finds processors when it is imported.
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
        from jax_models import Jax

        return Jax
    import torch_models

    return {
        "dense": torch_models.Dense,
        "fused": torch_models.Fused,
        "best": torch_models.Best,
        "lstm": torch_models.Lstm,
        "dense_adam": torch_models.DenseAdam,
        "sparse_adam": torch_models.SparseAdam,
        "best_adam": torch_models.BestAdam,
    }[kind]


class Server:
    """The process's end: one method per job."""

    def __init__(self, kind):
        self.kind = kind
        self.contender = None
        self.texts = None

    def load(self, case, threads=1):
        """Start again with the case in a folder."""
        self.contender = self.texts = None
        self.contender = contender_class(self.kind)(case, threads)
        return {}

    def train(self, steps):
        """Take some steps: seconds (wall and processor) and loss of each."""
        wall, cpu, losses = [], [], []
        for _ in range(steps):
            began, cpu_began = time.perf_counter(), time.process_time()
            losses.append(self.contender.train_step())
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_began)
        return {"wall": wall, "cpu": cpu, "losses": losses}

    def encode(self, size, calls, first=0):
        """Encode ``calls`` lists of ``size`` titles; the first vector for comparison."""
        self.texts = self.texts or self.contender.titles()
        wall, cpu, vector = [], [], None
        for call in range(calls):
            start = (first + call * size) % (len(self.texts) - size)
            texts = self.texts[start : start + size]
            began, cpu_began = time.perf_counter(), time.process_time()
            vectors = self.contender.encode(texts)
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - cpu_began)
            vector = vectors[0].tolist() if vector is None else vector
        return {"wall": wall, "cpu": cpu, "vector": vector}

    # -- the machine alone --------------------------------------------------------------------

    def machine(self):
        from floor import measure_machine

        return measure_machine()

    def scattered_rows(self, folder, streamed):
        from floor import measure_lists, measure_scattered_rows

        return measure_scattered_rows(folder, streamed) | {"gathered": measure_lists(folder)}

    def products(self, cells, seconds):
        from wide import measure_products

        return measure_products(cells, seconds)

    # -- ours only ----------------------------------------------------------------------------

    def prepare(self, folder):
        return self.contender.prepare(folder)

    def sizes(self):
        return self.contender.sizes()

    def profile(self, steps):
        return self.contender.profile(steps)

    def counts(self, steps, folder=None):
        return self.contender.counts(steps, folder)

    def exact_norms(self, steps):
        return self.contender.exact_norms(steps)

    def many_titles(self, count):
        return self.contender.many_titles(count)

    def first_texts(self, model):
        from our_side import first_texts

        return first_texts(model)

    def whole_job(self, log, epochs, threads, preset="paper", dev=None):
        from whole_job import measure_whole_job

        return measure_whole_job(log, epochs, threads, preset, dev)

    def read(self, log):
        from whole_job import measure_reading

        return measure_reading(log)


def main():
    sys.path.insert(0, str(Path(__file__).parent))
    # Answers go to the real standard output; whatever libraries print goes to standard error.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = Server(sys.argv[1])
    for line in sys.stdin:
        details = json.loads(line)
        answer = getattr(server, details.pop("job"))(**details)
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
