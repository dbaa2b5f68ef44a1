"""Events of one kind, the same bytes for all peers, and the functions that read and write them."""

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

#: Minimum seconds of a timed run, because a column of our events may be read in a few milliseconds.
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
    """Libraries by kind of work. All have the same events (or values) as input, and the same output."""
    slow: Mapping[str, tuple[int, Callable[[list[bytes]], Work]]] = field(default_factory=dict)
    """By kind of work, a library that would need minutes for all events, and the number of its events."""
    slow_name: str = ""
    batch: int = 0
    """Number of events in a column; 0 means one column of all."""
    extras: bool = True
    """True if the packages of the ``fast`` extra make a difference."""
    java: str = ""
    """Name of the format in SerdePeer.java; empty if Java is not measured."""
    aims: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """By kind of work, the peer to compare with, and the smallest ratio. An empty name is the fastest peer."""


def batches(values: Any, size: int) -> list[Any]:
    """Split a list or an array into parts of ``size`` values; 0 means one part."""
    return [values[start : start + size] for start in range(0, len(values), size)] if size else [values]


def ours(subject: Subject) -> dict[str, Work]:
    """Return our functions of each kind. Preparations that a serializer needs once are done here."""
    serializer, events = subject.serializer, subject.events
    column = pa.array(events, pa.binary())
    values = [serializer.deserialize(event) for event in events]
    columns = batches(column, subject.batch)
    decoded = [serializer.decode_column(each) for each in columns]
    serializer.encode_column(decoded[0].slice(0, 1))
    # Work that creates many objects makes Python's collector visit all existing ones. Exclude these.
    gc.collect()
    gc.freeze()
    return {
        "decode rows": lambda: [serializer.deserialize(event) for event in events],
        "encode rows": lambda: [serializer.serialize(value) for value in values],
        "decode columns": lambda: [serializer.decode_column(each) for each in columns],
        "encode columns": lambda: [serializer.encode_column(each) for each in decoded],
    }


def timed(work: Work, count: int) -> Once:
    """Return a function that repeats some work on ``count`` events until SHORTEST has passed.

    The time to free the results of a run is not counted.
    """

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
    """Return the name and version of a package."""
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{package} is not installed"
