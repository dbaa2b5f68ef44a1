"""The Spark source: batch and streaming reads of a stream.

``readers`` is what Spark calls, and reads the rows of a partition. For the driver ``streams`` finds the streams to
read, ``positions`` their beginnings and ends, ``planner`` the end of the next micro-batch within the limits that
``admission`` keeps; ``offsets`` is its form in the checkpoint, ``progress`` what others are told of it. ``columns``
makes record batches of events, with ``registry`` where a schema registry describes them, ``bad_records`` treats those
that cannot be decoded, and ``data_loss`` what is gone.
``inference`` finds the columns of events that do not name them, ``metadata`` has what is known about streams instead of
their events. ``options`` has the options of all.
"""

from .bad_records import CORRUPT_TYPES, corrupt_names, decode
from .columns import (
    VALUE,
    Decoder,
    RowBuilder,
    decoded_fields,
    schema_ids,
    schema_ids_of,
    serializer_of,
    with_never_null,
    with_schema_ids,
)
from .inference import columns_in, sampled_columns
from .metadata import MetadataReader, metadata_columns
from .options import CORRUPT_RECORD, METADATA_COLUMNS, SourceOptions
from .positions import Positions
from .readers import BrokenStreamReader, PravegaBatchReader, PravegaStreamReader, batch_reader, require_streams

__all__ = [
    "CORRUPT_RECORD",
    "CORRUPT_TYPES",
    "METADATA_COLUMNS",
    "VALUE",
    "BrokenStreamReader",
    "Decoder",
    "MetadataReader",
    "Positions",
    "PravegaBatchReader",
    "PravegaStreamReader",
    "RowBuilder",
    "SourceOptions",
    "batch_reader",
    "columns_in",
    "corrupt_names",
    "decode",
    "decoded_fields",
    "metadata_columns",
    "require_streams",
    "sampled_columns",
    "schema_ids",
    "schema_ids_of",
    "serializer_of",
    "with_never_null",
    "with_schema_ids",
]
