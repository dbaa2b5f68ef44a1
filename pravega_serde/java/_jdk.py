"""The table of JDK classes that have a natural Python form, both ways.

A class is taken for the JDK's own only if its descriptor in the stream is JDK 17's, field by field; anything else that
bears its name stays a record, which loses nothing.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, Final

from pravega_serde.errors import SerializationError
from pravega_serde.java import _jdk_collections as collection
from pravega_serde.java import _jdk_scalars as scalars
from pravega_serde.java import _jdk_time as times
from pravega_serde.java import _jdk_wrappers as wrappers
from pravega_serde.java._containers import JavaList, JavaMap, JavaSet
from pravega_serde.java._content import Content
from pravega_serde.java._jdk_table import jdk_descriptor
from pravega_serde.java._model import ClassDescriptor, JavaClass, JavaEnum
from pravega_serde.java._plans import Codec

__all__ = ["WRITERS", "codec_of"]

_READERS: Final[dict[str, Codec]] = {
    **scalars.READERS,
    **times.READERS,
    **collection.READERS,
    **wrappers.READERS,
}


def codec_of(descriptor: ClassDescriptor) -> Codec | None:
    """How objects of this class become natural values; None: as a record."""
    codec = _READERS.get(descriptor.name)
    if codec is None or (not codec.any_form and descriptor != jdk_descriptor(descriptor.name)):
        return None
    return codec


def _write_named(value: JavaList | JavaMap | JavaSet) -> Content:
    """Collections that remember their class."""
    write = wrappers.WRITERS.get(value.java_class)
    if write is not None:
        return write(value)
    layout = collection.LAYOUTS.get(value.java_class)
    if layout is None or issubclass(layout.make, dict) != isinstance(value, dict):
        msg = f"a {type(value).__name__} cannot be written as {value.java_class}"
        raise SerializationError(msg)
    extra = value.extra
    if value.java_class == "java.util.EnumMap" and "keyType" not in extra:
        extra = {**extra, "keyType": _key_type(value)}
    return collection.write_collection(value.java_class, value, extra)


def _key_type(value: JavaMap | JavaSet | JavaList) -> JavaClass:
    for key in value:
        if isinstance(key, JavaEnum):
            return JavaClass(key.descriptor)
    msg = "an EnumMap holds enum constants, and an empty one needs extra={'keyType': JavaClass(...)}"
    raise SerializationError(msg)


def _plain(name: str) -> Callable[[Any], Content]:
    return lambda value: collection.write_collection(name, value, {})


WRITERS: Final[dict[type[Any], Callable[[Any], Content]]] = {
    **scalars.WRITERS,
    **times.WRITERS,
    JavaList: _write_named,
    JavaMap: _write_named,
    JavaSet: _write_named,
    list: _plain("java.util.ArrayList"),
    tuple: _plain("java.util.ArrayList"),
    dict: _plain("java.util.HashMap"),
    set: _plain("java.util.HashSet"),
    frozenset: _plain("java.util.HashSet"),
    collections.deque: _plain("java.util.ArrayDeque"),
}
"""Python type -> its Java content."""
