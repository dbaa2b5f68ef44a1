"""The Spark source: batch and streaming reads of a stream."""

from connector.source._bad_records import CORRUPT_RECORD, CORRUPT_TYPES, corrupt_names, decode
from connector.source._columns import VALUE, Decoder, RowBuilder, decoded_fields, serializer_of
from connector.source._never_null import with_never_null
from connector.source._options import METADATA_COLUMNS, SourceOptions
from connector.source._positions import Positions
from connector.source._readers import PravegaBatchReader, PravegaStreamReader, batch_reader, require_streams
from connector.source._schema_ids import schema_ids, schema_ids_of, with_schema_ids

__all__ = [
    "CORRUPT_RECORD",
    "CORRUPT_TYPES",
    "METADATA_COLUMNS",
    "VALUE",
    "Decoder",
    "Positions",
    "PravegaBatchReader",
    "PravegaStreamReader",
    "RowBuilder",
    "SourceOptions",
    "batch_reader",
    "corrupt_names",
    "decode",
    "decoded_fields",
    "require_streams",
    "schema_ids",
    "schema_ids_of",
    "serializer_of",
    "with_never_null",
    "with_schema_ids",
]
