"""The result of a gradient check: by block, and as a whole."""

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

from sentemb.system.html_tables import FAILED, html_table

GATE_LEGEND = "gates: 1 output, 2 forget, 3 input, 4 candidate"


@dataclass(frozen=True)
class BlockCheck:
    """The result of `gradcheck` for one block of parameters.

    Attributes
    ----------
    block : str
        Side and the paper's name, such as ``query.Wrec3``.
    shape : tuple of int
    checked : int
        Entries compared with differences.
    kinks : int
        Entries left out because max pooling picks another word on some step of the differences, the
        hinge another text or none, a ReLU switches, or |h_L - h_R| of a classifier has another
        sign: there the loss has no slope.
    relative, absolute : float
        Largest errors; relative is |a - n| / max(|a| + |n|, floor), the floor a thousandth of the
        block's largest entry.
    index : tuple of int
        Where the relative error is largest, with ``analytic`` and ``numeric`` there.
    form_difference : float or None
        Largest difference from the other exact form, relative to the block's largest entry; None
        for models with only one exact form.
    cosine, norm_ratio : float or None
        For the form ``printed``: the cosine of the checked gradient with the true one (form
        ``scan``), and the ratio of their norms. None where either gradient is zero.
    equations : str
        For a failing block of the form ``printed``: what in the paper is at fault.
    passed : bool
    """

    block: str
    shape: tuple[int, ...]
    checked: int
    kinks: int
    relative: float
    absolute: float
    index: tuple[int, ...]
    analytic: float
    numeric: float
    form_difference: float | None
    cosine: float | None
    norm_ratio: float | None
    equations: str
    passed: bool


@dataclass(frozen=True)
class BatchCheck:
    """A mini-batch as large as in training: its gradient at once against another exact way.

    Attributes
    ----------
    way : str
        The sum over parts of 8 texts (``8 by 8``), or the traces, perhaps of errors that are cut
        off.
    difference : float
        The largest difference in any block, relative to the block's largest entry.
    block : str
        Where it is.
    passed : bool
    """

    way: str
    difference: float
    block: str
    passed: bool


@dataclass(frozen=True, repr=False)
class GradientReport:
    """The result of `gradcheck`.

    Attributes
    ----------
    model, form : str
    settings : dict
        Settings of the encoder and of the problem.
    blocks : list of BlockCheck
    directional : float
        Largest relative error of the slope of the loss in random directions of all parameters.
    repeatable : bool
        Whether the backward pass gives the same bits twice.
    batch : list of BatchCheck
        Other exact ways to the gradient of a mini-batch as large as in training; empty for the
        other forms, for a fault, and for a loss that is not made of texts.
    n_texts : int
        Texts, pairs or examples of that mini-batch.
    passed : bool
    fault : str or None
        The term that was left out on purpose.
    """

    model: str
    form: str
    settings: dict[str, Any]
    tolerance: float
    blocks: list[BlockCheck] = field(default_factory=list)
    directional: float = 0.0
    repeatable: bool = True
    batch: list[BatchCheck] = field(default_factory=list)
    n_texts: int = 0
    passed: bool = False
    fault: str | None = None

    @property
    def legend(self) -> str:
        """The meaning of the numbers in the blocks' names; empty where they have none."""
        return GATE_LEGEND if self.model in ("lstm", "bilstm") else ""

    @property
    def failed(self) -> list[str]:
        """The names of the blocks that fail."""
        return [block.block for block in self.blocks if not block.passed]

    @property
    def batch_line(self) -> str:
        """How far the ways to the gradient of a whole mini-batch differ; empty without one."""
        if not self.batch:
            return ""
        ways = "; ".join(
            f"{check.way} {check.difference:.1e}" + ("" if check.passed else f" in {check.block}")
            for check in self.batch
        )
        verdict = "" if all(check.passed for check in self.batch) else ": FAIL"
        return f"{self.n_texts} at once differ from {ways}{verdict}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"failed in {len(self.failed)}"
        return (
            f"GradientReport({self.model}, form {self.form}, {len(self.blocks)} blocks, {verdict})"
        )

    def _repr_html_(self) -> str:
        """A table of the blocks, for notebooks."""
        shape = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        left_out = f"left out on purpose: {self.fault}" if self.fault else ""
        first = [f"{self.model}, form {self.form}: {shape}", self.legend, left_out]
        rows = [
            (
                block.block,
                " × ".join(map(str, block.shape)),
                block.checked,
                f"{block.relative:.1e}",
                list(block.index),
                f"{block.analytic:+.6e}",
                f"{block.numeric:+.6e}",
                "pass" if block.passed else "FAIL",
            )
            for block in self.blocks
        ]
        table = html_table(rows, _HEADS, ["" if block.passed else FAILED for block in self.blocks])
        return (
            f"<p>{'<br/>'.join(escape(line) for line in first if line)}</p>{table}"
            f"<p>All parameters in random directions: relative error {self.directional:.1e}. "
            f"{escape(self.batch_line)}</p>"
            f"<p>{'PASS' if self.passed else 'FAIL'} (tolerance {self.tolerance:g})</p>"
        )


_HEADS = ("block", "shape", "checked", "relative error", "at", "analytic", "numeric", "verdict")
