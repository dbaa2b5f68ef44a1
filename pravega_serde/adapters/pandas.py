"""Serializers in pandas: :func:`decode` and :func:`encode` convert a Series through Arrow, with ``ArrowDtype``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pravega_serde.adapters.decoding import check_package, column_decoder

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
    return _series(decoded(pa.array(events, from_pandas=True)), events)


def encode(values: pd.Series[Any] | pd.DataFrame, serializer: Serializer[Any]) -> pd.Series[Any]:
    """Return the events of a series of values, or of the rows of a DataFrame, with its index.

    The type is ``ArrowDtype(pyarrow.binary())``. A missing value stays missing. A DataFrame's index is not written.

    Raises :class:`SchemaError` for an unsupported type, and :class:`SerializationError` for an invalid value.
    """
    if isinstance(values, pd.DataFrame):
        return _series(serializer.encode_column(pa.RecordBatch.from_pandas(values, preserve_index=False)), values)
    return _series(serializer.encode_column(pa.array(values, from_pandas=True)), values)


def _series(column: pa.Array, like: pd.Series[Any] | pd.DataFrame) -> pd.Series[Any]:
    return pd.Series(pd.arrays.ArrowExtensionArray(column), index=like.index, name=getattr(like, "name", None))
