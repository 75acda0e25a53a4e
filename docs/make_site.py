"""Build the site of all Markdown pages and notebooks in build/site; it can be read from disk."""

import shutil
import subprocess
import sys
from pathlib import Path

from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
PAGES = ROOT / "build" / "site-pages"
COPIED = (
    "*.md",
    "LICENSE",
    "docs/**/*.md",
    "docs/**/*.png",
    "docs/results/**/*.csv",
    "notebooks/*.md",
    "tests/README.md",
)


def collect() -> None:
    """Copy the pages into an empty `PAGES`, notebooks as Markdown with their figures."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for pattern in COPIED:
        for path in ROOT.glob(pattern):
            copy = PAGES / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        text, resources = MarkdownExporter().from_filename(str(path))
        for name, figure in resources["outputs"].items():
            text = text.replace(f"({name})", f"({path.stem}-{name})")
            (PAGES / "notebooks" / f"{path.stem}-{name}").write_bytes(figure)
        (PAGES / "notebooks" / f"{path.stem}.md").write_text(text, encoding="utf-8")
    # README is the first page, and the menu hangs on it.
    index = (PAGES / "README.md").rename(PAGES / "index.md")
    index.write_text(index.read_text("utf-8") + (SITE / "contents.md").read_text("utf-8"))


if __name__ == "__main__":
    collect()
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto"]
    sys.exit(subprocess.call([*sphinx, "-c", SITE, PAGES, ROOT / "build" / "site"]))
