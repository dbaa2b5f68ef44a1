"""Values that are pickled once and unpickled once in each process."""

from __future__ import annotations

import functools
import pickle
from typing import Any, Generic, TypeVar

from pravega_serde.errors import UnsupportedFormatError

T = TypeVar("T")


class Pickled(Generic[T]):
    """Value that is pickled once, and unpickled once in each process for all tasks that use it there.

    So the files and schemas of a serializer are read on the driver. Its plans are compiled once for each worker instead
    of for each task.
    """

    __slots__ = ("_pickled",)

    def __init__(self, value: T) -> None:
        self._pickled = pickle.dumps(value)

    def get(self) -> T:
        """Return the value; it is the same immutable object each time."""
        value: T = _unpickled(self._pickled)
        return value


# Enough for the serializers of all queries of one worker process.
@functools.lru_cache(maxsize=64)
def _unpickled(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)  # noqa: S301 - pickled by this class
    except ModuleNotFoundError as error:
        raise UnsupportedFormatError(
            f"the module {error.name!r} of the query's format cannot be imported on this machine: install its package "
            "on the driver and every executor"
        ) from error
