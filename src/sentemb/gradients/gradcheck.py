"""Every gradient against finite differences, block by block.

The check makes up a problem in float64, by default two towers on pairs of texts, and compares its
gradient with central differences of its loss.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sentemb.gradients.agreement import compare
from sentemb.gradients.check_options import (
    ENTRIES,
    FORM,
    LENGTHS,
    NEGATIVES,
    OBJECTIVE,
    SEED,
    TEACHER_SHARE,
    TEXTS,
    TOLERANCE,
    VECTOR_DIM,
    Problem,
    Tolerances,
    checked_lengths,
)
from sentemb.gradients.check_report import BlockCheck, GradientReport
from sentemb.gradients.checks import all_checks, make_check
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.two_towers import made_up_towers
from sentemb.models.towers.registry import ENCODERS, SHARED_TOWERS

__all__ = ["BlockCheck", "GradientReport", "gradcheck"]


def gradcheck(
    model: str = "lstm",
    *,
    form: str = FORM.default,
    shared_towers: bool = SHARED_TOWERS.default,
    lengths: Iterable[int] = LENGTHS,
    n_negatives: int = NEGATIVES.default,
    seed: int = SEED.default,
    objective: str | None = OBJECTIVE.default,
    vector_dim: int = VECTOR_DIM.default,
    teacher_share: float = TEACHER_SHARE.default,
    entries: int = ENTRIES.default,
    tolerance: float = TOLERANCE.default,
    n_texts: int = TEXTS.default,
    fault: str | None = None,
    **encoder_settings: Any,
) -> GradientReport:
    """Compare a model's gradient with finite differences of its loss.

    Parameters
    ----------
    model : str
        One of `sentemb.models.towers.ENCODERS`: "lstm", "bilstm", "rnn", "irnn", "bag", "dssm",
        "clsm", "dan"; one of `sentemb.models.pairs.PAIR_MODELS`, such as "arc2"; or one of
        `sentemb.gradients.checks.CHECKS`: "urae-reconstruction", the auto-encoder of the pair model
        "urae".
    form : {"scan", "trace", "printed"}
        Which gradient to check.
    shared_towers : bool
        One tower for queries and titles.
    lengths : sequence of int
        Words of the queries, at most 50 numbers from 1 to 200; the titles have the same lengths in
        another order.
    n_negatives : int
        Negatives per query, at most 100.
    seed : int
        Random seed.
    objective : {"softmax", "hinge", "logistic"}, optional
        The loss, for towers "softmax" or "hinge", for pair models "hinge" or "logistic"; by default
        the first. With the hinge all titles of a problem of towers compete.
    vector_dim : int
        For towers: dimensions of random word vectors that are features too, at most 100; 0 leaves
        them out.
    teacher_share : float
        For towers and the softmax: the share of a made-up teacher in the target of each pair,
        from 0 to 1. All titles of the problem then compete.
    entries : int
        Entries of each block that are compared, the largest ones and random ones; at most a
        million.
    tolerance : float
        Largest relative error that passes.
    n_texts : int
        Texts, pairs or examples of a mini-batch as large as in training, at most 10,000. Its
        gradient is compared with the sum of that of 8 at a time and, for the models of the
        paper, with the traces, also where errors are cut off. 0 leaves this out, and so do the
        other forms and a fault.
    fault : {"cell-path", "other-gates", "b_g", "peepholes"}, optional
        Check the gradient of an LSTM with this term left out, to watch the check fail; see
        `sentemb.gradients.faults`.
    **encoder_settings
        As for training: ``cells`` (6 unless given), ``forget_gate``, ``peepholes``, ``bag_dim``,
        ``output_gate``, ``hidden`` (5 unless given), ``window``, ``layers``, ``activation``; for
        pair models those of `sentemb.models.pairs.registry` and ``dropout``, the share of values
        that are dropped.

    Returns
    -------
    GradientReport

    Raises
    ------
    SentembError
        For settings that are wrong or do not go together, and for a problem that is too large.
    """
    problem = Problem(
        shared_towers,
        checked_lengths(lengths),
        n_negatives,
        seed,
        objective,
        vector_dim,
        teacher_share,
    )
    tolerances = Tolerances(entries, tolerance, n_texts)
    with made_up(model, problem, form, fault, encoder_settings) as made:
        return compare(made, form, fault, tolerances)


@contextmanager
def made_up(
    model: str, problem: Problem, form: str, fault: str | None, settings: dict[str, Any]
) -> Iterator[CheckedProblem]:
    """The problem of a check, for as long as the context lasts.

    Parameters and errors as for `gradcheck`.
    """
    checks = all_checks()
    replace(ENCODERS.model, choices=(*ENCODERS, *checks)).checked(model)
    if model in checks:
        yield make_check(model, problem, FORM.checked(form), settings)
        return
    with made_up_towers(model, problem, form, fault, settings) as towers:
        yield towers
