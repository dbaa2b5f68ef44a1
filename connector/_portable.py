"""Serializers on their way to Spark's workers."""

from __future__ import annotations

import functools
import pickle
from typing import Any, Generic, TypeVar

__all__ = ["Portable"]

T = TypeVar("T")


class Portable(Generic[T]):
    """A value that is pickled once and made once in each process that uses it, however many tasks it runs.

    What a serializer prepares when it is made (files, schemas, plans) is so prepared on the driver, and compiled once
    per worker instead of once per task.
    """

    __slots__ = ("_pickled",)

    def __init__(self, value: T) -> None:
        self._pickled = pickle.dumps(value)

    def get(self) -> T:
        """The value; the same object each time, which must be immutable."""
        made: T = _made(self._pickled)
        return made


# As many serializers as the queries of one worker process may use at a time.
@functools.lru_cache(maxsize=64)
def _made(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # noqa: S301 - what this class pickled
