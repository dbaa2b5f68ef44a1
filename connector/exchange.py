"""What the processes of a running query hand to each other: readers, partitions, writers, commit messages.

Spark pickles them: the driver's for its tasks, the tasks' for the driver. A cluster can have another version of this
project on some machines, or get one while a query runs, and a pickle of another version is at best an error about
names that nobody knows. So each pickle begins with a number, and what follows is not looked at where that is another
one. The name of this module and of :func:`receive`, and its parameters, are the same in every version.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Final

from connector.errors import VersionMismatchError

__all__ = ["VERSION", "Exchanged", "receive"]

#: Raised with every change of what is exchanged: the names and modules of classes, their attributes and their meaning.
VERSION: Final = 3


class Exchanged:
    """Base of a class whose objects are exchanged. They are what their ``__dict__`` has."""

    def __reduce__(self) -> tuple[Callable[[int, bytes], Any], tuple[int, bytes]]:
        return receive, (VERSION, pickle.dumps((type(self), vars(self))))


def receive(version: int, data: bytes) -> Any:
    """The object that a pickle stands for. Raises VersionMismatchError for another version's."""
    if version != VERSION:
        raise VersionMismatchError(
            f"another process of this query has another version of pravega-serde (it exchanges version {version}, this "
            f"one version {VERSION}): install the same on the driver and all executors, and start the query again; it "
            "goes on from its checkpoint"
        )
    kind, state = pickle.loads(data)  # noqa: S301 - Spark's own protocol between its processes is pickle
    made = kind.__new__(kind)
    vars(made).update(state)
    return made
