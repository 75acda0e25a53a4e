"""C += A B for the small products of the recurrences, without BLAS.

A product here has tens of rows and hundreds of columns. That is too small for a threaded BLAS, and
a plain Numba loop reaches half of the machine's speed, because LLVM keeps the running sums in
memory. So the innermost part is written as LLVM vector instructions: a tile of C stays in vector
registers while k runs over the whole inner dimension. Every element of C is one chain of fused
multiply-adds in the order of k, whatever tile it falls in, so a sentence gets the same bits alone
and in a batch.
"""

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sentemb.kernels.jit import kernel

# Tile sizes: 8 x 2 vectors of 64 bytes fill the 32 registers of AVX-512, 4 x 2 vectors of 32 bytes
# the 16 registers of everything else.
_WIDE = bool(llvmlite.binding.get_host_cpu_features().get("avx512f"))
_VECTOR_BYTES = 64 if _WIDE else 32
_TILE_ROWS = 8 if _WIDE else 4
# Inner length of which two vectors a step fit into the first cache of any processor.
_DEPTH = 320
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)


def _tile(rows, vectors, masked):
    """An intrinsic that adds to ``rows`` rows and ``vectors`` vectors of C; see `_emit_tile`."""

    @intrinsic
    def tile(typingctx, c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, height, width):
        signature = types.void(
            c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, types.int64, types.int64
        )

        def codegen(context, builder, signature, args):
            _emit_tile(context, builder, signature.args[0].dtype, args, rows, vectors, masked)
            return context.get_dummy_value()

        return signature, codegen

    return tile


def _tile_at(rows, vectors, masked):
    """As `_tile`, for rows of C and of A that two lists of row numbers name."""

    @intrinsic
    def tile(
        typingctx,
        c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, height, width, c_rows, a_rows,
    ):  # fmt: skip
        signature = types.void(
            c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, types.int64, types.int64,
            c_rows, a_rows,
        )  # fmt: skip

        def codegen(context, builder, signature, args):
            *args, c_rows, a_rows = args
            element, lists = signature.args[0].dtype, (c_rows, a_rows)
            _emit_tile(context, builder, element, args, rows, vectors, masked, lists)
            return context.get_dummy_value()

        return signature, codegen

    return tile


def _bytes_of(element):
    """Bytes of a float or a double."""
    return 4 if isinstance(element, ir.FloatType) else 8


def _suffix(vector):
    """How LLVM's intrinsics name a type of vectors: v16f32."""
    return f"v{vector.count}f{8 * _bytes_of(vector.element)}"


def _first_everywhere(lanes):
    """The shuffle that copies the first lane into all lanes."""
    return ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)


class _Memory:
    """Instructions that load and store vectors, or only their first ``width`` lanes."""

    def __init__(self, builder, vector, width):
        self.builder, self.vector, self.mask = builder, vector, None
        self.size = _bytes_of(vector.element)
        if width is None:
            return
        wide = ir.VectorType(_INT64, vector.count)
        limit = builder.insert_element(ir.Constant(wide, ir.Undefined), width, _INT32(0))
        limit = builder.shuffle_vector(limit, limit, _first_everywhere(vector.count))
        lane = ir.Constant(wide, list(range(vector.count)))
        self.mask = builder.icmp_signed("<", lane, limit)
        flags, pointer = ir.VectorType(ir.IntType(1), vector.count), vector.as_pointer()
        self.load_masked = builder.module.declare_intrinsic(
            f"llvm.masked.load.{_suffix(vector)}.p0",
            (),
            ir.FunctionType(vector, [pointer, _INT32, flags, vector]),
        )
        self.store_masked = builder.module.declare_intrinsic(
            f"llvm.masked.store.{_suffix(vector)}.p0",
            (),
            ir.FunctionType(ir.VoidType(), [vector, pointer, _INT32, flags]),
        )

    def place(self, base, offset):
        """The address ``offset`` elements behind ``base``."""
        return self.builder.bitcast(self.builder.gep(base, [offset]), self.vector.as_pointer())

    def load(self, at):
        """The vector at an address; lanes beyond the width are 0."""
        if self.mask is None:
            return self.builder.load(at, align=self.size)
        nothing = ir.Constant(self.vector, None)
        return self.builder.call(self.load_masked, [at, _INT32(self.size), self.mask, nothing])

    def store(self, value, at):
        """Write a vector to an address; lanes beyond the width stay as they are."""
        if self.mask is None:
            self.builder.store(value, at, align=self.size)
        else:
            self.builder.call(self.store_masked, [value, at, _INT32(self.size), self.mask])


def _emit_tile(context, builder, dtype, args, rows, vectors, masked, lists=None):
    """Write the instructions of one tile: C[r, :] += sum_k A[r, k] B[k, :].

    The arguments are pointers to the tile's first elements of C and B and to its row of A, the
    strides in elements, the inner length, how many of the tile's rows exist, and, where ``masked``,
    how many of the vector's lanes do (for the last columns of a matrix whose width is not a
    multiple of the vector). Rows beyond the last repeat the last one: all of them are read before
    any is written, so each writes the same sum, and a tile of 5 rows costs no more than one of 8.
    With ``lists``, pointers to row numbers, row r of the tile is row ``lists[0][r]`` of C and
    ``lists[1][r]`` of A.
    """
    c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, height, width = args
    element = context.get_value_type(dtype)
    lanes = _VECTOR_BYTES // _bytes_of(element)
    vector = ir.VectorType(element, lanes)
    fma = builder.module.declare_intrinsic(
        f"llvm.fma.{_suffix(vector)}", (), ir.FunctionType(vector, [vector] * 3)
    )
    nothing = ir.Constant(vector, ir.Undefined)
    memory = _Memory(builder, vector, width if masked else None)

    last = builder.sub(height, _INT64(1))
    row_numbers = [
        builder.select(builder.icmp_signed("<", _INT64(r), last), _INT64(r), last)
        for r in range(rows)
    ]
    c_numbers, a_numbers = (
        [builder.load(builder.gep(rows_in, [r])) for r in row_numbers] if lists else row_numbers
        for rows_in in lists or (None, None)
    )
    places = [
        memory.place(c, builder.add(builder.mul(row_of_c, r), _INT64(v * lanes)))
        for r in c_numbers
        for v in range(vectors)
    ]
    rows_of_a = [builder.mul(row_of_a, r) for r in a_numbers]
    start = [memory.load(at) for at in places]

    entry = builder.block
    loop = builder.append_basic_block("inner")
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", inner, _INT64(0)), loop, after)

    builder.position_at_end(loop)
    k = builder.phi(_INT64)
    sums = [builder.phi(vector) for _ in places]
    row = builder.gep(b, [builder.mul(k, row_of_b)])
    b_vectors = [memory.load(memory.place(row, _INT64(v * lanes))) for v in range(vectors)]
    column = builder.gep(a, [builder.mul(k, column_of_a)])
    new = []
    for r in range(rows):
        scalar = builder.load(builder.gep(column, [rows_of_a[r]]))
        spread = builder.insert_element(nothing, scalar, _INT32(0))
        spread = builder.shuffle_vector(spread, nothing, _first_everywhere(lanes))
        for v in range(vectors):
            new.append(builder.call(fma, [spread, b_vectors[v], sums[r * vectors + v]]))
    following = builder.add(k, _INT64(1))
    k.add_incoming(_INT64(0), entry)
    k.add_incoming(following, loop)
    for value, first, later in zip(sums, start, new, strict=True):
        value.add_incoming(first, entry)
        value.add_incoming(later, loop)
    builder.cbranch(builder.icmp_signed("<", following, inner), loop, after)

    builder.position_at_end(after)
    totals = [builder.phi(vector) for _ in places]
    for total, first, later, at in zip(totals, start, new, places, strict=True):
        total.add_incoming(first, entry)
        total.add_incoming(later, loop)
        memory.store(total, at)


@intrinsic
def _pointer(typingctx, array):
    """The address of an array's first element."""
    signature = types.CPointer(array.dtype)(array)

    def codegen(context, builder, signature, args):
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return signature, codegen


@intrinsic
def _offset(typingctx, pointer, count):
    """A pointer moved on by ``count`` elements."""
    signature = pointer(pointer, types.int64)

    def codegen(context, builder, signature, args):
        return builder.gep(args[0], [args[1]])

    return signature, codegen


_wide = _tile(_TILE_ROWS, 2, masked=False)
_narrow = _tile(_TILE_ROWS, 1, masked=False)
_edge = _tile(_TILE_ROWS, 1, masked=True)
# A single row has no other rows to hide the latency of its sums, so it takes more columns at once.
_row_wide = _tile(1, 8, masked=False)
_row_pair = _tile(1, 2, masked=False)
_row_edge = _tile(1, 1, masked=True)
_wide_at = _tile_at(_TILE_ROWS, 2, masked=False)
_narrow_at = _tile_at(_TILE_ROWS, 1, masked=False)
_edge_at = _tile_at(_TILE_ROWS, 1, masked=True)


@kernel
def add_matmul(C, A, B):
    """C += A B.

    Parameters
    ----------
    C : (m, n) float32 or float64, rows contiguous
    A : (m, k) same dtype, any strides (a transposed view costs nothing)
    B : (k, n) same dtype, rows contiguous
    """
    m, inner = A.shape
    n = B.shape[1]
    size = C.itemsize
    lanes = _VECTOR_BYTES // size
    row_of_c, row_of_b = C.strides[0] // size, B.strides[0] // size
    row_of_a, column_of_a = A.strides[0] // size, A.strides[1] // size
    c0, a0, b0 = _pointer(C), _pointer(A), _pointer(B)
    if m == 1:
        j = 0
        while j < n:
            c, b, left = _offset(c0, j), _offset(b0, j), n - j
            if left >= 8 * lanes:
                _row_wide(c, row_of_c, a0, row_of_a, column_of_a, b, row_of_b, inner, 1, left)
                j += 8 * lanes
            elif left >= 2 * lanes:
                _row_pair(c, row_of_c, a0, row_of_a, column_of_a, b, row_of_b, inner, 1, left)
                j += 2 * lanes
            else:
                _row_edge(c, row_of_c, a0, row_of_a, column_of_a, b, row_of_b, inner, 1, left)
                j += lanes
        return
    # The columns of a tile must stay in the first cache while the rows of A go by. So a long inner
    # dimension is done in parts, and where the rows of B lie far apart, or a power of two, so that
    # they share a few lines of that cache, the columns are copied side by side.
    parts = -(-inner // _DEPTH)
    depth = max(1, -(-inner // max(1, parts)))
    copied = m > 2 * _TILE_ROWS and (parts > 1 or B.strides[0] % 1024 == 0)
    panel = np.empty((depth if copied else 0, 2 * lanes), C.dtype)
    for first in range(0, inner, depth):
        here = min(depth, inner - first)
        j = 0
        while j < n:
            b, b_rows, left = _offset(b0, first * row_of_b + j), row_of_b, n - j
            if copied and left >= 2 * lanes:
                for k in range(here):
                    for column in range(2 * lanes):
                        panel[k, column] = B[first + k, j + column]
                b, b_rows = _pointer(panel), 2 * lanes
            for i in range(0, m, _TILE_ROWS):
                c = _offset(c0, i * row_of_c + j)
                a = _offset(a0, i * row_of_a + first * column_of_a)
                rows = min(_TILE_ROWS, m - i)
                if left >= 2 * lanes:
                    _wide(c, row_of_c, a, row_of_a, column_of_a, b, b_rows, here, rows, left)
                elif left >= lanes:
                    _narrow(c, row_of_c, a, row_of_a, column_of_a, b, b_rows, here, rows, left)
                else:
                    _edge(c, row_of_c, a, row_of_a, column_of_a, b, b_rows, here, rows, left)
            j += 2 * lanes if left >= 2 * lanes else lanes


@kernel
def add_matmul_at(C, c_rows, A, a_rows, B):
    """C[c_rows[r]] += A[a_rows[r]] B for every r: a product of rows that do not lie together.

    A convolution adds, for each offset in its window, a product of those cells that have a
    neighbour there. Every element is the same chain of additions as in `add_matmul`.

    Parameters
    ----------
    C : (any, n) float32 or float64, rows contiguous
    c_rows : (m,) int64, contiguous
        Rows of C, each at most once.
    A : (any, k) same dtype, rows contiguous
    a_rows : (m,) int64, contiguous
    B : (k, n) same dtype, rows contiguous
    """
    m, inner, n = c_rows.size, A.shape[1], B.shape[1]
    size = C.itemsize
    lanes = _VECTOR_BYTES // size
    row_of_c, row_of_a, row_of_b = C.strides[0] // size, A.strides[0] // size, B.strides[0] // size
    c0, a0, b0 = _pointer(C), _pointer(A), _pointer(B)
    c_list, a_list = _pointer(c_rows), _pointer(a_rows)
    depth = max(1, -(-inner // max(1, -(-inner // _DEPTH))))
    # As in `add_matmul`, but a long inner dimension needs no copy here: its products have so many
    # rows that reading the columns from the second cache costs less.
    copied = m > 2 * _TILE_ROWS and B.strides[0] % 1024 == 0
    panel = np.empty((depth if copied else 0, 2 * lanes), C.dtype)
    for start in range(0, inner, depth):
        here = min(depth, inner - start)
        j = 0
        while j < n:
            b, b_rows, left = _offset(b0, start * row_of_b + j), row_of_b, n - j
            if copied and left >= 2 * lanes:
                for k in range(here):
                    for column in range(2 * lanes):
                        panel[k, column] = B[start + k, j + column]
                b, b_rows = _pointer(panel), 2 * lanes
            c, a = _offset(c0, j), _offset(a0, start)
            for i in range(0, m, _TILE_ROWS):
                ci, ai, rows = _offset(c_list, i), _offset(a_list, i), min(_TILE_ROWS, m - i)
                if left >= 2 * lanes:
                    _wide_at(c, row_of_c, a, row_of_a, 1, b, b_rows, here, rows, left, ci, ai)
                elif left >= lanes:
                    _narrow_at(c, row_of_c, a, row_of_a, 1, b, b_rows, here, rows, left, ci, ai)
                else:
                    _edge_at(c, row_of_c, a, row_of_a, 1, b, b_rows, here, rows, left, ci, ai)
            j += 2 * lanes if left >= 2 * lanes else lanes
