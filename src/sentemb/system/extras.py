"""Optional packages: imported when they are needed, with a message where they are missing."""

import importlib
from typing import Any

from sentemb.errors import SentembError


def package(name: str, extra: str, purpose: str = "") -> Any:
    """An optional package or a module of one.

    Parameters
    ----------
    name : str
        The module to import, such as ``pyarrow.parquet``.
    extra : str
        The extra of ``setup.cfg`` that installs it.
    purpose : str
        The feature that needs it, as the subject of a sentence: ``"--to onnx"``. By default the
        message only says that it is not installed.

    Raises
    ------
    SentembError
        If it is not installed. The message says what to install.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        missing = f"{purpose} needs {top}, which" if purpose else f"the package {top}"
        raise SentembError(f"{missing} is not installed; pip install 'sentemb[{extra}]'") from error
