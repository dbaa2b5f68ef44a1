"""Serializers in polars: an import of this module adds the namespace ``pravega`` to expressions and series.

``pl.col("event").pravega.decode(serializer)`` decodes a column of events, ``pravega.encode(serializer)`` encodes one.
The columns are passed as Arrow arrays, also by lazy queries and the streaming engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from pravega_serde.adapters.decoding import becoming_arrow, check_package, column_decoder
from pravega_serde.errors import SchemaError

check_package("polars")

import polars as pl  # noqa: E402 - after the check, whose error names the extra

if TYPE_CHECKING:
    from pravega_serde.serializer_interface import Deserializer, Serializer


@pl.api.register_series_namespace("pravega")
class PravegaSeries:
    """Namespace ``pravega`` of a polars Series."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def decode(self, serializer: Deserializer[Any], *, mode: str = "FAILFAST") -> pl.Series:
        """Return the values of a series of events, a struct for records. A null stays null.

        A malformed event raises :class:`DeserializationError`, or is null with ``mode="PERMISSIVE"``.
        """
        return _series(self._series.name, column_decoder(serializer, mode)(_column(self._series)))

    def encode(self, serializer: Serializer[Any]) -> pl.Series:
        """Return the events of a series of values, structs for records. A null stays null.

        Raises :class:`SchemaError` for an unsupported type, and :class:`SerializationError` for an invalid value.
        """
        return _series(self._series.name, serializer.encode_column(_column(self._series)))


@pl.api.register_expr_namespace("pravega")
class PravegaExpressions:
    """Namespace ``pravega`` of a polars expression."""

    def __init__(self, expression: pl.Expr) -> None:
        self._expression = expression

    def decode(self, serializer: Deserializer[Any], *, mode: str = "FAILFAST") -> pl.Expr:
        """Decode a column of events as :meth:`PravegaSeries.decode` does.

        Raises :class:`SchemaError` if the serializer does not know its columns.
        """
        decoded = column_decoder(serializer, mode)
        return self._expression.map_batches(
            lambda series: _series(series.name, decoded(_column(series))),
            return_dtype=_series("", pa.array([], serializer.arrow_type)).dtype,
            is_elementwise=True,
        )

    def encode(self, serializer: Serializer[Any]) -> pl.Expr:
        """Encode a column as :meth:`PravegaSeries.encode` does. For records, pass ``pl.struct("id", "item")``."""
        return self._expression.map_batches(
            lambda series: _series(series.name, serializer.encode_column(_column(series))),
            return_dtype=pl.Binary(),
            is_elementwise=True,
        )


def _column(series: pl.Series) -> pa.Array:
    # Arrow would have the addresses of Python's objects.
    if series.dtype == pl.Object:
        raise SchemaError(f"the column {series.name!r} has Python's objects: cast it to a type of polars")
    with becoming_arrow(f"the column {series.name!r} of {series.dtype}"):
        return series.to_arrow()


def _series(name: str, column: pa.Array) -> pl.Series:
    return cast("pl.Series", pl.from_arrow(column)).alias(name)
