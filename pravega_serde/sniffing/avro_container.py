"""Schema in the header of an Avro object container file."""

from __future__ import annotations

from typing import Final

from pravega_serde.avro.rows import read_block, read_long
from pravega_serde.avro.schema import load
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import SchemaError

_MAGIC: Final = b"Obj\x01"
#: Bytes of the sync marker after the header.
_SYNC: Final = 16
_MOST_ENTRIES: Final = 100


def schema_of(data: bytes) -> str | None:
    """Return the schema in the header of a container file; None for other events, and for an invalid header."""
    if not data.startswith(_MAGIC):
        return None
    try:
        schema = _entries(data)[b"avro.schema"].decode()
        _check(schema)
    except (IndexError, KeyError, MalformedError, SchemaError, UnicodeDecodeError):
        return None
    return schema


def _check(schema: str) -> None:
    if schema.strip()[:1] not in ("{", "[", '"'):
        raise SchemaError("the schema of the container file is not JSON")  # and never the path of a file
    load(schema)


def _entries(data: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    at = len(_MAGIC)
    while True:
        count, at = read_block(data, at)
        if count == 0:
            break
        if count + len(found) > _MOST_ENTRIES:
            raise MalformedError("too many entries in the header")
        for _ in range(count):
            key, at = _bytes(data, at)
            found[key], at = _bytes(data, at)
    if at + _SYNC > len(data):
        raise MalformedError("the header has no sync marker")
    return found


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise MalformedError("the event ends inside the header")
    return data[at : at + size], at + size
