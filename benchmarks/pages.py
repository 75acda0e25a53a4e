"""Where data come from and measurements go: sections of pages in docs/; the machine's name."""

import os
import platform
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
SETS = ("occupations", "tldr", "msdocs_index")
BENCHMARKS = ROOT / "docs" / "benchmarks.md"


def write_section(page, name, text):
    """Replace what stands between the markers of section ``name`` in a Markdown file."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def machine():
    """The machine in a few words."""
    return f"{_processor()}, {os.cpu_count()} processors; Python {platform.python_version()}"


def _processor():
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(
            line.split(":")[1].strip() for line in text.splitlines() if "model name" in line
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
