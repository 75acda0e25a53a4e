"""Models of formats 1 and 2: configuration and vocabulary are in files of their own."""

import hashlib
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.encoder import Encoder
from sentemb.storage.configuration import checked_config, encoder_of
from sentemb.storage.folder import CONFIG, VOCABULARY, WORDS
from sentemb.storage.history import HISTORY, history_of
from sentemb.storage.tensor_files import TensorFile, damaged
from sentemb.storage.text_files import contents_of, lines_of
from sentemb.system.descriptions import parse_json
from sentemb.text.vocabulary import Vocabulary


def is_old(file: TensorFile) -> bool:
    """Whether the tensors belong to a model of format 1 or 2, which names its configuration."""
    return "config_sha256" in file.metadata


def old_parts(
    path: Path, file: TensorFile
) -> tuple[dict[str, Any], Encoder, Vocabulary, list[dict[str, Any]]]:
    """Configuration, encoder, vocabulary and history of the model in folder ``path``."""
    raw = contents_of(path / CONFIG)
    try:
        config = checked_config(path / CONFIG, parse_json(raw))
    except SentembError:
        raise
    except ValueError as error:
        raise damaged(path / CONFIG, f"it is not JSON ({error})") from error
    encoder = encoder_of(path / CONFIG, config)
    texts = {"vocabulary": path / VOCABULARY}
    if config["format"] > 1:  # models of format 1 have no words
        texts["words"] = path / WORDS
    for name in texts:
        if type(config.get(f"{name}_sha256")) is not str:
            raise damaged(path / CONFIG, f"{name}_sha256 is missing or of the wrong kind")
    lines = {name: _old_lines(text, config[f"{name}_sha256"]) for name, text in texts.items()}
    if file.metadata.get("config_sha256") != _sha256(raw):
        raise damaged(file.path, f"it belongs to another {CONFIG}")
    return (
        config,
        encoder,
        Vocabulary(lines["vocabulary"], lines.get("words", ())),
        history_of(path / HISTORY),
    )


def _old_lines(path: Path, sha256: str) -> list[str]:
    raw = contents_of(path)
    if _sha256(raw) != sha256:
        raise damaged(path, "it is not the file that the model was saved with")
    return lines_of(path, raw)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
