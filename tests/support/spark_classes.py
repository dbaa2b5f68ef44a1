"""Archive of Spark's classes. A JVM maps it, instead of finding, parsing and checking each class again.

With the archive, a session with a few queries used 7.1 s of a core instead of 12.4 s.
``python -m tests.support.spark_classes`` creates it once for each Spark and Java, which takes a minute. ``./run test``
does this. Without the archive, the tests only take longer.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.support.jvm import SOON_READY
from tests.support.spark_home import spark_home

__all__ = ["class_options"]

_SECONDS = 600
# One query of each kind in the tests. Other classes are loaded from the jars.
_PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pravega_connector.testing import InProcessPravega

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.shuffle.partitions", "1").config("spark.sql.warehouse.dir", sys.argv[1] + "/tables")
with builder.getOrCreate() as spark, InProcessPravega() as server, server.client() as client:
    numbers = spark.range(9).selectExpr("CAST(id AS STRING) AS event", "CAST(id % 3 AS STRING) AS routing_key")
    numbers.groupBy("routing_key").count().orderBy("count").write.parquet(sys.argv[1] + "/counts")
    spark.createDataFrame([(1, "a")], "number INT, text STRING").createOrReplaceTempView("rows")
    spark.sql("SELECT number, upper(text) FROM rows WHERE number > 0").collect()
    numbers.mapInArrow(lambda batches: batches, numbers.schema).collect()
    address = {"controller": server.uri}
    if not hasattr(spark, "dataSource"):  # Spark 3.5
        sys.exit()
    options = {**address, "columns": "event", "start_stream_cut": "earliest"}
    for stream in ("a/source", "a/target"):
        client.create_stream(stream, 2)
    numbers.write.format("pravega").options(**address).mode("append").save("a/source")
    events = spark.readStream.format("pravega").options(**options).load("a/source")
    copy = events.writeStream.format("pravega").options(**address, checkpointLocation=sys.argv[1] + "/1")
    copy.trigger(availableNow=True).start("a/target").awaitTermination()
    each = events.writeStream.foreachBatch(lambda batch, number: batch.count())
    each.option("checkpointLocation", sys.argv[1] + "/2").trigger(availableNow=True).start().awaitTermination()
    assert spark.read.format("pravega").options(**options).load("a/target").count() == 9
"""


def class_options() -> Sequence[str]:
    """Return the options of a JVM that runs Spark, or none without an archive."""
    archive = _archive()
    if archive is None or not archive.exists():
        return ()
    # No warnings about another class path, for example of an application with extra jars.
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off", "-Xlog:class+path=off")


def _archive() -> Path | None:
    """Return the path of the archive, or None without Spark or Java.

    A JVM does not accept the archive of other jars or of another Java.
    """
    home, java = spark_home(), _java()
    if home is None or java is None:
        return None
    jars = (home / "jars").stat().st_mtime_ns
    of = f"{home} {jars} {java} {java.stat().st_mtime_ns}".encode()
    return home.with_name(f"spark-classes-{version('pyspark')}-{zlib.crc32(of):08x}.jsa")


def _java() -> Path | None:
    """Return the Java launcher that Spark uses."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home, "bin/java")) if home else "java")
    return None if found is None else Path(found).resolve()


def _make(home: Path, java: Path, archive: Path, folder: Path) -> None:
    classes = folder / "classes"
    listing = ("-Xshare:off", f"-XX:DumpLoadedClassList={classes}")
    environment = {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": " ".join((*SOON_READY, *listing)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    _run([sys.executable, "-c", _PROGRAM, str(folder)], environment)
    # The class path of Spark's launcher.
    first = sorted(map(str, (home / "jars").glob("slf4j-api-*.jar")))
    path = os.pathsep.join([str(home / "conf"), *first, f"{home}/jars/*"])
    made = folder / archive.name
    files = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={made}")
    _run([str(java), *SOON_READY, "-Xshare:dump", "-Xlog:disable", *files, "-cp", path], {})
    made.rename(archive)


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=_SECONDS,
        check=True,
    )


def main() -> None:
    home, java, archive = spark_home(), _java(), _archive()
    if home is None or java is None or archive is None or archive.exists():
        return
    print("Making an archive of Spark's classes, which takes a minute, once", file=sys.stderr)
    for old in archive.parent.glob("spark-classes-*.jsa"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        try:
            _make(home, java, archive, Path(folder))
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            print(f"no archive, the tests take longer: {error}: {said[-500:]!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
