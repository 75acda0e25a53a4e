"""Sums over a row in vector lanes, with the same bits on every processor.

The order of a sum decides its last bits, and LLVM would choose it by the processor: as many lanes
as its registers have. Here the order is fixed. 4 vectors of 64 bytes take the numbers in turn and
are added; vectors of 32 bytes take the numbers left by them, and what then remains is added number
by number. A processor with shorter registers computes a vector in two or four of them, which
changes no bit. Products are added by fused multiply-adds.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sentemb.kernels.compiling.numba_internals import TypingError, cgutils

_BYTES = 64
_TOGETHER = 4
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def dot(typingctx, x, y):
    """x · y of two rows (n,) float of the same dtype, contiguous, in that dtype."""
    _check(x, y)
    return _summing(x.dtype, x, y)


@intrinsic
def total(typingctx, x):
    """The sum of a row (n,) float, contiguous, in its dtype."""
    _check(x)
    return _summing(x.dtype, x)


@intrinsic
def squares(typingctx, x):
    """The sum of the squares of a row (n,) float, contiguous, in float64."""
    _check(x)
    signature = types.float64(x)

    def codegen(context, builder, signature, args):
        arrays = [_Row(context, builder, x, args[0], signature.return_type)]
        return _emit_sum(context, builder, signature.return_type, arrays * 2)

    return signature, codegen


def _check(*rows):
    """Refuse, when a kernel is compiled, rows that are not floats in one piece of memory."""
    for row in rows:
        if not (isinstance(row, types.Array) and row.ndim == 1 and row.layout == "C"):
            raise TypingError(f"not a contiguous row: {row}")
        if not isinstance(row.dtype, types.Float) or row.dtype != rows[0].dtype:
            raise TypingError(f"not a row of {rows[0].dtype}: {row}")


def _summing(dtype, *rows):
    """Signature and code of a sum over the numbers or products of rows in their dtype."""
    signature = dtype(*rows)

    def codegen(context, builder, signature, args):
        arrays = [
            _Row(context, builder, row, value, dtype) for row, value in zip(rows, args, strict=True)
        ]
        return _emit_sum(context, builder, dtype, arrays)

    return signature, codegen


class _Row:
    """Instructions that load the numbers of a row, as numbers of the type of the sum."""

    def __init__(self, context, builder, row, value, dtype):
        array = context.make_array(row)(context, builder, value)
        self.builder, self.data = builder, array.data
        self.size = cgutils.unpack_tuple(builder, array.shape)[0]
        self.bytes = row.dtype.bitwidth // 8
        self.stored, self.summed = map(context.get_value_type, (row.dtype, dtype))

    def load(self, j, lanes):
        """The numbers j to j + lanes, as a vector; number j itself if ``lanes`` is 1."""
        at = self.builder.gep(self.data, [j])
        stored, summed = self.stored, self.summed
        if lanes > 1:
            stored, summed = ir.VectorType(stored, lanes), ir.VectorType(summed, lanes)
            at = self.builder.bitcast(at, stored.as_pointer())
        numbers = self.builder.load(at, align=self.bytes)
        return numbers if stored == summed else self.builder.fpext(numbers, summed)


def _emit_sum(context, builder, dtype, rows):
    """Write the instructions that add up one row, or the products of two; the sum."""
    element = context.get_value_type(dtype)
    lanes = 8 * _BYTES // dtype.bitwidth
    size, zero = rows[0].size, _INT64(0)
    total = cgutils.alloca_once_value(builder, ir.Constant(element, 0.0))

    def add(to, j, lanes):
        """Add the numbers j to j + lanes, or their products, to a variable."""
        so_far, numbers = builder.load(to), [row.load(j, lanes) for row in rows]
        if len(rows) == 1:
            builder.store(builder.fadd(so_far, *numbers), to)
        else:
            number, kind = so_far.type, f"v{lanes}" if lanes > 1 else ""
            name = f"llvm.fma.{kind}f{dtype.bitwidth}"
            fma = builder.module.declare_intrinsic(name, (), ir.FunctionType(number, [number] * 3))
            builder.store(builder.call(fma, [*numbers, so_far]), to)

    def whole(lanes):
        """How many of the numbers are in whole groups of ``lanes``."""
        return builder.and_(size, _INT64(-lanes))

    def loop(start, stop, step):
        return cgutils.for_range_slice(builder, start, stop, _INT64(step), _INT64)

    in_wide, in_half = whole(_TOGETHER * lanes), whole(lanes // 2)
    with builder.if_then(builder.icmp_signed("<", zero, in_wide)):
        vector = ir.Constant(ir.VectorType(element, lanes), None)
        sums = [cgutils.alloca_once_value(builder, vector) for _ in range(_TOGETHER)]
        with loop(zero, in_wide, _TOGETHER * lanes) as (j, _):
            for k, each in enumerate(sums):
                add(each, builder.add(j, _INT64(k * lanes)), lanes)
        joined = builder.load(sums[0])
        for each in sums[1:]:
            joined = builder.fadd(builder.load(each), joined)
        builder.store(_across(builder, joined, lanes), total)
    with builder.if_then(builder.icmp_signed("<", in_wide, in_half)):
        nothing = ir.Constant(ir.VectorType(element, lanes // 2), None)
        half = cgutils.alloca_once_value(builder, nothing)
        builder.store(builder.insert_element(nothing, builder.load(total), _INT32(0)), half)
        with loop(in_wide, in_half, lanes // 2) as (j, _):
            add(half, j, lanes // 2)
        builder.store(_across(builder, builder.load(half), lanes // 2), total)
    with loop(in_half, size, 1) as (j, _):
        add(total, j, 1)
    return builder.load(total)


def _across(builder, vector, lanes):
    """The sum of the lanes of a vector: its upper half is added to its lower half, and again."""
    while lanes > 1:
        lanes //= 2
        upper = ir.Constant(ir.VectorType(_INT32, lanes), list(range(lanes, 2 * lanes)))
        lower = ir.Constant(ir.VectorType(_INT32, lanes), list(range(lanes)))
        vector = builder.fadd(
            builder.shuffle_vector(vector, vector, lower),
            builder.shuffle_vector(vector, vector, upper),
        )
    return builder.extract_element(vector, _INT32(0))
