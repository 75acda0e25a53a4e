#!/bin/sh
# numba 0.68.1, llvmlite 0.50.0, SciPy 1.17.1, NumPy 2.4.6, Python 3.11
#
# Where SciPy is installed, the first compiled function that a process loads from Numba's cache
# imports scipy.linalg, though the function only adds integers and nothing is compiled: Numba looks
# whether SciPy has BLAS. And scipy.linalg imports numpy.f2py, the translator of Fortran, because
# the array API layer of SciPy copies every name of NumPy, lazy ones included. One would expect a
# cached function to need Numba alone. A short command spends a tenth of a second more on it.
#
# Seen:
#     without SciPy: scipy.linalg False, numpy.f2py False
#     with SciPy: scipy.linalg True, numpy.f2py True, 151 modules more
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6
cat > "$folder/total.py" <<'PYTHON'
import sys

import numba


@numba.njit(cache=True)
def total(a, b):
    return a + b


if __name__ == "__main__":
    total(1, 2)
    assert sum(total.stats.cache_hits.values()) == (len(sys.argv) > 1)
    print(*("scipy.linalg" in sys.modules, "numpy.f2py" in sys.modules, len(sys.modules)))
PYTHON
"$folder/venv/bin/python" "$folder/total.py" > "$folder/compiled"
"$folder/venv/bin/python" "$folder/total.py" again > "$folder/without"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1
"$folder/venv/bin/python" "$folder/total.py" again > "$folder/with"
read -r linalg f2py few < "$folder/without"
echo "without SciPy: scipy.linalg $linalg, numpy.f2py $f2py"
read -r linalg_now f2py_now many < "$folder/with"
echo "with SciPy: scipy.linalg $linalg_now, numpy.f2py $f2py_now, $((many - few)) modules more"
test "$linalg $f2py $linalg_now $f2py_now" = "False False True True"
