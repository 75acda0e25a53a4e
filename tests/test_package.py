"""What a built package contains, and what its public face names."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sentemb

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The files that a wheel installs, as paths relative to site-packages."""
    pytest.importorskip("setuptools")
    # Built from a copy: setuptools writes next to the sources.
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("src", "cli", "tests", "benchmarks"):
        shutil.copytree(
            ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    build = "from setuptools import setup; setup()"
    subprocess.run(
        [sys.executable, "-c", build, "--quiet", "build_py", "--build-lib", str(target)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}


def _files(folder, inside):
    """What ``folder`` holds, under the names that it has ``inside`` the package."""
    return {
        f"{inside}/{path.relative_to(folder).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


def test_wheel_holds_every_module_and_every_file_that_they_read(built):
    expected = _files(ROOT / "src/sentemb", "sentemb") | _files(ROOT / "cli", "sentemb/cli")
    assert {"sentemb/py.typed", "sentemb/bridges/export/onnx/readme.md"} <= expected
    assert built == expected


def test_public_names_are_few():
    """With those that docs/python.md has from modules that need an extra."""
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^### (\w+)$", page, re.M))
    assert set(sentemb.__all__) - {"__version__"} <= documented
    assert len(documented) <= 80
    assert {"evaluate", "explain", "simulate", "diff"} <= set(sentemb.__all__)


def test_every_public_name_can_be_had():
    assert dir(sentemb) == sorted(sentemb.__all__)
    for name in sentemb.__all__:
        assert getattr(sentemb, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sentemb.nothing


def test_static_tools_see_the_public_names():
    tree = ast.parse(Path(sentemb.__file__).read_text(encoding="utf-8"))
    (public,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"
    )
    assert public == sentemb.__all__
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(public) <= imported
