"""Schemas in few words, for the tests of Avro."""

from datetime import UTC, datetime
from typing import Any


def record(*fields: tuple[Any, ...], name: str = "R") -> dict[str, Any]:
    entries = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return {"type": "record", "name": name, "fields": entries}


def logical(kind: Any, what: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": what, **more}


ARRAY_OF_INT = {"type": "array", "items": "int"}
LIST = record(("v", "int"), ("next", ["null", "List"]), name="List")
FLAT = record(("id", "long"), ("name", ["null", "string"]), ("score", "double"))

INSTANT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
LOCAL = INSTANT.replace(tzinfo=None)
