"""Interface of all serializers: events by row and by Arrow column.

This module imports no format, so that every format can import it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from pravega_serde.errors import DeserializationError

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

#: Receives the error of each row that cannot be decoded; its ``row`` is the position in the column.
OnError = Callable[[DeserializationError], None]


class Serializer(Protocol[T]):
    """Writes and reads events of one format, one by one or a column at a time.

    A serializer is immutable, safe to share between threads, and can be pickled: Spark sends it to its workers.
    Whatever can be prepared (schemas, plans) is prepared when it is made.

    Rows and columns give the same bytes. A column's decoded values are those of the rows, in the Arrow types that
    Spark's data sources take: ``string`` and ``binary`` rather than their large or view forms, ``timestamp[us]``,
    lists whose field is called ``element``, every field nullable.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column: a struct for records. Known before any event is read.

        Raises :class:`SchemaError` where the format or its schema has no columnar form.
        """

    def serialize(self, value: T) -> bytes:
        """The event of one value; :class:`SerializationError` when the format cannot hold it."""

    def deserialize(self, data: bytes) -> T:
        """The value of one event; :class:`DeserializationError` for anything that is not one."""

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type can never be encoded. Costs no data: call it early."""

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Events of a whole column, in order. A null row stays null: no event at all.

        Raises :class:`SchemaError` for a column type that does not fit, :class:`SerializationError` (which names the
        row) for a value that does not.
        """

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of a column of events; a null row stays null.

        Without ``on_error`` the first bad row raises its :class:`DeserializationError`. With it, each bad row becomes
        null and its error is handed over, in the order of the rows: ``on_error=errors.append`` keeps them all.
        """
