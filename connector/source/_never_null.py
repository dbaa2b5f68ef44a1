"""Which columns of a read are declared NOT NULL.

Spark looks for nulls in every value of a nullable column, twice on its way into a query: with six columns of Avro that
takes a third of the JVM's time. A column that never has one says so.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from connector.source._columns import Decoder
from connector.source._options import METADATA_COLUMNS, SourceOptions

__all__ = ["with_never_null"]


def with_never_null(fields: Sequence[pa.Field], options: SourceOptions, serializer: Decoder) -> list[pa.Field]:
    """The fields of a read's rows, NOT NULL where no event leaves them null.

    Those are an event's bytes and where it is; and where bad events have no rows, what the serializer has in every
    value.
    """
    sure = set(METADATA_COLUMNS) & set(options.metadata_columns)
    if serializer is not None and options.decode_mode != "PERMISSIVE":
        sure |= getattr(serializer.get(), "never_null", frozenset())
    return [field.with_nullable(field.name not in sure) for field in fields]
