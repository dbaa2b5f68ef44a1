"""The Spark source: batch and streaming reads of a stream.

``readers`` is what Spark calls, and reads the rows of a partition. For the driver ``streams`` finds the streams to
read, ``positions`` their beginnings and ends, ``planner`` the end of the next micro-batch within the limits that
``admission`` keeps; ``offsets`` is its form in the checkpoint, ``progress`` what others are told of it. ``columns``
makes record batches of events, with ``registry`` where a schema registry describes them, ``bad_records`` treats those
that cannot be decoded, and ``data_loss`` what is gone.
``inference`` finds the columns of events that do not name them, ``metadata`` has what is known about streams instead of
their events. ``options`` has the options of all. Each is loaded when one of its names is asked for: a process that
plans needs others than one that reads.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.spark.source.bad_records import CORRUPT_TYPES as CORRUPT_TYPES
    from pravega_connector.spark.source.bad_records import corrupt_names as corrupt_names
    from pravega_connector.spark.source.bad_records import decode as decode
    from pravega_connector.spark.source.bounds import Positions as Positions
    from pravega_connector.spark.source.columns import VALUE as VALUE
    from pravega_connector.spark.source.columns import Decoder as Decoder
    from pravega_connector.spark.source.columns import RowBuilder as RowBuilder
    from pravega_connector.spark.source.columns import decoded_fields as decoded_fields
    from pravega_connector.spark.source.columns import schema_ids as schema_ids
    from pravega_connector.spark.source.columns import schema_ids_of as schema_ids_of
    from pravega_connector.spark.source.columns import serializer_of as serializer_of
    from pravega_connector.spark.source.columns import with_never_null as with_never_null
    from pravega_connector.spark.source.columns import with_schema_ids as with_schema_ids
    from pravega_connector.spark.source.inference import columns_in as columns_in
    from pravega_connector.spark.source.inference import sampled_columns as sampled_columns
    from pravega_connector.spark.source.metadata import MetadataReader as MetadataReader
    from pravega_connector.spark.source.metadata import metadata_columns as metadata_columns
    from pravega_connector.spark.source.options import CORRUPT_RECORD as CORRUPT_RECORD
    from pravega_connector.spark.source.options import METADATA_COLUMNS as METADATA_COLUMNS
    from pravega_connector.spark.source.options import SourceOptions as SourceOptions
    from pravega_connector.spark.source.readers import BrokenStreamReader as BrokenStreamReader
    from pravega_connector.spark.source.readers import PravegaBatchReader as PravegaBatchReader
    from pravega_connector.spark.source.readers import PravegaStreamReader as PravegaStreamReader
    from pravega_connector.spark.source.readers import batch_reader as batch_reader
    from pravega_connector.spark.source.streams import require_streams as require_streams
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "bad_records": "CORRUPT_TYPES corrupt_names decode",
            "bounds": "Positions",
            "columns": (
                "VALUE Decoder RowBuilder decoded_fields schema_ids schema_ids_of serializer_of with_never_null "
                "with_schema_ids"
            ),
            "inference": "columns_in sampled_columns",
            "metadata": "MetadataReader metadata_columns",
            "options": "CORRUPT_RECORD METADATA_COLUMNS SourceOptions",
            "readers": "BrokenStreamReader PravegaBatchReader PravegaStreamReader batch_reader",
            "streams": "require_streams",
        },
    )
