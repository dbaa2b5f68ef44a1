"""The command ``pravega-serde ingest``, with a note after each committed step: ``ingest NOTES ARGUMENT...``."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from pravega_connector.client import TransactionStatus
from pravega_connector.exactly_once.steps import StepLog
from pravega_connector.operations.cli import main
from tests.faults.cluster.timeline import Notes


def _noting(notes: Notes) -> None:
    commit = StepLog._commit

    @functools.wraps(commit)
    def wrapper(*args: Any) -> TransactionStatus:
        status = commit(*args)
        if status.is_committed:
            notes.done("ingester")
        return status

    StepLog._commit = wrapper  # type: ignore[assignment,method-assign]


def _end_with_input() -> None:
    """Terminate this process when standard input ends: when its parent has ended, or asks for it."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_input, daemon=True).start()
    _noting(Notes(Path(sys.argv[1])))
    main(["ingest", *sys.argv[2:]])
