"""tanh, the logistic sigmoid and exp over rows of an array, in place.

float32: polynomials that LLVM turns into vector instructions (about 0.3 ns an element; the C
library's tanh takes 15 ns). Largest absolute error 4e-7 for tanh and sigmoid, largest relative
error 2e-7 for exp. float64, used to check gradients: the C library's exact functions.

NaN stays NaN: the clamps are written so that a comparison with NaN changes nothing.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from sentemb.kernels.compiling.jit import inner_kernel, kernel

# tanh(x) = x p(x^2) / q(x^2) for |x| <= 7.9053, where float32 tanh has reached 1 - 3e-7. Both
# have degree 4 in x^2 and are fitted to tanh by re-weighted least squares on Chebyshev points. They
# are 6e-9 off, which leaves the float32 rounding as the main error.
_LIMIT = np.float32(7.9053)
_P0 = np.float32(0.9999999943092232)
_P1 = np.float32(0.13450296086408128)
_P2 = np.float32(0.003578599901247852)
_P3 = np.float32(2.201641082181644e-05)
_P4 = np.float32(1.541742756348586e-08)
_Q1 = np.float32(0.46783624051927)
_Q2 = np.float32(0.02619076459157489)
_Q3 = np.float32(0.0003422994575178007)
_Q4 = np.float32(8.594715278166169e-07)
_ONE = np.float32(1.0)
_HALF = np.float32(0.5)


@inner_kernel
def tanh_parts(x):
    """Numerator and denominator of tanh(x), float32; two that are multiplied need one division."""
    if x > _LIMIT:
        x = _LIMIT
    if x < -_LIMIT:
        x = -_LIMIT
    s = x * x
    p = (((_P4 * s + _P3) * s + _P2) * s + _P1) * s + _P0
    q = (((_Q4 * s + _Q3) * s + _Q2) * s + _Q1) * s + _ONE
    return x * p, q


@inner_kernel
def _tanh32(x):
    numerator, denominator = tanh_parts(x)
    return numerator / denominator


def tanh(x):
    """tanh of a float32 or float64: inside a kernel."""
    return math.tanh(x)


def sigmoid(x):
    """1 / (1 + exp(-x)) of a float32 or float64 as (1 + tanh(x / 2)) / 2: inside a kernel."""
    return 0.5 * math.tanh(0.5 * x) + 0.5


def gated_tanh(gate, x):
    """``sigmoid(gate) * tanh(x)``, of float32 as one fraction: inside a kernel."""
    return sigmoid(gate) * tanh(x)


@overload(tanh, inline="always")
def _tanh_of(x):
    if x == types.float32:
        return lambda x: _tanh32(x)
    return lambda x: math.tanh(x)


@overload(sigmoid, inline="always")
def _sigmoid_of(x):
    if x == types.float32:
        return lambda x: _HALF * _tanh32(_HALF * x) + _HALF
    return lambda x: 0.5 * math.tanh(0.5 * x) + 0.5


@overload(gated_tanh)
def _gated_tanh_of(gate, x):
    if x == types.float32:
        return _gated_tanh32
    return lambda gate, x: (0.5 * math.tanh(0.5 * gate) + 0.5) * math.tanh(x)


def _gated_tanh32(gate, x):
    a, b = tanh_parts(_HALF * gate)
    c, d = tanh_parts(x)
    return _HALF * (b + a) * c / (b * d)


@kernel
def tanh_rows(Z, first_row, end_row, first, end):
    """Z[first_row:end_row, first:end] = tanh of itself.

    Z : (rows, columns) float32 or float64
    """
    for r in range(first_row, end_row):
        z = Z[r, first:end]
        for j in range(z.size):
            z[j] = tanh(z[j])


@kernel
def sigmoid_rows(Z, first_row, end_row, first, end):
    """Z[first_row:end_row, first:end] = 1 / (1 + exp(-itself)).

    Z : (rows, columns) float32 or float64. Both use sigmoid(x) = (1 + tanh(x / 2)) / 2, which
    cannot overflow.
    """
    for r in range(first_row, end_row):
        z = Z[r, first:end]
        for j in range(z.size):
            z[j] = sigmoid(z[j])


@intrinsic
def _as_float32(typingctx, bits):
    """The float32 whose 32 bits are those of an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


# exp(x) = 2^k exp(r), |r| <= ln(2) / 2, ln(2) in two parts so that k ln(2) is exact.
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_LOWEST = np.float32(-87.0)
_E2 = np.float32(1 / 2)
_E3 = np.float32(1 / 6)
_E4 = np.float32(1 / 24)
_E5 = np.float32(1 / 120)
_E6 = np.float32(1 / 720)
_E7 = np.float32(1 / 5040)


@inner_kernel
def _exp32(x):
    if x < _LOWEST:  # exp(-87) = 1.6e-38 is the last normal float32; what is smaller counts as it
        x = _LOWEST
    k = math.floor(x * _LOG2E + _HALF)
    r = x - k * _LN2_HIGH - k * _LN2_LOW
    p = (((((_E7 * r + _E6) * r + _E5) * r + _E4) * r + _E3) * r + _E2) * r + _ONE
    p = p * r + _ONE
    return p * _as_float32((np.int32(k) + np.int32(127)) << np.int32(23))


@kernel
def exp_row(z):
    """z = exp(z) for a row of numbers that are not above zero.

    z : (columns,) float32 or float64
    """
    if z.itemsize == 4:
        for j in range(z.size):
            z[j] = _exp32(z[j])
    else:
        for j in range(z.size):
            z[j] = math.exp(z[j])
