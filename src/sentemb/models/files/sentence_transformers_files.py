"""Two files from which sentence-transformers knows how to open a model folder."""

import json
from pathlib import Path

from sentemb.system.files import unwritable, write_text

MODULES, SETTINGS = "modules.json", "config_sentence_transformers.json"

# The class that sentence-transformers imports, if the user trusts the folder.
MODULE_CLASS = "sentemb.bridges.sentence_transformers.SentembModule"

_CONTENTS = {
    MODULES: [{"idx": 0, "name": "0", "path": "", "type": MODULE_CLASS}],
    SETTINGS: {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"},
}
MODULE_FILES = tuple(_CONTENTS)


def write_modules(folder: Path) -> None:
    """Write both files; they are the same for every model with two towers."""
    for name, content in _CONTENTS.items():
        write_text(folder / name, json.dumps(content, indent=2) + "\n")


def remove_modules(folder: Path) -> None:
    """Remove the modules of an earlier model in the folder if the new model embeds no texts."""
    for name in _CONTENTS:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise unwritable(folder / name, error) from error
