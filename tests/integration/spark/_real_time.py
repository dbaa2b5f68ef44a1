"""A query from a stream to a file, row by row, in Spark's real-time mode or with another trigger."""

import json
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from pravega_connector.wire import StreamName
from tools import jvm

#: Far longer than a test: what arrives has not waited for the end of a batch.
ENDLESS: Final = {"realTime": "30 minutes"}
#: The shortest batch that Spark accepts.
SHORT: Final = {"realTime": "5 seconds"}


def load_sink(session: SparkSession, folder: Path) -> None:
    """Compile RowsInFile, and load it in a session. A writer in Python would get its rows at the end of a batch."""
    javac, source = str(jvm.compiler()), Path(__file__).with_name("RowsInFile.java")
    jars = Path(pyspark.__file__).with_name("jars")
    subprocess.run([javac, "-nowarn", "-cp", f"{jars}/*", "-d", folder, source], check=True, capture_output=True)
    with zipfile.ZipFile(folder / "sink.jar", "w") as jar:
        for each in folder.rglob("*.class"):
            jar.write(each, each.relative_to(folder))
    session.sql(f"ADD JAR '{folder / 'sink.jar'}'")


class Run:
    """Query from the source to a file, with one checkpoint for all its runs."""

    def __init__(self, session: SparkSession, options: Mapping[str, object], source: StreamName, folder: Path) -> None:
        self.session, self.options, self.source, self.folder = session, options, source, folder
        self.file = folder / "rows"
        self.file.touch()
        self.queries: list[StreamingQuery] = []

    def start(
        self,
        trigger: dict[str, Any],
        session: SparkSession | None = None,
        expressions: Sequence[str] = ("CAST(event AS STRING) event", "* EXCEPT (event)"),
        **options: object,
    ) -> StreamingQuery:
        """Start the query. One of the ``expressions`` is ``event``."""
        frame = (session or self.session).readStream.format("pravega").options(**self.options)
        frame = frame.option("start_stream_cut", "earliest").options(**options).load(str(self.source))
        writer = frame.selectExpr(*expressions).writeStream.outputMode("update")
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint")).trigger(**trigger)
        sink = self.session.sparkContext._jvm.pravegaserde.tests.RowsInFile(str(self.file))
        writer._jwrite = writer._jwrite.foreach(sink)
        self.queries.append(writer.start())
        return self.queries[-1]

    @property
    def rows(self) -> list[tuple[int, dict[str, Any]]]:
        """Batch and row, in the order in which they have arrived."""
        return [tuple(json.loads(line)) for line in self.file.read_text().rpartition("\n")[0].splitlines()]

    @property
    def events(self) -> list[str]:
        return [row["event"] for _, row in self.rows]

    def is_committed(self) -> bool:
        """Return True if all rows are in batches that are over."""
        last = self.queries[-1].lastProgress
        return last is not None and last["batchId"] >= max(batch for batch, _ in self.rows)
