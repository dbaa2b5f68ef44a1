"""What has been read of a field so far, in all rows: the last value of each row, or all of its items."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pravega_serde.columnar.arrays import Int64s
from pravega_serde.protobuf._cursor import Bools

__all__ = ["Items", "Last", "Parts"]

#: Numbers of items as one array, or starts and ends of their bytes as two.
Parts = tuple[npt.NDArray[Any], ...]


class Last:
    """The last value of each row, as Protobuf wants it. Values of absent rows are ``empty``."""

    __slots__ = ("_empty", "parts", "there", "twice")

    def __init__(self, empty: Parts) -> None:
        self._empty = empty
        self.parts: Parts | None = None
        self.there: Bools | None = None
        """Which rows have a value; None: all, or none where there are no parts."""
        self.twice: Bools | None = None
        """Which rows had a value already when another came."""

    def put(self, rows: Int64s | None, parts: Parts) -> None:
        """Take values of some rows, or of all."""
        if self.parts is None and rows is None:
            self.parts = parts
            return
        count = len(self._empty[0])
        there = self.presence()
        if self.parts is None:
            self.parts = self._empty
        rows = np.arange(count) if rows is None else rows
        if there[rows].any():
            self.twice = np.zeros(count, np.bool_) if self.twice is None else self.twice
            self.twice[rows[there[rows]]] = True
        self.parts = tuple(part.copy() for part in self.parts)
        for mine, new in zip(self.parts, parts, strict=True):
            mine[rows] = new
        there[rows] = True
        self.there = there

    def presence(self) -> Bools:
        """Which rows have a value."""
        if self.there is not None:
            return self.there
        return np.full(len(self._empty[0]), self.parts is not None)


class Items:
    """All items of each row, in the order of reading."""

    __slots__ = ("_count", "_owners", "_parts")

    def __init__(self, count: int) -> None:
        self._count = count
        self._owners: list[Int64s] = []
        self._parts: list[Parts] = []

    def put(self, rows: Int64s, parts: Parts) -> None:
        """Take the next items of some rows; a row can be there several times."""
        self._owners.append(rows)
        self._parts.append(parts)

    def ordered(self, empty: Parts) -> tuple[Int64s, Parts]:
        """Row of each item, ascending, and the items."""
        if not self._owners:
            return np.empty(0, np.int64), empty
        if len(self._owners) == 1:
            return self._owners[0], self._parts[0]
        owners = np.concatenate(self._owners)
        order = np.argsort(owners, kind="stable")
        return owners[order], tuple(np.concatenate(part)[order] for part in zip(*self._parts, strict=True))
