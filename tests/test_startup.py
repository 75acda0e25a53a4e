"""What importing loads, and a machine on which no cache can be written."""

import sys

import pytest
from click.testing import CliRunner
from helpers import run_forked, run_python

import sentemb
from sentemb.cli import COMMANDS, main
from sentemb.cli.program import exit_code_of

HEAVY = ("numba", "llvmlite", "matplotlib", "safetensors", "scipy", "sklearn", "torch")
LOADED = "; import sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"


@pytest.mark.parametrize(
    "code",
    [
        "import sentemb",
        "import sentemb; dir(sentemb); sentemb.__version__; sentemb.SentembError",
        "import sentemb.cli",
    ],
)
def test_importing_loads_nothing_heavy(code):
    loaded = run_python(code + LOADED, check=True).stdout.split()
    assert "sentemb" in loaded
    assert not set(loaded) & {*HEAVY, "numpy"}


def test_reading_texts_needs_no_kernel():
    code = (
        "import pkgutil, importlib, sentemb.text\n"
        "for module in pkgutil.iter_modules(sentemb.text.__path__, 'sentemb.text.'):\n"
        "    importlib.import_module(module.name)\n"
        "from sentemb.text.batch import tokenize\n"
        "from sentemb.text.vocabulary import Vocabulary\n"
        "batch = Vocabulary.collect(tokenize(['ab cd'])).batch(['ab', 'cd ab'])\n"
        "assert batch.n_texts == batch.n_words == 2\n"
        "import sys; print(*sys.modules)"
    )
    loaded = run_python(code, check=True).stdout.split()
    assert "sentemb.text.batch" in loaded and not set(loaded) & {*HEAVY}
    assert not [
        name for name in loaded if name.startswith(("sentemb.kernels", "sentemb.models.towers"))
    ]


@pytest.mark.parametrize(
    ("arguments", "word"), [(["--help"], "gradcheck"), (["--version"], "sentemb, version")]
)
def test_help_of_the_command_loads_nothing_heavy(arguments, word):
    code = (
        "import sys\nfrom sentemb.cli import main\n"
        f"try:\n    main({arguments})\nexcept SystemExit as end:\n    assert not end.code\n"
        "print('loaded:', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    said, loaded = run_python(code, check=True).stdout.split("loaded:")
    assert word in said
    assert not set(loaded.split()) & {*HEAVY, "numpy"}


def test_help_of_each_command_compiles_nothing():
    assert "train" in COMMANDS
    code = (
        "import sys\nfrom sentemb.cli import main\n"
        "for name in sys.argv[1:]:\n"
        "    try:\n        main([name, '--help'])\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        "print('loaded:', *sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = run_python(code, *COMMANDS, check=True).stdout.split("loaded:")[1].split()
    assert not set(loaded) & {"numba", "matplotlib"}


def test_commands_that_run_no_kernel_do_not_load_numba(tmp_path):
    log, history = tmp_path / "log.tsv", tmp_path / "run" / "history.jsonl"
    log.write_text("".join(f"query {k}\ttitle {k}\n" for k in range(20)))
    history.parent.mkdir()
    history.write_text('{"epoch": 1, "step": 2, "loss": 0.5, "dev": null}\n')
    code = (
        "import shlex, sys\nfrom sentemb.cli import main\n"
        "for command in sys.argv[1:]:\n"
        "    try:\n        main(shlex.split(command))\n"
        "    except SystemExit as end:\n        assert not end.code\n"
        "    assert 'numba' not in sys.modules, command"
    )
    CliRunner().invoke(main, ["prepare", str(log), "-o", str(tmp_path / "prepared")])
    commands = [
        f"split {log} --dev 30% --test 30% -o {tmp_path}/split",
        f"info {tmp_path}/prepared",
        f"plot-loss {history.parent} -o {tmp_path}/loss.svg",
    ]
    run_python(code, *commands, check=True)


def test_names_of_the_package_are_found_on_first_use():
    assert "train" in sentemb.__all__ and all(getattr(sentemb, name) for name in sentemb.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = sentemb.nonsense


def test_kernels_run_where_no_cache_can_be_written():
    """Also one that calls another by its symbol."""
    code = (
        "import numpy as np\n"
        "from sentemb.kernels.cosine_softmax import add_matmul_rows\n"
        "from sentemb.kernels.compiling.jit import CACHE_FOLDER\n"
        "assert CACHE_FOLDER is None, CACHE_FOLDER\n"
        "C = np.zeros((1, 2), np.float32)\n"
        "add_matmul_rows(C, np.ones((1, 3), np.float32), np.ones((3, 2), np.float32), 0, 1)\n"
        "print(C.tolist())"
    )
    # A path below a file is unwritable for everyone, the administrator included.
    nowhere = {"HOME": "/dev/null/x", "NUMBA_CACHE_DIR": "/dev/null/x", "XDG_CACHE_HOME": ""}
    result = run_python(code, **nowhere)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[[3.0, 3.0]]\n"
    assert result.stderr.count("set NUMBA_CACHE_DIR to a folder") == 1


def test_a_command_says_once_that_no_cache_can_be_written(tmp_path):
    (tmp_path / "p.tsv").write_text("a b\tc d\ne f\tg h\n" * 9)
    code = (
        "import os, sys\n"
        "os.environ |= {'HOME': '/dev/null/x', 'XDG_CACHE_HOME': ''}\n"
        "from sentemb.cli import main\n"
        "main(['prepare', sys.argv[1] + '/p.tsv', '-o', sys.argv[1] + '/p'])"
    )
    said = run_forked(code, tmp_path, cache="/dev/null/x").stderr
    lines = [line for line in said.splitlines() if "NUMBA_CACHE_DIR" in line]
    assert len(lines) == 1 and lines[0].startswith("warning: compiled kernels cannot be kept")


def test_without_the_compiler_a_message_says_so():
    result = run_python("import sentemb.kernels.top_k", NUMBA_DISABLE_JIT="1")
    assert "SentembError: NUMBA_DISABLE_JIT is set, and the kernels need" in result.stderr


@pytest.mark.parametrize("threads", ["0", "-2"])
def test_a_number_of_threads_that_numba_cannot_have_is_named(threads):
    code = "from sentemb.cli import main; main(['keywords', 'none', 'a b'])"
    result = run_python(code, NUMBA_NUM_THREADS=threads)
    assert result.returncode == 1
    assert result.stderr == f"Error: NUMBA_NUM_THREADS is {threads}; give at least 1, or unset it\n"


def test_a_standard_output_that_was_closed_can_be_dropped(monkeypatch, capfd):
    """Python 3.13 prints a traceback if a stream fails while it is dropped."""
    held = []

    def run():
        held.append(sys.stdout)
        print("a line")

    monkeypatch.setattr(sys, "stdout", None)
    assert exit_code_of(run) == 1
    assert sys.stdout is None
    (stream,) = held
    stream.close()
    assert capfd.readouterr().err == "Error: standard output: cannot be written: it is closed\n"
