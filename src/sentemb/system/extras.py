"""Optional packages: imported when they are needed, with a message where they are missing."""

import importlib
from typing import Any

from sentemb.errors import SentembError


def package(name: str, extra: str, purpose: str = "") -> Any:
    """An optional package or a module of one.

    ``name`` is such as ``pyarrow.parquet``, and ``extra`` the extra of ``setup.cfg`` that installs
    it. ``purpose`` names the feature that needs it, as the subject of a sentence: ``"--to onnx"``;
    by default the message only says that it is not installed. Raises `SentembError` if it is not
    installed; the message gives the extra to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        missing = f"{purpose} needs {top}, which" if purpose else f"the package {top}"
        raise SentembError(f"{missing} is not installed; pip install 'sentemb[{extra}]'") from error
