"""The README.md of a model folder."""

from sentemb.models.files.history import best_epoch
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.towers.encoder import Encoder

CARD = "README.md"


def _listed(shape: Encoder | PairModel) -> str:
    return ", ".join(f"{key} {value}" for key, value in shape.settings().items())


def card_of(saved: SavedModel, name: str) -> str:
    """The text of the card of the model ``name``."""
    model = saved.model
    if isinstance(model, Matcher):
        face = "PairScorer"
        what = f"A pair model: {model.model.name} ({_listed(model.model)}), {model.vocabulary}."
    else:
        face = "SentenceEncoder"
        what = (
            f"A sentence-embedding model: {model.encoder.name} ({_listed(model.encoder)}), "
            f"{'one shared tower' if model.shared else 'a query and a title tower'}, "
            f"{model.vocabulary}, {model.encoder.dim} dimensions."
        )
    lines = [
        f"# {name}",
        "",
        what,
        "",
        "```python",
        f"from sentemb import {face}",
        "",
        f'model = {face}.from_pretrained("{name}")',
        'model.score("a query", "a title")',
        "```",
        "",
    ]
    if not isinstance(model, Matcher):
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
