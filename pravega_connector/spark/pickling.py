"""Exchange between the processes of a running query: readers, partitions, writers, commit messages, serializers.

Spark pickles them: the driver's for its tasks, the tasks' for the driver. A cluster can have another version of this
project on some machines, or get one while a query runs, and a pickle of another version is at best an error about
unknown names. So each pickle of an :class:`Exchanged` begins with a number, and the rest is not read if that is another
one. The name of this module and of :func:`receive`, and its parameters, are the same in every version.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from pravega_connector.errors import VersionMismatchError

T = TypeVar("T")

#: Raised with every change of an exchanged class: its name and module, its attributes and their meaning.
VERSION: Final = 10


class Exchanged:
    """Base of the classes whose objects are exchanged; their state is their ``__dict__``."""

    def __reduce__(self) -> tuple[Callable[[int, bytes], Any], tuple[int, bytes]]:
        return receive, (VERSION, pickle.dumps((type(self), vars(self))))


def receive(version: int, data: bytes) -> Any:
    """Restore an object from its pickle. Raises VersionMismatchError for a pickle of another version."""
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


class Portable(Generic[T]):
    """A value that is pickled once and unpickled once in each process, however many tasks use it there.

    So the files and schemas of a serializer are read on the driver, and its plans are compiled once for each worker
    instead of each task.
    """

    __slots__ = ("_pickled",)

    def __init__(self, value: T) -> None:
        self._pickled = pickle.dumps(value)

    def get(self) -> T:
        """The value; the same immutable object each time."""
        value: T = _unpickled(self._pickled)
        return value


# Enough for the serializers of all queries of one worker process.
@functools.lru_cache(maxsize=64)
def _unpickled(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # noqa: S301 - pickled by this class
