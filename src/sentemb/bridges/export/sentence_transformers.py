"""A model folder that sentence-transformers opens."""

from __future__ import annotations

from collections.abc import Callable

from sentemb.bridges.export.targets import Exported
from sentemb.models.files.model_files import save_model
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.files import is_file, names_in, path_of
from sentemb.system.paths import AnyPath


def write(
    source: SentenceEncoder,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write a model folder, as `SentenceEncoder.save_pretrained` does.

    Every model with two towers can be opened by sentence-transformers as it is; this takes the
    model out of an index. ``force`` replaces a model that is there. ``on_progress`` is not called:
    a model has no titles to count. Raises `SentembError` if the folder holds something else, holds
    a model and ``force`` is not set, or cannot be written.
    """
    save_model(source.saved(), out, force)
    folder = path_of(out)
    opened = f'SentenceTransformer("{out}", trust_remote_code=True)'
    return Exported(
        [folder / name for name in names_in(folder) if is_file(folder / name)],
        notes=[f"{opened} opens it where sentemb is installed"],
    )
