"""The README.md of a model folder."""

from sentemb.storage.history import best_epoch
from sentemb.storage.saved_model import SavedModel

CARD = "README.md"


def card_of(saved: SavedModel, name: str) -> str:
    """The text of the card of the model ``name``."""
    model = saved.model
    shape = ", ".join(f"{key} {value}" for key, value in model.encoder.settings().items())
    lines = [
        f"# {name}",
        "",
        f"A sentence-embedding model: {model.encoder.name} ({shape}), "
        f"{'one shared tower' if model.shared else 'a query and a title tower'}, "
        f"{model.vocabulary}, {model.encoder.dim} dimensions.",
        "",
        "```python",
        "from sentemb import SentenceEncoder",
        "",
        f'model = SentenceEncoder.from_pretrained("{name}")',
        'model.score("a query", "a title")',
        "```",
        "",
    ]
    if saved.training:
        lines += ["| training setting | value |", "| --- | --- |"]
        lines += [f"| {key} | {value} |" for key, value in saved.training.items()]
        lines.append("")
    best = best_epoch(saved.history)
    if best is not None:
        figures = ", ".join(f"{key} {value:.3f}" for key, value in best["dev"].items())
        lines += [f"Best on the dev set after epoch {best['epoch']}: {figures}.", ""]
    return "\n".join(lines)
