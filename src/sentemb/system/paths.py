"""What may name a file or a folder."""

import os
from typing import TypeAlias

AnyPath: TypeAlias = str | os.PathLike[str]
