"""Local checkpoints that Spark writes without starting processes: the same files, and a second driver is found."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pravega_connector.spark.jvm.session import use_local_checkpoint_files

SECONDS = 120


@pytest.fixture
def session(jvm_session: SparkSession) -> SparkSession:
    own = jvm_session.newSession()
    assert use_local_checkpoint_files(own, True) is None
    return own


def run(session: SparkSession, checkpoint: Path) -> None:
    """Run a query of one or more batches with a checkpoint: it reads a new file."""
    source = checkpoint.with_name("source")
    source.mkdir(exist_ok=True)
    (source / f"{len(list(source.iterdir()))}.txt").write_text("line")
    frame = session.readStream.format("text").load(str(source))
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = writer.start()
    assert query.awaitTermination(SECONDS)


def files(checkpoint: Path) -> dict[str, int]:
    """Return the files and folders of a checkpoint's first batch, with their modes."""
    first = [each for each in checkpoint.rglob("*") if each.is_dir() or each.name in ("0", ".0.crc", "metadata")]
    return {str(each.relative_to(checkpoint)): each.stat().st_mode for each in first}


@pytest.fixture
def started(session: SparkSession, tmp_path: Path) -> Callable[[Callable[[], None]], list[str]]:
    """``started(call)`` returns the commands that the JVM starts during a call."""

    def started(call: Callable[[], None]) -> list[str]:
        flight = session._jvm.jdk.jfr
        recording = flight.Recording()
        recording.enable("jdk.ProcessStart").withoutStackTrace()
        recording.start()
        call()
        recording.stop()
        file = session._jvm.java.nio.file.Path.of(session._jvm.java.net.URI.create((tmp_path / "flight").as_uri()))
        recording.dump(file)
        recording.close()
        return [each.getString("command") for each in flight.consumer.RecordingFile.readAllEvents(file)]

    return started


def test_a_query_starts_no_process_for_its_checkpoint(
    spark: SparkSession, session: SparkSession, started: Callable[[Callable[[], None]], list[str]], tmp_path: Path
) -> None:
    usual, own = tmp_path / "usual", tmp_path / "own"
    commands = started(lambda: run(spark.newSession(), usual))
    assert any("chmod" in each and str(usual) in each for each in commands), "Hadoop has improved"
    commands = started(lambda: run(session, own))
    assert [each for each in commands if str(own) in each] == []
    assert files(own) == files(usual)
    run(spark.newSession(), own)  # either can continue the checkpoint of the other
    run(session, usual)


def test_a_second_driver_of_a_checkpoint_is_found(session: SparkSession, tmp_path: Path) -> None:
    """Each driver writes the offsets of a batch to a temporary file, which it renames to the same name."""
    path = session._jvm.org.apache.hadoop.fs.Path((tmp_path / "offsets").as_uri())
    managers = session._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

    def driver() -> Any:
        return managers.create(path, session._jsparkSession.sessionState().newHadoopConf())

    driver().mkdirs(path)
    batch = session._jvm.org.apache.hadoop.fs.Path(path, "7")
    first, second = (driver().createAtomic(batch, False) for _ in range(2))
    first.write(b"first")
    second.write(b"second")
    first.close()
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        second.close()
    assert (tmp_path / "offsets" / "7").read_bytes() == b"first"


def test_a_setting_of_the_user_stays(jvm_session: SparkSession) -> None:
    own = jvm_session.newSession()
    name = "fs.AbstractFileSystem.file.impl"
    own.conf.set(name, "com.example.Files")
    assert use_local_checkpoint_files(own, True) == f"{name} is com.example.Files"
    assert use_local_checkpoint_files(own, False) is None
    assert own.conf.get(name) == "com.example.Files"
