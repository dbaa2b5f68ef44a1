"""``format("pravega")``: the class that Spark creates from the options of a read or a write.

Spark imports this module in all its Python processes, also in the process that discovers data sources. A read does not
load the sink, and a write does not load the source.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from pravega_connector.spark.boundary import called_by_spark, is_spark_process
from pravega_connector.spark.versions import DataSource

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pravega_connector.rows.columns import Decoder
    from pravega_connector.rows.encoding import EventEncoder
    from pravega_connector.rows.options.sink import SinkOptions
    from pravega_connector.rows.options.source import SourceOptions
    from pravega_connector.spark.reading import Reading
    from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter
    from pravega_connector.spark.source.metadata import MetadataReader
    from pravega_connector.spark.source.readers import BrokenStreamReader, PravegaBatchReader, PravegaStreamReader
    from pravega_connector.spark.tables.reader import TableReader
    from pravega_connector.spark.tables.writer import TableBatchWriter, TableStreamWriter
    from pravega_connector.spark.writing import Writing

_log: Final = logging.getLogger(__name__)


@called_by_spark("__init__", "schema", "reader", "streamReader", "writer", "streamWriter")
class PravegaDataSource(DataSource):  # type: ignore[misc]
    """Data source that reads and writes Pravega streams and key-value tables.

    ``spark.read.format("pravega").load("scope/stream")``; see SourceOptions and SinkOptions for the options. For a
    table, see TableSourceOptions and TableSinkOptions.
    """

    #: Options of the session: they apply to every read and write, unless it or its table sets them.
    defaults: ClassVar[Mapping[str, str]] = {}
    #: True in a session for which ``configure`` was called.
    is_configured: ClassVar[bool] = False

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        if not self.is_configured:
            _note_missing_call()

    @classmethod
    def name(cls) -> str:
        """Name of the format."""
        return "pravega"

    def schema(self) -> StructType:
        """Return the columns of a read without ``.schema(…)``.

        Raises StreamNotFoundError, TableNotFoundError, ControllerUnavailableError.
        """
        return self._reading().schema()

    def reader(self, schema: StructType) -> PravegaBatchReader | MetadataReader | TableReader:
        """Return the reader of a batch query."""
        return self._reading().reader(schema)

    def streamReader(self, schema: StructType) -> PravegaStreamReader | BrokenStreamReader:
        """Return the reader of a streaming query."""
        return self._reading().stream_reader(schema)

    def writer(self, schema: StructType, overwrite: bool) -> PravegaBatchWriter | TableBatchWriter:
        """Return the writer of a batch query.

        Raises ColumnTypeError, StreamNotFoundError, TableNotFoundError before any task starts.
        """
        return self._writing().writer(schema, overwrite)

    def streamWriter(
        self,
        schema: StructType,
        overwrite: bool,
    ) -> PravegaStreamWriter | TableStreamWriter:
        """Return the writer of a streaming query. In complete mode, each micro-batch writes the whole result."""
        return self._writing().stream_writer(schema)

    def table_of(self, schema: StructType) -> str | None:
        """Return the key-value table that a read with these columns names; None if it reads streams."""
        return self._reading().table_of(schema)

    def source_options(self, schema: StructType) -> SourceOptions:
        """Return the options of a read of streams with these columns; a SQL table has options in them."""
        return self._reading().source_options(schema)

    def reader_arguments(self, schema: StructType) -> tuple[SourceOptions, pa.Schema, Decoder]:
        """Return the options, the Arrow schema and the serializer of a reader. Raises the errors of a read."""
        return self._reading().arguments(schema)

    def sink_options(self, schema: StructType) -> SinkOptions | None:
        """Return the options of a write of these columns to streams; None if it names a key-value table."""
        return self._writing().sink_options(schema)

    def writer_arguments(self, schema: StructType, *, streaming: bool) -> tuple[SinkOptions, EventEncoder]:
        """Return the options and the encoder of a writer. Raises the errors of a write."""
        return self._writing().arguments(schema, streaming=streaming)

    def _reading(self) -> Reading:
        from pravega_connector.spark.reading import Reading  # noqa: PLC0415 - a write does not load the source

        return Reading(self.options, self.defaults)

    def _writing(self) -> Writing:
        from pravega_connector.spark.writing import Writing  # noqa: PLC0415 - a read does not load the sink

        return Writing(self.options, self.defaults)


def _note_missing_call() -> None:
    """Log once for an application that ``configure`` was not called in the session: its JVM shows it to the user.

    Spark Connect has only the defaults of this call, so there is no line.
    """
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    if not folder or os.environ.get("SPARK_JOB_ARTIFACT_UUID") != "default" or not is_spark_process():
        return
    try:  # the application deletes the folder when it ends
        os.close(os.open(os.path.join(folder, "pravega-not-configured"), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError:
        return
    _log.warning(
        "format('pravega') works without the JVM reader, fork server, unix domain sockets and local checkpoint files "
        "in this Spark session: create it with pyspark_pravega.configure(SparkSession.builder), or call "
        "configure(spark)"
    )
