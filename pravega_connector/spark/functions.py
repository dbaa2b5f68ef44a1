"""Column functions: decode a BINARY column of events in any format to typed columns, and encode columns.

The events may come from any source. Import the functions with ``from pravega_connector.spark.functions import
from_pravega, to_pravega``, and use them as Spark's ``from_avro`` and ``to_avro``::

    frame.select(from_pravega("event", "avro", avro_schema="flight.avsc").alias("flight"))
    frame.select(to_pravega(struct("id", "name"), "json").alias("event"))

The options are those of the source and the sink (docs/reference/options.md). An option that is not text goes to the
serializer unchanged: ``avro_schema`` may be parsed JSON, ``java_sample`` the bytes of an event. Files are read on the
driver when you call the function. The columns stay in Arrow, and each worker process creates a serializer once.

With ``registry`` and ``group``, events begin with the header of Java's registry serializers. The group is required,
because a column has no stream that names it. A format is not needed::

    frame.select(from_pravega("event", registry="http://localhost:9092", group="orders").alias("order"))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, dataclass, fields
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql.types import BinaryType, DataType, DoubleType

from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_connector.reader.rows import CORRUPT_TYPES, corrupt_names, decode, value_fields
from pravega_connector.rows.columns import serializer_of
from pravega_connector.rows.options import RegistryOptions, option_hint
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import CORRUPT_RECORD, SourceOptions
from pravega_connector.rows.pickled import Pickled
from pravega_connector.rows.registry_encoding import registry_encoding, registry_serializer
from pravega_connector.spark.versions import HAS_ARROW_FUNCTIONS, arrow_type, parsed_type, spark_type
from pravega_serde.columnar.bad_rows import relocated
from pravega_serde.errors import DeserializationError, SchemaError
from pravega_serde.routing import segment_keys
from pravega_serde.serializer_interface import Serializer

# First characters of Avro and JSON schemas.
_JSON: Final = ("{", "[", '"')
_MODES: Final = ("FAILFAST", "PERMISSIVE")
# Options of a stream that also apply to a column.
_SHARED: Final = frozenset({*(f.name for f in fields(RegistryOptions)), "timeout_ms"})
ColumnFunction = Callable[[Column | str], Column]
Options = TypeVar("Options", SourceOptions, SinkOptions)


def from_pravega(
    col: Column | str,
    format: str | None = None,
    schema: DataType | str | None = None,
    *,
    mode: str = "FAILFAST",
    **options: Any,
) -> Column:
    """Decode a BINARY column of events: records become a struct, other events a value. A null stays null.

    ``schema`` (a type, or DDL text) names the fields to read in formats whose events do not name them: JSON, and Java
    objects without a sample. With a registry it selects fields, like ``.schema(…)`` of a reader. Without it, the fields
    are those of the latest schemas of the group at the time of the call.

    Mode FAILFAST fails the query at the first event that cannot be decoded. PERMISSIVE returns a struct with two more
    fields, ``_corrupt_record`` and ``_corrupt_record_error``. A single value is in its field ``value``.

    Raises ConfigError, SchemaError, UnsupportedFormatError, RegistryErrors.
    When the query runs, raises DeserializationError with the position inside the event.
    """
    return reading_function(format, schema, mode=mode, **options)(col)


def to_pravega(
    col: Column | str,
    format: str | None = None,
    schema: DataType | str | None = None,
    **options: Any,
) -> Column:
    """Encode a column, a struct for records, as a BINARY column of events. A null stays null.

    With a registry, events use the schema in the options, or the latest schema of the group. If you pass ``schema``,
    the type of the column or DDL text, the schema is selected as for a DataFrame with these columns. With
    ``register_schema`` it is created from them. Schemas are registered when you call this function.

    Raises ConfigError, SchemaError, UnsupportedFormatError, RegistryErrors.
    When the query runs, raises SchemaError for a column type that the format does not support, and SerializationError
    for a value that it cannot represent.
    """
    return writing_function(format, schema, **options)(col)


def pravega_segment_key(col: Column | str) -> Column:
    """Return the position of a routing key in Pravega's key space, from 0 to 1.

    The event goes to the segment with a key range that contains the position.
    """
    return segment_key_function()(col)


def reading_function(
    format: str | None = None,
    schema: DataType | str | None = None,
    *,
    mode: str = "FAILFAST",
    **options: Any,
) -> ColumnFunction:
    """Return the function of :func:`from_pravega` for a column. Raises its errors."""
    if mode.upper() not in _MODES:
        raise ConfigError(
            f"from_pravega has no mode {mode!r}: a column cannot drop rows; use FAILFAST, or PERMISSIVE and filter on "
            f"{CORRUPT_RECORD}"
        )
    _check_places("from_pravega", format, schema)
    given = _options(SourceOptions, format, options)
    reader = _Reader.of(_deserializer(given, _wanted(schema)), permissive=mode.upper() == "PERMISSIVE")

    def from_pravega(events: pa.Array) -> pa.Array:
        return reader.read(events)

    return _arrow_function(from_pravega, spark_type(reader.arrow_type))


def writing_function(
    format: str | None = None,
    schema: DataType | str | None = None,
    **options: Any,
) -> ColumnFunction:
    """Return the function of :func:`to_pravega` for a column. Raises its errors."""
    _check_places("to_pravega", format, schema)
    serializer = Pickled(_serializer(_options(SinkOptions, format, options), _wanted(schema)))

    def to_pravega(values: pa.Array) -> pa.Array:
        return serializer.get().encode_column(_in_utc(values))

    return _arrow_function(to_pravega, BinaryType())


def segment_key_function() -> ColumnFunction:
    """Return the function of :func:`pravega_segment_key` for a column."""

    def pravega_segment_key(keys: pa.Array) -> pa.Array:
        return pa.array(segment_keys(keys), mask=keys.is_null().to_numpy(zero_copy_only=False))

    return _arrow_function(pravega_segment_key, DoubleType())


def _arrow_function(function: Callable[[pa.Array], pa.Array], kind: DataType) -> ColumnFunction:
    if not HAS_ARROW_FUNCTIONS:
        from pravega_connector.spark.arrow_in_pandas import arrow_function  # noqa: PLC0415 - not for every Spark

        return arrow_function(function, kind)
    from pyspark.sql.functions import arrow_udf  # noqa: PLC0415 - an older Spark has none

    made: ColumnFunction = arrow_udf(function, returnType=kind)
    return made


def _check_places(function: str, format_name: str | None, schema: DataType | str | None) -> None:
    """Raise ConfigError for a schema as JSON where the format or a Spark schema belongs, as in Spark's functions."""
    spark_function = function.replace("pravega", "avro")
    how = f"write {function}(col, 'avro', avro_schema=…), in SQL avro_schema => '…'"
    if format_name is not None and format_name.lstrip().startswith(_JSON):
        raise ConfigError(
            f"the second argument of {function} is the format of the events, not their schema as in {spark_function}: "
            f"{how}"
        )
    if isinstance(schema, str) and schema.lstrip().startswith(_JSON):
        raise ConfigError(
            f"the third argument of {function} is a schema of Spark, such as 'id BIGINT', not an Avro or JSON schema: "
            f"{how} (for JSON json_schema)"
        )


def _options(kind: type[Options], format_name: str | None, given: dict[str, Any]) -> Options:
    """Return the options of a column: the format of its events, and the registry of their schemas."""
    known = {f.name: f for f in fields(kind) if f.name in _SHARED or f.metadata.get("registry")}
    values = {} if format_name is None else {"format": _parsed(known["format"], format_name)}
    for name, value in given.items():
        if name not in known:
            raise UnknownOptionError(f"unknown option {name!r}{option_hint(name, known)}")
        values[name] = _parsed(known[name], value)
    options = kind(**values)
    if options.from_registry and options.group is None:
        raise ConfigError("option 'group' is missing: set it, because a column has no stream that names the group")
    if not options.from_registry and options.format is None:
        raise ConfigError(
            "option 'format' or 'registry' is missing: set one of them to define the format of the events"
        )
    return options


def _parsed(option: Field[Any], value: Any) -> Any:
    return option.metadata["parse"](option.name, value) if isinstance(value, str) else value


def _deserializer(options: SourceOptions, wanted: pa.DataType | None) -> Serializer[Any]:
    if not options.from_registry:
        return options.column_serializer(wanted)
    made = serializer_of(options, None if wanted is None else pa.schema(value_fields(wanted)))
    assert made is not None
    return made.get()


def _serializer(options: SinkOptions, kind: pa.DataType | None) -> Serializer[Any]:
    if not options.from_registry:
        return options.serializer()
    if kind is None:
        return options.complete(registry_serializer(options))
    return options.complete(registry_encoding(options, pa.schema(value_fields(kind))).serializer)


def _wanted(schema: DataType | str | None) -> pa.DataType | None:
    if schema is None:
        return None
    kind = parsed_type(schema) if isinstance(schema, str) else schema
    try:
        return arrow_type(kind)
    except (TypeError, ValueError) as error:
        raise SchemaError(
            f"a column of type {kind.simpleString()} has no Arrow type: use another one, for example STRING"
        ) from error


def _in_utc(column: pa.Array) -> pa.Array:
    """Convert timestamps to UTC: Spark passes them in the time zone of the session."""
    try:
        kind = arrow_type(spark_type(column.type))
    except (TypeError, ValueError) as error:
        raise SchemaError(f"a column of type {column.type} is not supported: cast it, for example to STRING") from error
    return column if column.type == kind else column.cast(kind)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Decoder of columns in a worker; ``fields`` are the fields of the struct that PERMISSIVE returns."""

    serializer: Pickled[Serializer[Any]]
    arrow_type: pa.DataType
    permissive: bool

    @classmethod
    def of(cls, serializer: Serializer[Any], *, permissive: bool) -> _Reader:
        kind = serializer.arrow_type
        if permissive:
            decoded, corrupt = value_fields(kind), corrupt_names(CORRUPT_RECORD)
            if (twice := next((f.name for f in decoded if f.name in corrupt), None)) is not None:
                raise ConfigError(
                    f"mode PERMISSIVE adds a field {twice!r}, which the events have, too: omit it from the schema, or "
                    "use mode FAILFAST"
                )
            kind = pa.struct([*decoded, *map(pa.field, corrupt, CORRUPT_TYPES)])
        return cls(Pickled(serializer), kind, permissive)

    def read(self, events: pa.Array) -> pa.Array:
        if not self.permissive:
            return decode(self.serializer.get(), events, "FAILFAST", _without_row).values
        found = decode(self.serializer.get(), events, "PERMISSIVE", lambda error: error)
        values = found.values
        columns = values.flatten() if pa.types.is_struct(values.type) else [values]
        columns += [found.records(events), found.reasons(lambda error: str(_without_row(error)))]
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=pc.is_null(events))


def _without_row(error: DeserializationError) -> DeserializationError:
    return relocated(error, row=None)  # rows count in a batch that only Spark sees
