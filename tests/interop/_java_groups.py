"""Runs java/GroupStatePeer.java: a reader group's bytes read by the Java client's classes; no server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.interop._java_program import JavaProgram

__all__ = ["JavaGroupStates"]


class JavaGroupStates(JavaProgram):
    """The classes of the Java client. Context manager."""

    def __init__(self) -> None:
        super().__init__("GroupStatePeer")

    def make(self, seed: int, count: int) -> list[dict[str, Any]]:
        """Random values with ``kind``, ``hex``, and ``value`` as of :func:`tests.support.group_values.plain`."""
        return list(self._answer("make", seed=seed, count=count))

    def read(self, kind: str, values: Iterable[bytes]) -> list[dict[str, Any]]:
        """Values that Java reads: ``value``, and ``hex`` as it writes that again; or ``why`` it cannot."""
        return list(self._answer("read", kind=kind, hex=[value.hex() for value in values]))

    def apply(self, runs: Iterable[Sequence[bytes]]) -> list[dict[str, Any]]:
        """States of groups, each from an initial value on, after updates.

        ``state`` in bytes of hexadecimal, ``sizes`` of the readers, ``end`` of all data; or the number of the value
        that was ``refused``, and ``why``.
        """
        return list(self._answer("apply", runs=[[value.hex() for value in run] for run in runs]))
