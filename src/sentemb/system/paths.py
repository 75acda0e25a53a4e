"""The type of a path that a caller gives."""

import os
from typing import TypeAlias

AnyPath: TypeAlias = str | os.PathLike[str]
