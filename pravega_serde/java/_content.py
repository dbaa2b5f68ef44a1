"""What an object consists of on the wire, in between the natural values and the bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._model import BlockData, ClassDescriptor, ProxyDescriptor
from pravega_serde.java._plans import MalformedError

__all__ = ["Content", "block", "content"]


class Content(NamedTuple):
    """An object: its class, its field values, and the annotations of each class that has some."""

    descriptor: ClassDescriptor | ProxyDescriptor
    values: Sequence[Any]
    notes: Sequence[Iterable[Any]]


def content(name: str, values: Sequence[Any], notes: Sequence[Iterable[Any]] = ()) -> Content:
    """An object of a JDK class."""
    descriptor = jdk_descriptor(name)
    assert descriptor is not None, name
    return Content(descriptor, values, notes)


def block(item: Any, layout: struct.Struct) -> tuple[Any, ...]:
    """Numbers of a block of primitive data, which may be longer."""
    if type(item) is not BlockData or len(item) < layout.size:
        msg = f"{layout.size} bytes of primitive data are missing"
        raise MalformedError(msg)
    return layout.unpack_from(item)
