"""A model as a module of sentence-transformers, which finds this class by a model's modules.json.

Importing this file imports sentence-transformers and torch, so nothing in the package does.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from sentemb.errors import SentembError
from sentemb.models.encode_options import check_length, side_of
from sentemb.models.files.model_files import write_model
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import SIDES
from sentemb.system.extras import package
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_text

_EXTRA, _PURPOSE = "sentence-transformers", "SentembModule"
_torch = package("torch", _EXTRA, _PURPOSE)
_modules = package("sentence_transformers.base.modules", _EXTRA, _PURPOSE)

_TEXTS, _SIDE = "texts", "side"


class SentembModule(_modules.InputModule):  # type: ignore[misc, name-defined]
    """Both towers of a model; ``task`` chooses between them.

    ``SentenceTransformer("model", trust_remote_code=True)`` has one such module, as has
    ``SentenceTransformer(modules=[SentembModule("model")])``. Its vectors are those of
    `SentenceEncoder.encode`. The module has no parameters that PyTorch could train.

    Parameters
    ----------
    model : SentenceEncoder or path
        The model, or its folder.

    Attributes
    ----------
    sentence_encoder : SentenceEncoder
        The model.
    """

    forward_kwargs: ClassVar = {"task"}

    def __init__(self, model: SentenceEncoder | AnyPath) -> None:
        super().__init__()
        self.sentence_encoder = (
            model if isinstance(model, SentenceEncoder) else SentenceEncoder.from_pretrained(model)
        )

    # -- storage ------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        model_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Read a model folder, or one from a hub; ``model_kwargs={"threads": 1}`` is obeyed."""
        folder = cls.load_dir_path(
            model_name_or_path,
            subfolder=subfolder,
            token=token,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
        )
        threads = (model_kwargs or {}).get("threads")
        return cls(SentenceEncoder.from_pretrained(folder, threads))

    def save(self, output_path: str, *arguments: Any, **keywords: Any) -> None:
        """Write the model folder; as in sentence-transformers, over whatever is there."""
        with locked(make_folder(output_path)):
            # sentence-transformers writes these itself: they hold its own settings.
            write_model(self.sentence_encoder.saved(), Path(output_path), modules=False)

    def on_model_ready(self, model: Any) -> None:
        """Let ``prompt_name="document"`` choose a tower: each prompt is the name of its side."""
        model.prompts.update({side: side for side in SIDES if not model.prompts.get(side)})

    # -- embeddings ---------------------------------------------------------------------------

    def preprocess(
        self,
        inputs: Sequence[str],
        prompt: str | None = None,
        task: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Texts and the side that ``task`` or ``prompt``, one of `on_model_ready`, names."""
        if prompt and prompt not in SIDES:
            raise SentembError(
                f"a model of sentemb has no prompts, and {prompt!r} is one; write its words into "
                "the texts, or choose a tower with task='query' or 'document'"
            )
        named = side_of(None, task, prompt or None) if task or prompt else None
        return {_TEXTS: [as_text(text) for text in inputs], _SIDE: named}

    def forward(self, features: dict[str, Any], task: str | None = None) -> dict[str, Any]:
        """Add ``sentence_embedding`` (k, dim) to the features, of the model's dtype."""
        side = side_of(features[_SIDE], task)
        vectors = self.sentence_encoder.encode(features[_TEXTS], side)
        return features | {"sentence_embedding": _torch.from_numpy(vectors)}

    # -- facts --------------------------------------------------------------------------------

    def get_embedding_dimension(self) -> int:
        """The length of an embedding."""
        return self.sentence_encoder.dim

    @property
    def max_seq_length(self) -> None:
        """None: texts are read as a whole."""
        return None

    @max_seq_length.setter
    def max_seq_length(self, length: None) -> None:
        check_length(length)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.sentence_encoder!r})"
