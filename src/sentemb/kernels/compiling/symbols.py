"""Kernels whose machine code other kernels call by a symbol, instead of containing a copy of it.

Numba puts a copy of every kernel into each kernel that calls it, and compiles it again there.
"""

import llvmlite.binding

from sentemb.kernels.compiling.numba_internals import cgutils


def provided(symbol, dispatcher, arguments):
    """``symbol``, under which machine code finds a kernel for arguments of these types."""
    if llvmlite.binding.address_of_symbol(symbol) is None:
        dispatcher.compile(arguments)
        compiled = dispatcher.overloads[arguments]
        address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
        llvmlite.binding.add_symbol(symbol, address)
    return symbol


def call(context, builder, provide, signature, arguments):
    """In the code of an intrinsic: the result of a call of the kernel that ``provide`` provides.

    ``provide`` is a function of a module without arguments that returns `provided`. Numba also
    calls it before it loads a kernel from the cache that calls the symbol.
    """
    context.active_code_library._reload_init.add(provide)
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    function = cgutils.get_or_insert_function(builder.module, kind, provide())
    status, result = context.call_conv.call_function(
        builder, function, signature.return_type, signature.args, arguments
    )
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return result
