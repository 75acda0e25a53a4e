"""Run the notebooks in place, so that their outputs are those of the present code."""

from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(path):
    """The notebook at ``path``, run from top to bottom in its own folder."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(HERE)}}).execute()
    for cell in notebook.cells:
        cell.metadata = {}  # times of execution, which differ from run to run
    return notebook


if __name__ == "__main__":
    for path in sorted(HERE.glob("*.ipynb")):
        print(path.name, flush=True)
        nbformat.write(executed(path), path)
