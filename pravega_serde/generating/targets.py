"""``generate``: code for the events of a stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from pravega_serde.errors import SchemaError, SerdeError
from pravega_serde.generating.code import GeneratedCode
from pravega_serde.generating.java_model import JavaModel
from pravega_serde.generating.java_source import java_source
from pravega_serde.generating.python_source import python_source
from pravega_serde.sniffing import Sniffed, sniff
from pravega_serde.suggestions import did_you_mean

#: Kind of generated code.
Target = Literal["dataclass", "java", "msgspec"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)


def generate(source: Sniffed | Iterable[bytes], *, to: Target, name: str = "events") -> GeneratedCode:
    """Return source code for the classes of Java objects in events.

    ``source`` is the result of :func:`sniff`, or events. With ``to="java"``, the code is Java's source: one file for
    each class, whose objects Java's ``JavaSerializer`` reads and writes with the same bytes. With ``dataclass`` or
    ``msgspec``, it is a Python module with such classes, and with their Java classes for :func:`typed`. ``name`` is the
    name of the module's file, without ``.py``.

    Events show only the fields and constants that they have: see the notes. Nothing in an event becomes code: names
    that are not identifiers raise :class:`SchemaError`, as events without Java objects do. Raises :class:`SerdeError`
    for an unknown target.
    """
    if to not in TARGETS:
        raise SerdeError(f"unknown target {to!r}{did_you_mean(str(to), TARGETS)}; targets: {', '.join(TARGETS)}")
    found = source if isinstance(source, Sniffed) else sniff(source)
    classes = [each for part in found.parts for each in part.class_infos]
    if not classes:
        raise SchemaError(f"the format of the events is {found.format}, and code needs Java objects")
    model = JavaModel(classes)
    if to == "java":
        return GeneratedCode(java_source(model), found.notes)
    text, notes = python_source(model, to)
    return GeneratedCode({f"{name}.py": text}, (*found.notes, *notes))
