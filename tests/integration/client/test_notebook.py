"""The notebook of the examples runs, and shows tables and a picture."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[3] / "examples" / "frames.ipynb"


@pytest.mark.long
def test_the_notebook_runs_unchanged(config, monkeypatch):
    monkeypatch.setenv("PRAVEGA_CONTROLLER_URI", config.controller)
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1]))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120).execute()
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("text/html" in data for data in shown) >= 4
    assert sum("image/svg+xml" in data for data in shown) == 1
