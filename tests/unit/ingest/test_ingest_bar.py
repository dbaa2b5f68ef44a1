"""The progress bar of ``pravega-serde ingest``."""

import io
import sys
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.operations.cli.ingest import _progress
from pravega_connector.operations.ingest import Counts, FileSource
from tests.unit.ingest._servers import TARGET


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("trouble", ["store-1:12345 does not answer", None])
def test_it_says_what_does_not_answer(
    client: PravegaClient, six_files: Path, monkeypatch: pytest.MonkeyPatch, trouble: str | None
):
    """While the run waits inside a call, and tells nothing itself."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(PravegaClient, "trouble", property(lambda _self: trouble))
    common = {"client": client, "options": {}, "state": None, "ordered": True}
    with _progress(FileSource([six_files]), str(TARGET), common, quiet=False) as show:
        show("0.csv", Counts(events=5, transactions=1))
    assert "5 events, 1 transactions" in terminal.getvalue()
    assert ("does not answer" in terminal.getvalue()) is (trouble is not None)
