"""What is measured: events of one kind, the same bytes for everybody, and who reads and writes them how."""

from __future__ import annotations

import gc
import importlib.metadata
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from pravega_serde import Serializer

__all__ = ["OURS", "WAYS", "Once", "Subject", "Work", "batches", "ours", "timed", "version"]

OURS: Final = "ours"
WAYS: Final = ("decode rows", "encode rows", "decode columns", "encode columns")

#: Seconds that a timed run takes at the least: a column of our events may be read in a few milliseconds.
SHORTEST: Final = 0.08

Work = Callable[[], object]
Once = Callable[[], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Events of one kind."""

    name: str
    serializer: Serializer[Any]
    events: list[bytes]
    libraries: Mapping[str, Mapping[str, Work]] = field(default_factory=dict)
    """For each way, the libraries that go it: from the same events (or values) to the same output."""
    slow: Mapping[str, tuple[int, Callable[[list[bytes]], Work]]] = field(default_factory=dict)
    """For each way, a library that would take minutes for all events: it is given so many."""
    slow_name: str = ""
    batch: int = 0
    """Events of a column; 0: all are one column."""
    extras: bool = True
    """Whether the packages of the ``fast`` extra make a difference."""
    java: str = ""
    """The name of the format in SerdePeer.java; empty where Java is not asked."""
    aims: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """For each way, the peer that ours is compared with, and the least ratio. Without a peer's name, the fastest."""


def batches(values: Any, size: int) -> list[Any]:
    """A list, or an array, in parts of so many values; 0: as one part."""
    return [values[start : start + size] for start in range(0, len(values), size)] if size else [values]


def ours(subject: Subject) -> dict[str, Work]:
    """Our own way of each kind. All that is prepared once for a serializer is prepared here."""
    serializer, events = subject.serializer, subject.events
    column = pa.array(events, pa.binary())
    values = [serializer.deserialize(event) for event in events]
    columns = batches(column, subject.batch)
    decoded = [serializer.decode_column(each) for each in columns]
    serializer.encode_column(decoded[0].slice(0, 1))
    # Whoever makes many objects makes Python's collector look at all that are there: not at these.
    gc.collect()
    gc.freeze()
    return {
        "decode rows": lambda: [serializer.deserialize(event) for event in events],
        "encode rows": lambda: [serializer.serialize(value) for value in values],
        "decode columns": lambda: [serializer.decode_column(each) for each in columns],
        "encode columns": lambda: [serializer.encode_column(each) for each in decoded],
    }


def timed(work: Work, count: int) -> Once:
    """Runs of some work on so many events, until SHORTEST has passed. What a run makes is freed off the clock."""

    def once() -> dict[str, Any]:
        seconds = cpu = 0.0
        runs = 0
        while seconds < SHORTEST:
            before, start = time.process_time(), time.perf_counter()
            made = work()
            seconds, cpu, runs = seconds + time.perf_counter() - start, cpu + time.process_time() - before, runs + 1
            del made
        return {"seconds": seconds, "cpu": cpu, "events": count * runs}

    return once


def version(package: str) -> str:
    """A package's name and version."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"
