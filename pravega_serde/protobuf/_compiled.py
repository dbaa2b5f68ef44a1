"""Writing columns by ptars, twice as fast as numpy, where it is installed and writes the type.

It is only given what is listed here: flat messages, whose bytes the tests compare with those of the other paths. It
takes a negative zero for a default value and leaves it out, so columns with one are written otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf.descriptor import Descriptor

from pravega_serde.protobuf._plan import FieldPlan, MessagePlan
from pravega_serde.protobuf._write_numbers import Unwritable, bits_of

try:
    import ptars
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

__all__ = ["compiled_writer"]

#: Events of a column in storage form, without nulls; None if they have to be written otherwise.
Write = Callable[[pa.Array], pa.BinaryArray | None]


def compiled_writer(plan: MessagePlan, descriptor: Descriptor) -> Write | None:
    """The writer for a message type; None if ptars is missing or the type is not flat."""
    flat = plan.shape == "message" and plan.fields and all(_is_flat(field) for field in plan.fields)
    if not _INSTALLED or not flat:
        return None
    handler = _guarded(lambda: ptars.HandlerPool([descriptor.file]).get_for_message(descriptor))
    return None if handler is None else _Writer(plan, handler)


def _is_flat(field: FieldPlan) -> bool:
    return field.message is None and field.oneof is None and field.label in ("implicit", "explicit")


class _Writer:
    __slots__ = ("_fields", "_handler", "_schema")

    def __init__(self, plan: MessagePlan, handler: Any) -> None:
        self._handler = handler
        self._schema: pa.Schema = handler.schema()
        self._fields = [(field, self._schema.field(field.name).type) for field in plan.fields]

    def __call__(self, stored: pa.Array) -> pa.BinaryArray | None:
        try:
            columns = {
                field.name: _lowered(field, kind, column)
                for (field, kind), column in zip(self._fields, stored.flatten(), strict=True)
            }
        except Unwritable:
            return None
        batch = pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        return _guarded(lambda: self._handler.record_batch_to_array(batch))


def _lowered(field: FieldPlan, kind: pa.DataType, column: pa.Array) -> pa.Array:
    """A column in the type that ptars takes; nulls only where the field may be absent."""
    if field.kind in ("double", "float") and field.label == "implicit" and _has_negative_zero(column):
        raise Unwritable
    if field.kind in _BY_BITS:
        nulls = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
        column = pa.array(bits_of(field, column).astype(kind.to_pandas_dtype()), mask=nulls)
    if column.null_count and field.label == "implicit":
        return column.fill_null(_DEFAULTS.get(field.kind, 0))
    return column


#: Kinds whose storage is another type than ptars's.
_BY_BITS: Final = frozenset({"enum", "fixed32", "fixed64", "uint32", "uint64"})

_DEFAULTS: Final[Mapping[str, Any]] = {"bool": False, "bytes": b"", "string": ""}


def _has_negative_zero(column: pa.Array) -> bool:
    values = column.fill_null(0).to_numpy() if column.null_count else column.to_numpy()
    return bool(((values == 0) & np.signbit(values)).any())


def _guarded(call: Callable[[], Any]) -> Any:
    """The result; None if ptars refuses or panics."""
    try:
        return call()
    except Exception:  # noqa: BLE001 -- whatever it raises, the other path writes the column, or says what is wrong
        return None
    except BaseException as error:
        # Rust's panics are no Exceptions, and their class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None
