"""Column functions: events of any format in a BINARY column, wherever it comes from, to typed columns and back.

``from connector.functions import from_pravega, to_pravega``, and then as Spark's own ``from_avro`` and ``to_avro``::

    frame.select(from_pravega("event", "avro", avro_schema="flight.avsc").alias("flight"))
    frame.select(to_pravega(struct("id", "name"), "json").alias("event"))

Options are those of the source and the sink (docs/options.md); one that is not text goes to the serializer as it is
(``avro_schema`` may be parsed JSON, ``java_sample`` an event's bytes). Files are read when the function is called, on
the driver. The columns stay in Arrow all the way, and a serializer is made once for each worker process.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql.functions import arrow_udf
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import BinaryType, DataType, DoubleType

from connector._portable import Portable
from connector.errors import ConfigError
from connector.options import FormatOptions
from connector.source import CORRUPT_RECORD, CORRUPT_TYPES, VALUE, corrupt_names, decode
from pravega_serde import DeserializationError, Serializer
from pravega_serde.routing import segment_keys

__all__ = ["from_pravega", "pravega_segment_key", "to_pravega"]

_MODES: Final = ("FAILFAST", "PERMISSIVE")
_PARSERS: Final[dict[str, Callable[[str, str], Any]]] = {f.name: f.metadata["parse"] for f in fields(FormatOptions)}


def from_pravega(
    col: Column | str,
    format: str,  # noqa: A002 - the name of the option
    schema: DataType | str | None = None,
    *,
    mode: str = "FAILFAST",
    **options: Any,
) -> Column:
    """Decode a BINARY column of events: a struct for records, else the value. A null stays null.

    ``schema`` (a type, or DDL text) names the fields to read in formats that do not say which they have: JSON, and
    Java objects without a sample.

    Mode FAILFAST fails the query at the first event that cannot be decoded. PERMISSIVE gives a struct with two more
    fields, ``_corrupt_record`` and ``_corrupt_record_error``; a single value stands in its field ``value``.

    Raises ConfigError, SchemaError, UnsupportedFormatError; DeserializationError, with the place inside the event,
    when the query runs.
    """
    if mode.upper() not in _MODES:
        raise ConfigError(
            f"from_pravega has no mode {mode!r}: a column cannot leave out rows; take FAILFAST, or PERMISSIVE and "
            f"filter on {CORRUPT_RECORD}"
        )
    serializer = _options(format, options).column_serializer(_wanted(schema))
    reader = _Reader.of(serializer, permissive=mode.upper() == "PERMISSIVE")

    def from_pravega(events: pa.Array) -> pa.Array:
        return reader.read(events)

    return arrow_udf(from_pravega, returnType=from_arrow_type(reader.arrow_type))(col)


def to_pravega(col: Column | str, format: str, **options: Any) -> Column:  # noqa: A002
    """Encode a column, a struct for records, as a BINARY column of events. A null stays null.

    Raises ConfigError, SchemaError, UnsupportedFormatError; when the query runs, SchemaError for a column of a type
    that the format has not, SerializationError for a value that it cannot hold.
    """
    serializer = Portable(_options(format, options).serializer())

    def to_pravega(values: pa.Array) -> pa.Array:
        return serializer.get().encode_column(_in_utc(values))

    return arrow_udf(to_pravega, returnType=BinaryType())(col)


def pravega_segment_key(col: Column | str) -> Column:
    """Place of a routing key on Pravega's key line, from 0 to 1: the segment whose range holds it gets the event."""

    def pravega_segment_key(keys: pa.Array) -> pa.Array:
        return pa.array(segment_keys(keys), mask=keys.is_null().to_numpy(zero_copy_only=False))

    return arrow_udf(pravega_segment_key, returnType=DoubleType())(col)


def _options(format_name: str, given: dict[str, Any]) -> FormatOptions:
    values = {}
    for name, value in {**given, "format": format_name}.items():
        if name not in _PARSERS:
            near = difflib.get_close_matches(name, list(_PARSERS), n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known options: {', '.join(sorted(_PARSERS))}"
            raise ConfigError(f"there is no option {name!r}; {hint}")
        values[name] = _PARSERS[name](name, value) if isinstance(value, str) else value
    return FormatOptions(**values)


def _wanted(schema: DataType | str | None) -> pa.DataType | None:
    if schema is None:
        return None
    return to_arrow_type(DataType.fromDDL(schema) if isinstance(schema, str) else schema, timezone="UTC")


def _in_utc(column: pa.Array) -> pa.Array:
    """The column with timestamps in UTC: Spark hands them over in the session's time zone."""
    kind = to_arrow_type(from_arrow_type(column.type), timezone="UTC")
    return column if column.type == kind else column.cast(kind)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Decodes columns in a worker; ``fields`` are those of the struct that PERMISSIVE makes."""

    serializer: Portable[Serializer[Any]]
    arrow_type: pa.DataType
    permissive: bool

    @classmethod
    def of(cls, serializer: Serializer[Any], *, permissive: bool) -> _Reader:
        kind = serializer.arrow_type
        if permissive:
            inner = list(kind) if pa.types.is_struct(kind) else [pa.field(VALUE, kind)]
            kind = pa.struct([*inner, *map(pa.field, corrupt_names(CORRUPT_RECORD), CORRUPT_TYPES)])
        return cls(Portable(serializer), kind, permissive)

    def read(self, events: pa.Array) -> pa.Array:
        if not self.permissive:
            return decode(self.serializer.get(), events, "FAILFAST", _without_row).values
        found = decode(self.serializer.get(), events, "PERMISSIVE", lambda error: error)
        values = found.values
        columns = values.flatten() if pa.types.is_struct(values.type) else [values]
        columns += [found.records(), found.reasons(lambda error: str(_without_row(error)))]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=pc.is_null(events))


def _without_row(error: DeserializationError) -> DeserializationError:
    """The error without the row: it counts in one of Spark's batches, which nobody can look at."""
    return type(error)(error.reason, field_path=error.field_path, encoding_id=error.encoding_id)
