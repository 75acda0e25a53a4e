"""C += A B for the small products of the recurrences, without BLAS.

A product here has tens of rows and hundreds of columns. That is too small for a threaded BLAS, and
a plain Numba loop reaches half of the machine's speed, because LLVM keeps the running sums in
memory. So the innermost part is written as LLVM vector instructions: a tile of C stays in vector
registers while k runs over the inner dimension. Every element of C is one chain of fused
multiply-adds in the order of k, whatever tile it falls in, so a sentence gets the same bits alone
and in a batch.

The rows of a wide B lie far apart, where no processor foresees the next one. So a tile fetches the
columns of B that the next tiles read, and the part of C that the next tile changes. With a thousand
cells that doubles the speed; with a hundred it costs nothing.
"""

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from sentemb.kernels.compiling import symbols
from sentemb.kernels.compiling.jit import inlined_kernel, inner_kernel, kernel, symbol_kernel
from sentemb.kernels.compiling.numba_internals import CAN_CALL, cgutils

# Tile sizes: 8 x 2 vectors of 64 bytes fill the 32 registers of AVX-512, 4 x 2 vectors of 32 bytes
# the 16 registers of everything else.
_FEATURES = numba.config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten()
_WIDE = "+avx512f" in _FEATURES.split(",")
VECTOR_BYTES = 64 if _WIDE else 32
_TILE_ROWS = 8 if _WIDE else 4
# Vectors in a row of a panel, see `panels_of`. A panel of 96 rows, 18 KB, fits in the first cache.
_PANEL_VECTORS = 3 if _WIDE else 6
# Inner length of which the columns of a tile stay in the second cache while the rows of A go by.
_DEPTH = 512
_LINE_BYTES = 64  # of a cache
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
    return 4 if isinstance(element, ir.FloatType) else 8


def _suffix(vector):
    """The name of a type of vectors in LLVM's intrinsics: v16f32."""
    return f"v{vector.count}f{8 * _bytes_of(vector.element)}"


def _first_everywhere(lanes):
    """The shuffle that copies the first lane into all lanes."""
    return ir.Constant(ir.VectorType(_INT32, lanes), [0] * lanes)


def _fetch(builder, base, offset, bytes_wide):
    """Have ``bytes_wide`` bytes that begin ``offset`` elements behind ``base`` brought to a cache.

    It is a hint to the processor: an address without memory does no harm. The last byte of each
    line's worth is named, because the line of the first one may already be there.
    """
    byte = ir.IntType(8).as_pointer()
    arguments = [byte, _INT32, _INT32, _INT32]
    hint = builder.module.declare_intrinsic(
        "llvm.prefetch.p0", (), ir.FunctionType(ir.VoidType(), arguments)
    )
    first = builder.bitcast(builder.gep(base, [offset]), byte)
    for line in range(bytes_wide // _LINE_BYTES):
        last = builder.gep(first, [_INT64((line + 1) * _LINE_BYTES - 1)])
        # to be read, into the second cache, as data
        builder.call(hint, [last, _INT32(0), _INT32(2), _INT32(1)])


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

    def address(self, base, offset):
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

    A tile of several rows and whole vectors fetches the columns of B to its right and the rows of C
    below it, for the tiles that come next.
    """
    c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, inner, height, width = args
    element = context.get_value_type(dtype)
    lanes = VECTOR_BYTES // _bytes_of(element)
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
    addresses = [
        memory.address(c, builder.add(builder.mul(row_of_c, r), _INT64(v * lanes)))
        for r in c_numbers
        for v in range(vectors)
    ]
    rows_of_a = [builder.mul(row_of_a, r) for r in a_numbers]
    start = [memory.load(at) for at in addresses]
    fetching = rows > 1 and not masked
    if fetching and not lists:
        for r in range(rows, 2 * rows):
            _fetch(builder, c, builder.mul(row_of_c, _INT64(r)), vectors * VECTOR_BYTES)

    entry = builder.block
    loop = builder.append_basic_block("inner")
    after = builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", inner, _INT64(0)), loop, after)

    builder.position_at_end(loop)
    k = builder.phi(_INT64)
    sums = [builder.phi(vector) for _ in addresses]
    row = builder.gep(b, [builder.mul(k, row_of_b)])
    b_vectors = [memory.load(memory.address(row, _INT64(v * lanes))) for v in range(vectors)]
    if fetching:
        _fetch(builder, row, _INT64(vectors * lanes), vectors * VECTOR_BYTES)
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
    totals = [builder.phi(vector) for _ in addresses]
    for total, first, later, at in zip(totals, start, new, addresses, strict=True):
        total.add_incoming(first, entry)
        total.add_incoming(later, loop)
        memory.store(total, at)


@intrinsic
def _matrix(typingctx, array):
    """A matrix as (pointer to its first element, row stride, column stride), in elements."""
    signature = types.Tuple((types.CPointer(array.dtype), types.int64, types.int64))(array)

    def codegen(context, builder, signature, args):
        matrix = context.make_array(signature.args[0])(context, builder, args[0])
        strides = cgutils.unpack_tuple(builder, matrix.strides, 2)
        elements = [builder.sdiv(stride, matrix.itemsize) for stride in strides]
        return context.make_tuple(builder, signature.return_type, [matrix.data, *elements])

    return signature, codegen


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


@intrinsic
def _lanes(typingctx, pointer):
    """The number of elements behind a pointer that fill a vector."""
    signature = types.int64(pointer)

    def codegen(context, builder, signature, args):
        return _INT64(VECTOR_BYTES // _bytes_of(context.get_value_type(pointer.dtype)))

    return signature, codegen


_wide = _tile(_TILE_ROWS, 2, masked=False)
_half = _tile(_TILE_ROWS // 2, 2, masked=False)
_edge = _tile(_TILE_ROWS, 1, masked=True)
# A single row has no other rows to hide the latency of its sums, so it takes more columns at once.
_row_wide = _tile(1, 8, masked=False)
_row_pair = _tile(1, 2, masked=False)
_row_edge = _tile(1, 1, masked=True)
_row_panel = _tile(1, _PANEL_VECTORS, masked=False)
_wide_at = _tile_at(_TILE_ROWS, 2, masked=False)
_edge_at = _tile_at(_TILE_ROWS, 1, masked=True)


@intrinsic
def _tiles_added(
    typingctx, c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, m, inner, n
):  # fmt: skip
    """A call of `_add_tiles` by its symbol."""
    provide = _SYMBOLS[c.dtype]

    def codegen(context, builder, signature, args):
        symbols.call(context, builder, provide, signature, args)
        return context.get_dummy_value()

    return _signature_of_tiles(c.dtype), codegen


def _signature_of_tiles(element):
    pointer, number = types.CPointer(element), types.int64
    return types.void(
        pointer, number, pointer, number, number, pointer, number, number, number, number
    )


def _provide_float32():
    return _provided(types.float32)


def _provide_float64():
    return _provided(types.float64)


_SYMBOLS = {types.float32: _provide_float32, types.float64: _provide_float64}


def _provided(element):
    """The symbol of `_add_tiles` for a type of floats: each copy of it would cost 0.15 s."""
    symbol = f"sentemb_add_tiles_{element}"
    return symbols.provided(symbol, _add_tiles, _signature_of_tiles(element).args)


@inlined_kernel
def add_matmul(C, A, B):
    """C += A B, all float32 or all float64.

    C, B : (m, n), (k, n), rows contiguous
    A : (m, k), any strides (a transposed view costs nothing)
    """
    c, row_of_c, _ = _matrix(C)
    a, row_of_a, column_of_a = _matrix(A)
    b, row_of_b, _ = _matrix(B)
    m, inner = A.shape
    _tiles_added(c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, m, inner, B.shape[1])


@inlined_kernel
def add_matmul_first(C, A, B, m):
    """C[:m] += A[:m] B, without the slices, which may take longer than a short product.

    C, A, B : as for `add_matmul`, with at least m rows of C and of A
    """
    c, row_of_c, _ = _matrix(C)
    a, row_of_a, column_of_a = _matrix(A)
    b, row_of_b, _ = _matrix(B)
    inner, n = B.shape
    _tiles_added(c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, m, inner, n)


def panels_of(B: np.ndarray) -> np.ndarray:
    """The numbers of B (k, n) panel by panel, as `add_row` wants them: (k, n) float, a copy.

    A panel is some columns of B, row by row. The last one may have fewer columns.
    """
    wide = _PANEL_VECTORS * VECTOR_BYTES // B.itemsize
    panels = [B[:, j : j + wide].ravel() for j in range(0, B.shape[1], wide)]
    return np.concatenate(panels).reshape(B.shape)


@inlined_kernel
def add_row(C, A, panels, backwards):
    """C[0] += A[0] B: the bits of `add_matmul`, for one row and the same B again and again.

    One row takes as long as B takes to come from the second cache. In panels it comes faster. If
    every other product goes ``backwards``, from the last panel to the first, each begins with the
    panels that the last one left in the first cache.

    C, A : (any, n), (any, k) float32 or float64, rows contiguous
    panels : (k, n) float, contiguous, from `panels_of`
    """
    c, _, _ = _matrix(C)
    a, _, _ = _matrix(A)
    b, _, _ = _matrix(panels)
    _add_panels(c, a, b, *panels.shape, backwards)


@inner_kernel
def _add_panels(c0, a0, b0, inner, n, backwards):
    """`add_row` for pointers."""
    wide = _PANEL_VECTORS * _lanes(c0)
    panels = -(-n // wide)
    for panel in range(panels):
        first = wide * (panels - 1 - panel if backwards else panel)
        width = min(wide, n - first)
        _add_row(_offset(c0, first), a0, 1, _offset(b0, first * inner), width, inner, width)


@inner_kernel
def _add_row(c0, a0, column_of_a, b0, row_of_b, inner, n):
    """`_add_tiles` for a single row."""
    lanes = _lanes(c0)
    j = 0
    while j < n:
        c, b, left = _offset(c0, j), _offset(b0, j), n - j
        if left >= 8 * lanes:
            _row_wide(c, 0, a0, 0, column_of_a, b, row_of_b, inner, 1, left)
            j += 8 * lanes
        elif left >= _PANEL_VECTORS * lanes:
            _row_panel(c, 0, a0, 0, column_of_a, b, row_of_b, inner, 1, left)
            j += _PANEL_VECTORS * lanes
        elif left >= 2 * lanes:
            _row_pair(c, 0, a0, 0, column_of_a, b, row_of_b, inner, 1, left)
            j += 2 * lanes
        else:
            _row_edge(c, 0, a0, 0, column_of_a, b, row_of_b, inner, 1, left)
            j += lanes


@symbol_kernel
def _add_tiles(c0, row_of_c, a0, row_of_a, column_of_a, b0, row_of_b, m, inner, n):
    """`add_matmul` for pointers and strides, so that it is compiled once for all kinds of arrays.

    c0, a0, b0 : pointers to the first elements of C (m, n), A (m, inner), B (inner, n); the strides
    are in elements.
    """
    lanes = _lanes(c0)
    if m == 1:
        _add_row(c0, a0, column_of_a, b0, row_of_b, inner, n)
        return
    depth = max(1, -(-inner // max(1, -(-inner // _DEPTH))))  # equal parts
    for first in range(0, inner, depth):
        here = min(depth, inner - first)
        j = 0
        while j < n:
            b, left = _offset(b0, first * row_of_b + j), n - j
            for i in range(0, m, _TILE_ROWS):
                c = _offset(c0, i * row_of_c + j)
                a = _offset(a0, i * row_of_a + first * column_of_a)
                rows = min(_TILE_ROWS, m - i)
                if left < 2 * lanes:
                    _edge(c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, here, rows, left)
                elif rows <= _TILE_ROWS // 2:
                    _half(c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, here, rows, left)
                else:
                    _wide(c, row_of_c, a, row_of_a, column_of_a, b, row_of_b, here, rows, left)
            j += 2 * lanes if left >= 2 * lanes else lanes


if not CAN_CALL:
    _tiles_added = _add_tiles


@kernel
def add_matmul_at(C, c_rows, A, a_rows, B):
    """C[c_rows[r]] += A[a_rows[r]] B for every r: a product of rows that do not lie together.

    A convolution adds, for each offset in its window, a product of those cells that have a
    neighbour there. Every element is the same chain of additions as in `add_matmul`.

    C, A, B : (any, n), (any, k), (k, n) float32 or float64, rows contiguous
    c_rows, a_rows : (m,) int64, contiguous; rows of C, each at most once, and rows of A
    """
    m, inner, n = c_rows.size, A.shape[1], B.shape[1]
    c0, row_of_c, _ = _matrix(C)
    a0, row_of_a, _ = _matrix(A)
    b0, row_of_b, _ = _matrix(B)
    lanes = _lanes(c0)
    c_list, a_list = _pointer(c_rows), _pointer(a_rows)
    depth = max(1, -(-inner // max(1, -(-inner // _DEPTH))))
    for start in range(0, inner, depth):
        here = min(depth, inner - start)
        j = 0
        while j < n:
            b, left = _offset(b0, start * row_of_b + j), n - j
            c, a = _offset(c0, j), _offset(a0, start)
            for i in range(0, m, _TILE_ROWS):
                ci, ai, rows = _offset(c_list, i), _offset(a_list, i), min(_TILE_ROWS, m - i)
                if left >= 2 * lanes:
                    _wide_at(c, row_of_c, a, row_of_a, 1, b, row_of_b, here, rows, left, ci, ai)
                else:
                    _edge_at(c, row_of_c, a, row_of_a, 1, b, row_of_b, here, rows, left, ci, ai)
            j += 2 * lanes if left >= 2 * lanes else lanes
