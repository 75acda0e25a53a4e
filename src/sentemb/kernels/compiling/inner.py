"""Functions that kernels alone call are compiled up to LLVM's intermediate code, and no further.

Numba would optimise each of them and make machine code of it. Both are done again where a kernel
contains it, so that was a seventh of the time until a model embeds its first text.
"""

from sentemb.kernels.compiling.numba_internals import Compiler, JITCodeLibrary


class InnerCompiler(Compiler):
    """Numba's compiler for a function without an address: only kernels that link it can call it."""

    def __init__(self, typing_context, target_context, library, *rest):
        super().__init__(typing_context, target_context, library, *rest)
        self.state.library = _InnerLibrary(target_context.codegen(), "inner")


class _InnerLibrary(JITCodeLibrary):
    """The intermediate code of a function."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        return 0

    # Numba writes the address of a function's Python constants into its machine code.
    @property
    def codegen(self):
        return self

    def set_env(self, name, environment):
        pass
