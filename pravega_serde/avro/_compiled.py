"""Writing columns by pyruhvro, three times as fast as numpy, where it is installed and writes the schema.

It panics on several types (bytes, fixed, decimals, times), so it is only given what is listed here: flat records of
types that the tests check against the other paths. It keeps threads, which a forked child does not have: there it would
wait for them for ever, so in a child of a process that used it, it is not used.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro._lower import floor_divide
from pravega_serde.avro._model import Primitive, Record, Type, Union
from pravega_serde.avro._storage import members_of

try:
    import pyruhvro
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["compiled_writer"]

#: Events of a column in storage form, or None if they have to be written otherwise.
Write = Callable[[pa.Array], pa.BinaryArray | None]

_PRIMITIVES: Final = frozenset({"boolean", "int", "long", "float", "double", "string"})
_LOGICAL: Final = frozenset({"date", "timestamp-micros", "timestamp-millis"})


class _Threads:
    """Whether pyruhvro's threads, if it has any, are in this process."""

    used = False
    lost = False

    @classmethod
    def after_fork(cls) -> None:
        cls.lost = cls.used


os.register_at_fork(after_in_child=_Threads.after_fork)


def compiled_writer(schema: Type, text: str) -> Write | None:
    """The writer for a schema, whose JSON is ``text``; None if pyruhvro is missing or does not write it."""
    if not _INSTALLED or not isinstance(schema, Record) or not schema.fields:
        return None
    if not all(_is_written(entry.type) for entry in schema.fields):
        return None
    wanted = _guarded(lambda: pyruhvro.avro_to_arrow_schema(text))
    return None if wanted is None else _Writer(schema, text, wanted)


class _Writer:
    __slots__ = ("_schema", "_text", "_wanted")

    def __init__(self, schema: Record, text: str, wanted: pa.Schema) -> None:
        self._schema, self._text, self._wanted = schema, text, wanted

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        kinds = [entry.type for entry in self._schema.fields]
        columns = stored.flatten()
        if _Threads.lost or stored.null_count or not all(map(_is_complete, kinds, columns)):
            return None
        _Threads.used = True
        batch = pa.RecordBatch.from_arrays(list(map(_raised, kinds, columns)), schema=self._wanted)
        chunks = _guarded(lambda: pyruhvro.serialize_record_batch(batch, self._text, 1))
        if chunks is None:
            return None
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def _guarded(call: Callable[[], Any]) -> Any:
    """The result; None if pyruhvro refuses or panics."""
    try:
        return call()
    except Exception:  # noqa: BLE001 -- whatever it raises, the other path writes the column, or says what is wrong
        return None
    except BaseException as error:
        # Rust's panics are no Exceptions, and their class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None


def _leaf_of(schema: Type) -> Type:
    """What is in an optional type; the type itself of others."""
    optional = isinstance(schema, Union) and len(schema.branches) == 2 and len(members_of(schema)) == 1
    return members_of(schema)[0] if optional else schema  # type: ignore[arg-type]


def _is_written(schema: Type) -> bool:
    leaf = _leaf_of(schema)
    if not isinstance(leaf, Primitive) or leaf.name not in _PRIMITIVES:
        return False
    return leaf.logical is None or leaf.logical.name in _LOGICAL


def _is_complete(schema: Type, column: pa.Array) -> bool:
    """Whether nulls stand only where they may: pyruhvro does not look."""
    return column.null_count == 0 or isinstance(schema, Union)


def _raised(schema: Type, column: pa.Array) -> pa.Array:
    """A stored column with its dates and timestamps as such again."""
    leaf = _leaf_of(schema)
    logical = leaf.logical.name if isinstance(leaf, Primitive) and leaf.logical else ""
    if logical == "timestamp-millis":
        return floor_divide(column, 1000).view(pa.timestamp("ms"))
    return column.view(_TYPES[logical]) if logical in _TYPES else column


_TYPES: Final = {"date": pa.date32(), "timestamp-micros": pa.timestamp("us")}
