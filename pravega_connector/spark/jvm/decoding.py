"""Typed reads of the JVM reader: the plan of its decoder, and the rows of batches that Python must decode.

The driver decides from the options, the columns and the serializer, and sends the steps of the decoder as JSON. The
decoder leaves each batch with an event in doubt to :func:`decoded`, on the executor. So values, errors and modes are
those of the Python reader.
"""

from __future__ import annotations

import base64
import functools
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import types as spark

from pravega_connector.core.io import in_background
from pravega_connector.reader.rows import OnBad, corrupt_names, has_required
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader.watermarks import SegmentTimes
from pravega_connector.rows.columns import Decoder, row_builder
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark import jvm
from pravega_connector.spark.jvm.messages import NotInJvmError, packed, unpacked
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.versions import arrow_schema
from pravega_connector.wire import FrameParser, StreamName, segment_name
from pravega_serde.columnar import select
from pravega_serde.errors import PravegaError
from pravega_serde.serializer_interface import Serializer

_log: Final = logging.getLogger(__name__)
#: Seconds between two polls of the registry for new ids.
REFRESH_SECONDS: Final = 30.0
#: Seconds that a batch waits for the registry. A slower answer is of use to the next batch.
_PATIENCE: Final = 0.1
# Types of the decoder's columns, in addition to those with parts.
_TYPES: Final = (
    *(
        spark.BooleanType,
        spark.ByteType,
        spark.ShortType,
        spark.IntegerType,
        spark.LongType,
        spark.FloatType,
        spark.DoubleType,
        spark.DecimalType,
    ),
    *(spark.StringType, spark.BinaryType, spark.DateType, spark.TimestampType, spark.TimestampNTZType),
)
_TEXT: Final = {"format": "text", "largest": 2**31 - 1}


class TypedRows(Exchanged):
    """Options, columns and serializer of a typed read, for a Python process on an executor."""

    def __init__(self, options: SourceOptions, schema: pa.Schema, serializer: Decoder) -> None:
        _ = options.config
        self.options, self.schema, self.serializer = options, schema, serializer


def decoder_plan(
    options: SourceOptions, columns: spark.StructType, schema: pa.Schema, serializer: Decoder
) -> dict[str, Any]:
    """Return the plan for a typed read with these columns. Raises NotInJvmError with the reason if there is none."""
    assert serializer is not None
    _check_options(options)
    _check_names(schema.names)
    metadata, corrupt = options.metadata_columns, corrupt_names(options.column_name_of_corrupt_record)
    own = serializer.get()
    never_null: frozenset[str] = getattr(own, "never_null", frozenset())
    for entry, field in zip(columns, schema, strict=True):
        if field.name in metadata:
            continue
        check_columns(spark.StructType([entry]))
        if has_required(field.with_nullable(field.nullable or field.name in never_null)):
            raise NotInJvmError(f"column {field.name!r}, which is NOT NULL in .schema(…)")
    rows = packed(TypedRows(options, schema, serializer))
    kept = [name for name in corrupt if name not in metadata and name in schema.names]
    return steps(own) | {"metadata": metadata, "corrupt": kept, "rows": rows}


class NewerDecoders:
    """Decoders of a streaming query for the encoding ids that its registry gets while it runs.

    A thread asks the registry, so a batch does not wait for an outage. Python decodes the events of new ids until these
    decoders exist, or if Java has none.
    """

    def __init__(self, plan: Callable[[], dict[str, Any]]) -> None:
        """``plan`` returns the plan of the decoders of all ids that the registry has."""
        self._plan = plan
        self._taken: Any = None
        self._due = time.monotonic() + REFRESH_SECONDS
        self._asked: Future[dict[str, Any]] | None = None
        self._failure = ""

    def take(self) -> dict[str, Any] | None:
        """Return the plan, or None if it has the decoders of the last one or is not known yet."""
        if self._asked is None and time.monotonic() >= self._due:
            self._asked = in_background(self._plan, "pravega-decoders")
            wait([self._asked], _PATIENCE)
        if self._asked is None or not self._asked.done():
            return None
        asked, self._asked, self._due = self._asked, None, time.monotonic() + REFRESH_SECONDS
        try:
            found, failure = asked.result(), ""
        except (NotInJvmError, PravegaError) as error:
            found, failure = None, str(error)
        if failure not in ("", self._failure):
            _log.info("the decoders were not refreshed, so Python decodes events with new ids: %s", failure)
        self._failure = failure
        if found is None or found["decoders"] == self._taken:
            return None
        self._taken = found["decoders"]
        return found


def steps(serializer: Serializer[Any]) -> dict[str, Any]:
    """Return the decoders of the events of a serializer, with the headers of the events that each of them reads.

    Raises NotInJvmError if Java has no such decoders.
    """
    if _name(serializer) == "pravega_serde.registry.reading.RegistryDeserializer":
        decoders = jvm.decoders_by_id(serializer, _steps)  # type: ignore[arg-type]
    else:
        decoders = [_steps(serializer) | {"headers": [""]}]
    return {"format": decoders[0]["format"], "decoders": decoders}


def _steps(serializer: Serializer[Any]) -> dict[str, Any]:
    """Return the steps that decode the payloads of a serializer. Raises NotInJvmError if Java has no such decoder."""
    match name := _name(serializer):
        case "pravega_serde.avro.serializer.AvroSerializer":
            return jvm.avro_plan(serializer)  # type: ignore[arg-type]
        case "pravega_serde.json.serializer.JsonSerializer":
            return jvm.json_plan(serializer)  # type: ignore[arg-type]
        case "pravega_serde.protobuf.serializer.ProtobufSerializer":
            return jvm.protobuf_plan(serializer)  # type: ignore[arg-type]
        case "pravega_serde.java.serializer.JavaSerializer" if serializer.arrow_type == pa.string():
            return _TEXT | {"op": "java"}
        case "pravega_serde.text.UTF8StringSerializer":
            return _TEXT | {"op": "utf8"}
        case "pravega_serde.text.ByteArraySerializer":
            return _TEXT | {"op": "bytes"}
    raise NotInJvmError(name.rpartition(".")[2])


def _name(serializer: Serializer[Any]) -> str:
    kind = type(serializer)
    return f"{kind.__module__}.{kind.__qualname__}"


def _check_options(options: SourceOptions) -> None:
    reasons = {
        "option 'envelope'": options.envelope is not None,
        "option 'unwrap'": options.unwrap is not None,
        "option 'routing_key_field'": options.routing_key_field is not None,
        "column 'encoding_id'": "encoding_id" in options.metadata_columns,
    }
    for reason, applies in reasons.items():
        if applies:
            raise NotInJvmError(reason)


def _check_names(names: Sequence[str]) -> None:
    """Raise NotInJvmError for columns that differ only by case.

    Spark prunes the columns of a scan without regard to case (``SchemaPruning.sortLeftFieldsByRight``), so it asks for
    the second column with the type of the first.
    """
    known: dict[str, str] = {}
    for name in names:
        # All that Java's equalsIgnoreCase finds equal: a dotless i and an i, too.
        other = known.setdefault("".join(each.upper().lower() for each in name), name)
        if other is not name:
            raise NotInJvmError(f"columns {other!r} and {name!r}, which differ only by case")


def check_columns(columns: spark.StructType) -> None:
    """Raise NotInJvmError if the decoder has no columns of these types."""
    for entry in columns:
        _check_type(entry.dataType, entry.name)


def _check_type(kind: spark.DataType, path: str) -> None:
    """Raise NotInJvmError if the decoder has no columns of a type."""
    if isinstance(kind, spark.StructType):
        for entry in kind:
            _check_type(entry.dataType, f"{path}.{entry.name}")
    elif isinstance(kind, spark.ArrayType):
        _check_type(kind.elementType, f"{path}[]")
    elif isinstance(kind, spark.MapType):
        _check_type(kind.keyType, path)
        _check_type(kind.valueType, f"{path}{{}}")
    elif type(kind) not in _TYPES:
        raise NotInJvmError(f"column {path!r} of type {kind.simpleString()}")


# ---- rows of a batch, on an executor ----


@functools.lru_cache(maxsize=64)
def typed_rows(pickled: str) -> TypedRows:
    """Return the options, columns and serializer of a typed read."""
    made: TypedRows = unpacked(pickled)
    return made


def decoded(request: Mapping[str, Any], on_bad: OnBad | None) -> str:
    """Return the rows of a batch as an Arrow stream in Base64, with the columns that the query uses.

    ``on_bad`` receives the errors of malformed events. Raises the error of such an event in mode FAILFAST.
    """
    read = typed_rows(request["rows"])
    columns = arrow_schema(spark.StructType.fromJson(json.loads(request["columns"])))
    stream, segment_id = StreamName(request["scope"], request["stream"]), request["segment_id"]
    times = SegmentTimes(*(np.array(request[name], np.int64) for name in ("places", "lows", "highs")))
    builder = row_builder(read.schema, read.options, read.serializer, on_bad, times)
    parser = FrameParser(request["offset"], segment=segment_name(stream, segment_id))
    sink = pa.BufferOutputStream()
    # Without columns, a batch would lose the number of its rows.
    sent = columns if len(columns) else pa.schema([pa.field("row", pa.bool_())])
    with pa.ipc.new_stream(sink, sent) as output:
        found = parser.feed(base64.b64decode(request["data"]))
        if found is not None:
            for rows in builder.build_all(EventBatch(stream, segment_id, found.payload, found.offsets)):
                output.write_batch(_used(rows, columns) if len(columns) else _only_counted(rows, sent))
    return base64.b64encode(sink.getvalue()).decode()


def _only_counted(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(rows.num_rows, pa.bool_())], schema=schema)


def _used(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    arrays = [narrowed(rows.column(field.name), field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def narrowed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return values with only those fields of structs that a type has."""
    if values.type == kind or not pa.types.is_nested(kind):
        return values if values.type == kind else values.cast(kind)
    values = select(values, np.arange(len(values)))  # without the rows before a slice
    absent = values.is_null() if values.null_count else None
    if pa.types.is_struct(kind):
        parts = [narrowed(values.field(entry.name), entry.type) for entry in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=absent)
    if pa.types.is_map(kind):
        items = narrowed(values.items, kind.item_type)
        return pa.MapArray.from_arrays(values.offsets, values.keys, items, type=kind, mask=absent)
    return pa.ListArray.from_arrays(values.offsets, narrowed(values.values, kind.value_type), type=kind, mask=absent)
