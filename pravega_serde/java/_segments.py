"""The sixteen locks that a ``ConcurrentHashMap`` of JDK 7 had, and that its successors still write."""

from __future__ import annotations

from typing import Final

from pravega_serde.java._containers import JavaArray
from pravega_serde.java._jdk_table import array_descriptor, jdk_descriptor
from pravega_serde.java._model import ClassDescriptor, JavaObject

__all__ = ["new_segments"]

_SEGMENTS: Final = 16


def new_segments() -> JavaArray:
    """New lock objects, as ``ConcurrentHashMap.writeObject`` makes them each time."""
    segment, sync = _class("java.util.concurrent.ConcurrentHashMap$Segment"), _class(_SYNC)
    array = array_descriptor(f"[L{segment.name};", public=False)
    # Fields: sync of ReentrantLock, loadFactor of Segment; state of AbstractQueuedSynchronizer.
    return JavaArray([JavaObject(segment, [JavaObject(sync, [0]), 0.75]) for _ in range(_SEGMENTS)], array)


_SYNC: Final = "java.util.concurrent.locks.ReentrantLock$NonfairSync"


def _class(name: str) -> ClassDescriptor:
    found = jdk_descriptor(name)
    assert found is not None, name
    return found
