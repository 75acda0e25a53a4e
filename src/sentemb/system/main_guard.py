"""Whether a script can be run again by the processes that it starts."""

import ast
import contextlib
import os
import sys
from types import FrameType


def unguarded_call() -> str | None:
    """The file and line of the script that led here, if it is not below ``if __name__ == ...``.

    A new process imports the script, and would come to the same call. None if the
    call is guarded or does not come from a script.
    """
    main = vars(sys.modules["__main__"])
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (
        frame.f_globals is main and frame.f_code.co_name == "<module>"
    ):
        frame = frame.f_back
    if frame is None or not isinstance(file := main.get("__file__"), str):
        return None
    with contextlib.suppress(OSError, ValueError, SyntaxError), open(file, "rb") as source:
        guards = [node for node in ast.parse(source.read()).body if _is_guard(node)]
        lines = (range(node.lineno, (node.end_lineno or 0) + 1) for node in guards)
        if not any(frame.f_lineno in span for span in lines):
            return f"{file}:{frame.f_lineno}"
    return None


def lost_script() -> str | None:
    """The name of the script if it is in no file, as one that was read from standard input."""
    file = vars(sys.modules["__main__"]).get("__file__")
    return file if isinstance(file, str) and not os.path.isfile(file) else None


def _is_guard(node: ast.stmt) -> bool:
    """Whether a statement begins ``if __name__ ...``."""
    return isinstance(node, ast.If) and any(
        isinstance(name, ast.Name) and name.id == "__name__" for name in ast.walk(node.test)
    )
