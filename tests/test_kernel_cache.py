"""The kernel cache: whatever happens to it, kernels answer, and nobody else's code runs."""

import contextlib
import gc
import os
import pickle
import shutil

import numba
import numpy as np
import pytest
from helpers import forked, full_disk, run_forked, run_python
from numba import types
from numba.core.registry import cpu_target

from sentemb.kernels.compiling import cache, jit

NUMBERS = np.array([1.5, 2.0, -0.25])
ARGUMENTS = (types.Array(types.float64, 1, "C"),)
STRANGER = 65534

# A kernel of the package in a process of its own; prints its answer, cache hits and misses.
USE_KERNEL = """
import numpy as np
from sentemb.kernels.input_layer import sum_rows
source = np.arange(6, dtype=np.float32).reshape(3, 2)
out = np.zeros(2, np.float32)
sum_rows(out, source, 0, 3)
print(out.tolist(), sum(sum_rows.stats.cache_hits.values()), end=" ")
print(sum(sum_rows.stats.cache_misses.values()))
"""
COMPILED, CACHED = "[6.0, 9.0] 0 1\n", "[6.0, 9.0] 1 0\n"

as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0,
    reason="only root can give a file to another user",
)


def total(values):
    s = 0.0
    for value in values:
        s += value
    return s


def largest(values):
    m = values[0]
    for value in values:
        m = max(m, value)
    return m


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that kernels made by `ask` are cached in."""
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(jit, "CACHE_FOLDER", folder)
    return folder


def ask(function=total):
    """Call a fresh kernel; True if it came from the cache, False if it was compiled."""
    fresh = jit.kernel(function)
    assert fresh(NUMBERS) == function(NUMBERS)
    hits, misses = (sum(count.values()) for count in (fresh.stats.cache_hits, fresh.stats[2]))
    assert hits + misses == 1
    return hits == 1


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The file of `total` in a cache."""
    folder = tmp_path_factory.mktemp("compiled") / "kernels"  # names of files depend on it
    folder.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(jit, "CACHE_FOLDER", folder)
        assert not ask()
    return only_file(folder)


@pytest.fixture
def saved(folder, compiled):
    """The same file in the cache of one test."""
    return shutil.copy2(compiled, folder / compiled.name)


def load(folder, function=total):
    """What the cache has for ``function``, or None."""
    return cache.KernelCache(folder, function).load_overload(ARGUMENTS, cpu_target.target_context)


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def random_bytes(path):
    path.write_bytes(np.random.default_rng(0).bytes(path.stat().st_size))


def one_bit_flipped(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def a_folder(path):
    path.unlink()
    path.mkdir()
    (path / "something").write_text("in it")


def a_fifo(path):
    path.unlink()
    os.mkfifo(path)


def a_link_to_a_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def a_link_to_a_copy(path):
    path.symlink_to(path.rename(path.parent.parent / "copy"))


def another_kernel(path):
    """Sealed rightly, but in the place of this one."""
    content = path.read_bytes()
    path.unlink()
    ask(largest)
    only_file(path.parent).rename(path)
    assert path.read_bytes() != content


DAMAGES = [
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(path.read_bytes()[:16]),
    lambda path: path.write_bytes(path.read_bytes()[:-1]),
    random_bytes,
    one_bit_flipped,
    a_folder,
    a_fifo,
    a_link_to_a_device,
    a_link_to_a_copy,
    another_kernel,
    lambda path: path.chmod(0o620),
    lambda path: path.chmod(0o602),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_kernel_compiles_again_and_is_saved_again(folder, saved, damage):
    assert ask()
    damage(saved)
    assert not ask()
    assert only_file(folder).is_file()
    assert ask()


def test_any_flipped_byte_is_found(folder, saved):
    path, content = saved, saved.read_bytes()
    assert load(folder) is not None
    for place in [*range(40), *range(40, len(content), 61), len(content) - 1]:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        assert load(folder) is None, f"byte {place} of {len(content)}"
        assert not path.exists()
    path.touch(0o600)
    path.write_bytes(content)
    assert load(folder) is not None


# A kernel that calls another one by its symbol; prints as USE_KERNEL does.
MULTIPLY = """
import numpy as np
from sentemb.kernels.cosine_softmax import add_matmul_rows
C = np.zeros((1, 2), np.float32)
add_matmul_rows(C, np.ones((1, 3), np.float32), np.ones((3, 2), np.float32), 0, 1)
print(C.tolist(), sum(add_matmul_rows.stats.cache_hits.values()))
"""


def multiply(folder):
    return run_python(MULTIPLY, NUMBA_CACHE_DIR=str(folder), check=True).stdout


@pytest.fixture(scope="module")
def multiplied(tmp_path_factory):
    """A cache that one process has filled."""
    folder = tmp_path_factory.mktemp("cache")
    assert multiply(folder) == "[[3.0, 3.0]] 0\n"
    return folder


@pytest.mark.parametrize("left", ["add_matmul_rows", "_add_tiles"])
def test_a_kernel_that_multiplies_finds_the_tiles(multiplied, tmp_path, left):
    """Whichever of the two is left in the cache."""
    folder = shutil.copytree(multiplied, tmp_path / "cache")
    for path in set(folder.rglob("*.kernel")) - set(folder.rglob(f"{left}-*")):
        path.unlink()
    assert multiply(folder) == f"[[3.0, 3.0]] {int(left != '_add_tiles')}\n"
    found = {path.name.split("-")[0] for path in folder.rglob("*.kernel")}
    assert found >= {"add_matmul_rows", "_add_tiles"}


# Two kernels that call a third, which calls the tiles by their symbol; runs one of the two.
NESTED = """
import sys
import numpy as np
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.matmul import add_matmul

@kernel
def product(C, A, B):
    add_matmul(C, A, B)

@kernel
def first(C, A, B):
    product(C, A, B)

@kernel
def second(C, A, B):
    product(C, A, B)
    C += 1

C = np.zeros((1, 2), np.float32)
called = {"first": first, "second": second}[sys.argv[1]]
called(C, np.ones((1, 3), np.float32), np.ones((3, 2), np.float32))
print(C.tolist(), sum(called.stats.cache_hits.values()))
"""


def test_a_kernel_compiled_around_one_from_the_cache_finds_the_tiles(multiplied, tmp_path):
    """The symbol of the inner kernel is provided when the outer one comes from the cache."""
    folder = shutil.copytree(multiplied, tmp_path / "cache")

    def use(name):
        done = run_python(NESTED, name, NUMBA_CACHE_DIR=str(folder))
        assert done.returncode == 0, (done.returncode, done.stderr)
        return done.stdout

    assert use("first") == "[[3.0, 3.0]] 0\n"  # saves the inner kernel
    assert use("second") == "[[4.0, 4.0]] 0\n"  # compiles around it
    assert use("second") == "[[4.0, 4.0]] 1\n"


def test_kernels_multiply_where_numba_calls_nothing_before_it_loads_one(multiplied):
    older = """
from numba.core.codegen import CodeLibrary
begin = CodeLibrary.__init__
CodeLibrary.__init__ = lambda *arguments: begin(*arguments)
"""
    done = run_python(older + MULTIPLY, NUMBA_CACHE_DIR=str(multiplied), check=True)
    assert done.stdout == "[[3.0, 3.0]] 1\n"


def test_the_garbage_collector_rests_while_a_kernel_compiles(folder, monkeypatch):
    collecting = []
    save = cache.KernelCache.save_overload
    monkeypatch.setattr(
        cache.KernelCache,
        "save_overload",
        lambda *arguments: (collecting.append(gc.isenabled()), save(*arguments)),
    )
    assert not ask() and collecting == [False] and gc.isenabled()
    with contextlib.suppress(numba.TypingError):
        jit.kernel(lambda values: values.nothing)(NUMBERS)
    assert gc.isenabled()
    gc.disable()
    try:
        assert not ask(largest) and not gc.isenabled()
    finally:
        gc.enable()


def test_what_compiling_leaves_is_old_at_once(folder):
    """A collection after it would look through all of it."""
    before = []
    assert not ask() and not gc.get_freeze_count()
    assert any(it is before for it in gc.get_objects(generation=2))
    gc.freeze()  # as servers do before they fork
    try:
        assert not ask(largest) and gc.get_freeze_count()
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("compiler", [jit.InnerCompiler, None])
def test_an_inner_kernel_is_a_part_of_kernels(folder, monkeypatch, compiler):
    """With its own file only where this Numba does not let it end as intermediate code."""
    monkeypatch.setattr(jit, "InnerCompiler", compiler)
    inner = jit.inner_kernel(total)

    def twice(values):
        return 2 * inner(values)

    for hits in (0, 1):
        outer = jit.kernel(twice)
        assert outer(NUMBERS) == 2 * total(NUMBERS)
        assert sum(outer.stats.cache_hits.values()) == hits
    files = {path.name.split("-")[0] for path in folder.iterdir()}
    assert files == ({"twice"} if compiler else {"twice", "total"})


def test_one_file_for_each_signature(folder):
    both = jit.kernel(total)
    for numbers in (NUMBERS, NUMBERS.astype(np.float32)):
        assert both(numbers) == total(numbers)
    assert len(list(folder.iterdir())) == 2


def test_kernels_of_equal_name_are_told_apart(folder, saved):
    def other(values):
        return values[0] + values[-1]

    other.__name__, other.__qualname__ = total.__name__, total.__qualname__
    assert not ask(other)
    assert ask() and ask(other)


def test_code_with_addresses_of_this_process_is_not_saved(folder):
    large = np.arange(1_000_000.0)  # Numba refers to an array of this size by its address

    def with_address(values):
        return large[3] + values[0]

    assert not ask(with_address)
    assert not any(folder.iterdir())


def test_settings_of_numba_that_change_the_code(folder, saved, monkeypatch):
    assert ask()
    monkeypatch.setattr("numba.config.OPT", 1)
    assert not ask()
    monkeypatch.undo()
    assert len(list(folder.iterdir())) == 2


# -- places that cannot be used ------------------------------------------------------------------


def test_a_full_disk(folder):
    with full_disk(1000):
        assert not ask()
    assert not any(folder.iterdir())
    assert not ask() and ask()


def test_a_folder_that_is_gone_or_a_file(folder):
    folder.rmdir()
    assert not ask()
    folder.write_text("a file")
    assert not ask()


def test_a_folder_that_cannot_be_written_or_read(folder, saved):
    folder.chmod(0o500)
    assert ask()
    folder.chmod(0)
    try:
        ask()  # from the cache for root, compiled for others
    finally:
        folder.chmod(0o700)


@contextlib.contextmanager
def umask(mask):
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def test_what_is_made_is_private_whatever_the_umask(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with umask(0):
        folder = cache._cache_folder()
        monkeypatch.setattr(jit, "CACHE_FOLDER", folder)
        ask()
    assert folder.parent.parent == tmp_path
    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]
    assert only_file(folder).stat().st_mode & 0o777 == 0o600


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Two folders: the first place where a cache may be, and the one tried after it."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(first))
    monkeypatch.setenv("XDG_CACHE_HOME", str(second))
    assert cache._cache_folder().parent.parent == first
    return first, second


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("mode", [0o770, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_passed_over(places, level, mode):
    first, second = places
    [cache._cache_folder(), first / "sentemb-kernels"][level].chmod(mode)
    assert cache._cache_folder().parent.parent == second


@pytest.mark.parametrize("level", [0, 1])
def test_a_symlink_is_passed_over(places, level):
    first, second = places
    folder = [cache._cache_folder(), first / "sentemb-kernels"][level]
    folder.symlink_to(folder.rename(first / "elsewhere"))
    assert cache._cache_folder().parent.parent == second


@as_root
@pytest.mark.parametrize("level", [0, 1])
def test_a_folder_of_another_user_is_passed_over(places, level):
    first, second = places
    os.chown([cache._cache_folder(), first / "sentemb-kernels"][level], STRANGER, STRANGER)
    assert cache._cache_folder().parent.parent == second


@pytest.mark.parametrize(
    "bad", ["", "relative/folder", "/dev/null", "/dev/null/x", "/" + 300 * "x"]
)
@pytest.mark.parametrize("name", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_bad_places_are_passed_over(tmp_path, monkeypatch, name, bad):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, bad)
    if name == "NUMBA_CACHE_DIR":
        monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache._cache_folder().parent.parent == tmp_path / ".cache"


@pytest.mark.parametrize("home", ["/dev/null", "/proc/none", "relative"])
def test_no_place_at_all(monkeypatch, home):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("HOME", home)
    assert cache._cache_folder() is None


def test_without_sources_nothing_tells_versions_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_KERNELS", tmp_path / "kernels.zip")
    assert cache._cache_folder() is None


@pytest.mark.parametrize("module", ["cache", "inner"])
def test_a_numba_that_the_cache_or_inner_kernels_cannot_be_built_on(tmp_path, module):
    code = f"import sys; sys.modules['sentemb.kernels.compiling.{module}'] = None" + USE_KERNEL
    assert run_forked(code, cache=tmp_path).stdout == COMPILED


@pytest.mark.parametrize("name", ["_reduce", "_rebuild"])
def test_a_numba_with_other_internals(folder, monkeypatch, name):
    monkeypatch.delattr(f"numba.core.compiler.CompileResult.{name}")
    assert not ask()
    assert not ask()


# -- code of others ------------------------------------------------------------------------------


class Touch:
    """Unpickling one makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.fixture
def planted(folder, saved):
    """A file with the right name and digest that makes the file ``ran`` when it is loaded."""
    content = pickle.dumps(Touch(folder.parent / "ran"))
    saved.write_bytes(cache._seal(saved, content) + content)
    return saved


def ran(folder):
    return (folder.parent / "ran").exists()


def test_what_is_planted_would_run(folder, planted):
    assert not ask()
    assert ran(folder)


@pytest.mark.parametrize("mode", [0o660, 0o606])
def test_a_file_that_others_can_write_does_not_run(folder, planted, mode):
    planted.chmod(mode)
    assert not ask()
    assert not ran(folder)


@as_root
def test_a_file_of_another_user_does_not_run(folder, planted):
    os.chown(planted, STRANGER, STRANGER)
    assert not ask()
    assert not ran(folder)


# -- several processes ---------------------------------------------------------------------------


def test_two_processes_fill_the_cache_at_once(tmp_path):
    both = [forked(USE_KERNEL, cache=tmp_path) for _ in range(2)]
    answers = [process.communicate(timeout=300)[0] for process in both]
    assert set(answers) <= {COMPILED, CACHED} and COMPILED in answers
    assert run_forked(USE_KERNEL, cache=tmp_path).stdout == CACHED
    assert all(path.suffix == ".kernel" for path in tmp_path.rglob("*") if path.is_file())
