"""The command ``pravega-serde ingest``, which notes each step that it has committed: ``_ingest NOTES ARGUMENT...``."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from tools.faults.cluster._notes import Notes

from pravega_connector.cli import main
from pravega_connector.ingest.ingester import Ingester


def _noting(notes: Notes) -> None:
    commit = Ingester._commit

    @functools.wraps(commit)
    def wrapper(*args: Any) -> bool:
        committed = commit(*args)
        if committed:
            notes.done("ingester")
        return committed

    Ingester._commit = wrapper  # type: ignore[method-assign]


def _end_with_input() -> None:
    """Ask this process to end when standard input does: when whoever started it is gone, or wants so."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    _noting(Notes(Path(sys.argv[1])))
    main(["ingest", *sys.argv[2:]])
