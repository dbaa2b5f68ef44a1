"""Exchange between the processes of a running query: readers, partitions, writers, messages, serializers.

Spark pickles these objects to send them from the driver to tasks, and from tasks to the driver. A cluster may have
another version of this project on some machines, or install one while a query runs. The pickle of another version would
at best raise an error about unknown names. So each pickle of an :class:`Exchanged` begins with a version number. The
rest is not read if the number differs. The name of this module and of :func:`receive`, and its parameters, are the same
in every version.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from pravega_connector.errors import VersionMismatchError

#: Increase it with every change of an exchanged class: its name and module, its attributes and their meaning.
VERSION: Final = 28


class Exchanged:
    """Base class of the objects that are exchanged; their state is their ``__dict__``."""

    def __reduce__(self) -> tuple[Callable[[int, bytes], Any], tuple[int, bytes]]:
        return receive, (VERSION, pickle.dumps((type(self), vars(self))))


def receive(version: int, data: bytes) -> Any:
    """Restore an object from its pickle. Raises VersionMismatchError for a pickle of another version."""
    if version != VERSION:
        raise VersionMismatchError(
            f"another process of this query has another version of pravega-serde (it exchanges version {version}, "
            f"this process version {VERSION}): install the same version on the driver and all executors, and restart "
            "the query; it resumes from its checkpoint"
        )
    kind, state = pickle.loads(data)  # noqa: S301 - Spark's own protocol between its processes is pickle
    made = kind.__new__(kind)
    vars(made).update(state)
    return made
