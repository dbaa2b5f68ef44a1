"""Local checkpoints that Spark writes without starting processes: the same files, and a second driver is found."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from pravega_connector.spark.jvm.session import use_local_checkpoint_files
from tests.conftest import StartProcess
from tools import jvm

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


#: Program that runs queries on a checkpoint as Spark does and on another one with local files, and then the other way.
PROGRAM = """
import sys
from pathlib import Path
from pravega_connector.spark.jvm.session import use_jvm_reader, use_local_checkpoint_files
from tests.integration.spark.test_checkpoint_files import run
from tests.support.spark_session import spark_session

usual, own = map(Path, sys.argv[1:])
spark = spark_session(usual.parent)
assert use_jvm_reader(spark)
session = spark.newSession()
assert use_local_checkpoint_files(session, True) is None
run(spark.newSession(), usual)
run(session, own)
log = Path(usual.parent, "commands")
before = log.read_text()
run(spark.newSession(), own)  # either can continue the checkpoint of the other
run(session, usual)
log.write_text(before)
"""
#: Command in front of the system's one of the same name, which notes its arguments.
COMMAND = """#!/bin/sh
echo "$0 $*" >> {log}
exec {real} "$@"
"""


def test_a_query_starts_no_process_for_its_checkpoint(start_process: StartProcess, tmp_path: Path) -> None:
    assert jvm.main() == 0, "the test needs a JDK"
    usual, own, commands = tmp_path / "usual", tmp_path / "own", tmp_path / "commands"
    (folder := tmp_path / "bin").mkdir()
    for name in ("chmod", "readlink", "stat", "ls"):
        (folder / name).write_text(COMMAND.format(log=commands, real=shutil.which(name)))
        (folder / name).chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    process = start_process(["-c", PROGRAM, usual, own], {"PATH": path}, cwd=tmp_path)
    assert process.wait(timeout=SECONDS) == 0
    lines = commands.read_text().splitlines()
    assert any("chmod" in line and str(usual) in line for line in lines), "Hadoop has improved"
    assert [line for line in lines if str(own) in line] == []
    assert files(own) == files(usual)


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
