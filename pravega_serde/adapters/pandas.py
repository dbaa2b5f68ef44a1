"""Serializers in pandas: :func:`decode` and :func:`encode` convert a Series through Arrow, with ``ArrowDtype``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pravega_serde.adapters.decoding import becoming_arrow, check_package, column_decoder
from pravega_serde.errors import SchemaError

check_package("pandas")

import pandas as pd  # noqa: E402 - after the check, whose error names the extra

if TYPE_CHECKING:
    from pravega_serde.serializer_interface import Deserializer, Serializer


def decode(events: pd.Series[Any], serializer: Deserializer[Any], *, mode: str = "FAILFAST") -> pd.Series[Any]:
    """Return the values of a series of events, with its index and name. A missing event stays missing.

    The type is ``ArrowDtype(serializer.arrow_type)``, a struct for records: ``.struct.explode()`` returns a DataFrame.
    A malformed event raises :class:`DeserializationError`, or is missing with ``mode="PERMISSIVE"``.
    """
    decoded = column_decoder(serializer, mode)
    return _series(decoded(_column(events)), events)


def encode(values: pd.Series[Any] | pd.DataFrame, serializer: Serializer[Any]) -> pd.Series[Any]:
    """Return the events of a series of values, or of the rows of a DataFrame, with its index.

    The type is ``ArrowDtype(pyarrow.binary())``. A missing value stays missing. A DataFrame's index is not written.

    Raises :class:`SchemaError` for an unsupported type, and :class:`SerializationError` for an invalid value.
    """
    if isinstance(values, pd.DataFrame):
        with becoming_arrow("the DataFrame"):
            batch = pa.RecordBatch.from_pandas(values, preserve_index=False)
        return _series(serializer.encode_column(batch), values)
    return _series(serializer.encode_column(_column(values)), values)


def _column(series: pd.Series[Any]) -> pa.Array | pa.ChunkedArray:
    if not isinstance(series, pd.Series):
        raise SchemaError(f"values must be a pandas Series, not {type(series).__name__}; pass pandas.Series(values)")
    with becoming_arrow(f"the Series of dtype {series.dtype}"):
        return pa.array(series, from_pandas=True)


def _series(column: pa.Array, like: pd.Series[Any] | pd.DataFrame) -> pd.Series[Any]:
    return pd.Series(pd.arrays.ArrowExtensionArray(column), index=like.index, name=getattr(like, "name", None))
