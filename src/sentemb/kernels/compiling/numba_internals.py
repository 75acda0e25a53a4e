"""The private names of Numba that kernels use: nothing else imports from ``numba.core``.

A name that this Numba has moved is missing here too, and its import an ImportError: without
`NullCache` no kernel is kept between two processes, without `Compiler` an inner kernel is compiled
as any other. `make release` runs the package with the oldest and the newest Numba.
"""

import contextlib

from numba.core import cgutils as cgutils
from numba.core.errors import TypingError as TypingError

with contextlib.suppress(ImportError):
    from numba.core.caching import NullCache as NullCache
    from numba.core.compiler import CompileResult as CompileResult
    from numba.core.serialize import dumps as dumps

with contextlib.suppress(ImportError):
    from numba.core.codegen import JITCodeLibrary as JITCodeLibrary
    from numba.core.compiler import Compiler as Compiler

# An older Numba calls nothing before it loads a kernel from the cache, so no symbol may be in it.
CAN_CALL = False
with contextlib.suppress(ImportError):
    from numba.core.codegen import CodeLibrary

    CAN_CALL = "_reload_init" in CodeLibrary.__init__.__code__.co_names
