"""Serializers in DuckDB, as SQL functions: ``register(connection, "orders", serializer)``.

The functions receive and return Arrow arrays, one for each vector of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pravega_serde.adapters.decoding import check_package, column_decoder
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import DeserializationError, SerdeError, SerializationError

check_package("duckdb")

if TYPE_CHECKING:
    import duckdb

    from pravega_serde.serializer_interface import Deserializer, Serializer


def register(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    serializer: Serializer[Any] | Deserializer[Any],
    *,
    mode: str = "FAILFAST",
) -> None:
    """Create the SQL functions ``decode_<name>`` and ``encode_<name>`` in a connection. A null stays null.

    ``decode_<name>(event)`` accepts a BLOB and returns the serializer's type, a STRUCT for records. A malformed event
    fails the query, or is null with ``mode="PERMISSIVE"``. ``encode_<name>(value)`` accepts any type that the
    serializer writes, and the name of a table for its rows. It returns a BLOB. It does not exist for a serializer that
    only reads.

    Raises :class:`SerdeError` for an invalid name, and :class:`SchemaError` if the serializer does not know its
    columns.
    """
    if not name.isidentifier():
        raise SerdeError(f"invalid name {name!r}: use letters, digits and underscores, as in decode_orders")
    decoded = column_decoder(serializer, mode)

    def decode(events: pa.ChunkedArray) -> pa.Array:
        try:
            return decoded(events)
        except DeserializationError as error:
            raise relocated(error, row=None) from None  # rows count in a vector that only DuckDB sees

    kind = connection.from_arrow(pa.table({"value": pa.array([], serializer.arrow_type)})).types[0]
    _create(connection, f"decode_{name}", decode, ["BLOB"], kind)
    write = getattr(serializer, "encode_column", None)
    if write is None:
        return

    def encode(*values: pa.ChunkedArray) -> pa.BinaryArray:
        if len(values) != 1:
            raise SerdeError(f"encode_{name} accepts one value, not {len(values)}: pass a STRUCT, or a table's name")
        try:
            return write(values[0])
        except SerializationError as error:
            raise SerializationError(error.reason, field_path=error.field_path) from None

    # Without parameters, DuckDB accepts any type: the serializer checks it.
    _create(connection, f"encode_{name}", encode, None, "BLOB")


def _create(connection: Any, name: str, function: Any, parameters: Any, kind: Any) -> None:
    # Of any type: DuckDB's stubs lack the types of its functions on Arrow arrays.
    connection.create_function(name, function, parameters, kind, type="arrow", null_handling="special")
