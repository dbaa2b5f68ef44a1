"""Messages of the tasks of a write, as Spark passes them to the commit of its Python writer."""

from __future__ import annotations

from collections.abc import Sequence

from pravega_connector.errors import UnsupportedModeError
from pravega_connector.spark.versions import WriterCommitMessage

Messages = Sequence[WriterCommitMessage | None]


def check_tasks_ran(messages: Messages) -> None:
    """Raise UnsupportedModeError if a task has no message: Spark has not run the Python writer for its rows."""
    if None in messages:
        raise UnsupportedModeError(
            "Spark passed rows one by one, as for a continuous trigger, and runs no Python writer for such rows, so "
            "none was written: use trigger(processingTime=…)"
        )
