"""The Spark source: batch and streaming reads of a stream."""

from connector.source._columns import Decoder, decoded_fields, serializer_of
from connector.source._options import METADATA_COLUMNS, SourceOptions
from connector.source._readers import PravegaBatchReader, PravegaStreamReader, require_stream

__all__ = [
    "METADATA_COLUMNS",
    "Decoder",
    "PravegaBatchReader",
    "PravegaStreamReader",
    "SourceOptions",
    "decoded_fields",
    "require_stream",
    "serializer_of",
]
