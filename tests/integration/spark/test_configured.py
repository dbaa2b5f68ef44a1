"""Sessions that ``configure`` made faster: the same results, and no process is left after a kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.spark.session import configure
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import StreamName
from tests.integration.spark._jvm import is_read_by_the_jvm
from tests.support.processes import kill_session, session_of
from tools import jvm

ROOT = Path(__file__).parents[3]
SECONDS = 300
LOCAL_FILES = "fs.AbstractFileSystem.file.impl"
EVENTS = [b"event %d" % number for number in range(30)]

#: Application that reads a stream, copies it exactly once, and leaves a query running until its input is closed.
APPLICATION = """
import json, sys
from pyspark.sql import SparkSession
from pyspark_pravega.session import configure

uri, folder = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    .config("spark.pravega.controller.uri", uri).config("spark.sql.warehouse.dir", folder + "/warehouse")
)
spark = configure(builder, jvm_reader=False)

def copy(name):
    stream = spark.readStream.format("pravega").option("start_stream_cut", "earliest").load("low/source")
    return stream.select("event").writeStream.format("pravega").option("checkpointLocation", folder + "/" + name)

for _ in range(2):
    copy("first").trigger(availableNow=True).start("low/copy").awaitTermination()
rows = spark.read.format("pravega").load("low/copy").collect()
running = copy("second").start("low/other")
running.processAllAvailable()
print(json.dumps({
    "events": sorted(bytes(row.event).decode() for row in rows),
    "settings": [spark.conf.get("spark.python.unix.domain.socket.enabled"),
                 spark.conf.get("spark.sql.execution.pandas.udf.buffer.size")],
}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def source(pravega: InProcessPravega) -> Iterator[StreamName]:
    """Stream with ``EVENTS``, and two empty ones."""
    with pravega.client() as client:
        for name in ("source", "copy", "other"):
            client.create_stream(f"low/{name}", 2)
        with client.writer("low/source") as writer:
            writer.write_column(pa.array(EVENTS, pa.binary()), pa.array([str(i) for i in range(len(EVENTS))]))
    return StreamName("low", "source")


@pytest.fixture
def application(pravega: InProcessPravega, source: StreamName, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    program = tmp_path / "application.py"
    program.write_text(APPLICATION)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment.pop("SPARK_HOME")  # the tests' home of Spark has no pyspark.zip
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(program), pravega.uri, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            cwd=tmp_path,
            text=True,
            start_new_session=True,
        )
    yield process
    kill_session(process.pid)
    process.wait(SECONDS)
    for file in (process.stdin, process.stdout):
        assert file is not None
        file.close()


def commands_of(application: subprocess.Popen[str]) -> dict[int, list[str]]:
    """Command lines of all processes of an application, by id."""
    commands = {}
    for pid in session_of(application.pid):
        try:
            commands[pid] = Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
        except (FileNotFoundError, ProcessLookupError):
            continue
    return commands


def started_modules(commands: dict[int, list[str]], first: str) -> set[str]:
    """Modules and their arguments, of Python processes with this first argument: proxies have ``-IS``."""
    those = [command for command in commands.values() if first in command[1:2] and "-m" in command]
    found = (command[command.index("-m") + 1 :] for command in those)
    return {" ".join(words) for words in found}


@pytest.mark.long
@pytest.mark.parametrize("killed", ["driver", "jvm"])
def test_an_application_uses_forks_and_leaves_none(application, tmp_path, eventually, killed):
    assert application.stdout is not None
    line = application.stdout.readline()
    assert line, (tmp_path / "errors").read_text()[-4000:]
    result = json.loads(line)
    assert result["events"] == sorted(event.decode() for event in EVENTS)
    assert result["settings"] == ["true", str(1 << 20)]

    commands = commands_of(application)
    proxied, usual = started_modules(commands, "-IS"), started_modules(commands, "-m")
    assert "pyspark.sql.streaming.python_streaming_source_runner" in proxied
    assert {f"pyspark.daemon pyspark.{name}" for name in ("worker", "sql.worker.create_data_source")} <= proxied
    assert {name.split()[-1] for name in usual if name.startswith("pyspark.")} <= {
        "pyspark.sql.worker.lookup_data_sources"
    }, "only the search for data sources starts without the server"
    assert "pravega_connector.spark.fork_server.server" in {name.split()[0] for name in usual}

    (jvm,) = (pid for pid, command in commands.items() if command[0].endswith("java"))
    if killed == "jvm":
        os.kill(jvm, signal.SIGKILL)
        # The driver and the server, which ends with it.
        eventually(lambda: not started_modules(commands_of(application), "-IS"))
        assert application.stdin is not None
        application.stdin.close()
    else:
        application.kill()
    eventually(lambda: not commands_of(application))
    folders = [Path(command[2]).parent for command in commands.values() if command[1:2] == ["-IS"]]
    assert folders
    assert not any(folder.exists() for folder in folders)


def test_without_arguments_the_jvm_reads_until_it_is_switched_off(spark, pravega, source):
    assert jvm.main() == 0, "the tests need a JDK"
    session = spark.newSession()

    def frame() -> DataFrame:
        return session.read.format("pravega").load(str(source))

    configure(session, pravega.config)
    assert is_read_by_the_jvm(frame())
    assert frame().count() == len(EVENTS)
    assert session.conf.get(LOCAL_FILES) == "pravegaserde.spark.LocalCheckpointFs"
    configure(session, pravega.config, local_checkpoint_files=False)
    assert is_read_by_the_jvm(frame())
    assert session.conf.get(LOCAL_FILES, None) is None
    configure(session, pravega.config)
    configure(session, pravega.config, jvm_reader=False)
    assert not is_read_by_the_jvm(frame())
    assert session.conf.get(LOCAL_FILES, None) is None
    assert frame().count() == len(EVENTS)


def test_a_running_session_reads_and_writes_the_same(spark, pravega, source, caplog):
    with caplog.at_level("INFO", logger="pravega_connector.spark"):
        session = configure(spark.newSession(), pravega.config, jvm_reader=False)
    (record,) = caplog.records
    assert record.getMessage().startswith("this Spark session does without: unix domain sockets (")
    usual = configure(spark.newSession(), pravega.config, jvm_reader=False, fork_server=False, unix_sockets=False)

    def events(of: SparkSession, name: str) -> list[bytes]:
        return sorted(bytes(row.event) for row in of.read.format("pravega").load(f"low/{name}").collect())

    assert events(session, "source") == events(usual, "source") == sorted(EVENTS)
    session.read.format("pravega").load("low/source").select("event").write.format("pravega").mode("append").save(
        "low/copy"
    )
    assert events(usual, "copy") == sorted(EVENTS)
    assert session.conf.isModifiable("spark.sql.execution.pandas.udf.buffer.size")
    assert not session.conf.isModifiable("spark.python.unix.domain.socket.enabled")
    with pytest.raises(Exception, match=r"PRAVEGA-STREAM-NOT-FOUND") as raised:
        events(session, "absent")
    with pytest.raises(Exception, match=r"PRAVEGA-STREAM-NOT-FOUND") as expected:
        events(usual, "absent")
    texts = [str(each.value).partition("[PRAVEGA-STREAM-NOT-FOUND]")[2].splitlines()[0] for each in (raised, expected)]
    assert texts[0] == texts[1] != ""
