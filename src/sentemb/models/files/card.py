"""The README.md of a model folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentemb.models.files.history import best_epoch

if TYPE_CHECKING:
    from sentemb.models.files.saved_model import SavedModel

CARD = "README.md"


def card_of(saved: SavedModel, name: str) -> str:
    """The text of the card of the model ``name``."""
    from sentemb.models.files.saved_model import TOWERS  # loads Numba, and `plot-loss` needs none

    model = saved.model
    lines = [
        f"# {name}",
        "",
        str(model),
        "",
        "```python",
        f"from sentemb import {model.face}",
        "",
        f'model = {model.face}.from_pretrained("{name}")',
        'model.score("a query", "a title")',
        "```",
        "",
    ]
    if model.kind == TOWERS:
        opened = f'SentenceTransformer("{name}", trust_remote_code=True)'
        lines += [f"In sentence-transformers, where sentemb is installed: `{opened}`.", ""]
    if saved.training:
        lines += ["| training setting | value |", "| --- | --- |"]
        lines += [f"| {key} | {value} |" for key, value in saved.training.items()]
        lines.append("")
    best = best_epoch(saved.history)
    if best is not None:
        figures = ", ".join(f"{key} {value:.3f}" for key, value in best["dev"].items())
        lines += [f"Best on the dev set after epoch {best['epoch']}: {figures}.", ""]
    return "\n".join(lines)
