"""Jobs that write in ``foreachBatch``, with the sink, and by the JVM, killed at random: no row is lost or repeated.

The environment variable ``KILLS`` sets another number of kills: ``KILLS=10 ./run test-spark 4.0 -k random_kills``.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.spark.versions import HAS_JVM_WRITER, VERSION
from pravega_connector.wire import StreamName
from tests.conftest import StartProcess
from tools import jvm

KILLS = int(os.environ.get("KILLS", "3"))
FILES, LINES = 12 * KILLS, 25
#: Arguments: the controller, the target stream, and a folder with the source and the checkpoint.
PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark_pravega import write

controller, target, folder = sys.argv[1:]

def save(batch, number):
    write(batch, target, controller=controller, writer_mode="exactly_once", txn_app_id="job", txn_version=number)

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false").getOrCreate()
lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(folder + "/source").repartition(2)
query = lines.selectExpr("value AS event", "value AS routing_key").writeStream.foreachBatch(save)
query.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start().awaitTermination()
"""
#: The same by the sink, with the writer of the last argument.
SINK = """
import sys
from pyspark.sql import SparkSession
from pyspark_pravega import configure

controller, target, folder, raw_writer = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = configure(builder.config("spark.log.level", "ERROR").config("spark.ui.showConsoleProgress", "false"))
lines = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(folder + "/source").repartition(2)
query = lines.selectExpr("value AS event", "value AS routing_key").writeStream.format("pravega")
query = query.options(controller=controller, raw_writer=raw_writer, checkpointLocation=folder + "/checkpoint")
query.trigger(availableNow=True).start(target).awaitTermination()
"""


@pytest.mark.long
@pytest.mark.timeout(2000 + 300 * KILLS)
@pytest.mark.parametrize(
    "raw_writer",
    [
        pytest.param(None, id="foreachBatch"),
        pytest.param("python", marks=pytest.mark.skipif(VERSION < (4, 0), reason="no Python sink in this Spark")),
        pytest.param("jvm", marks=pytest.mark.skipif(not HAS_JVM_WRITER, reason="no JVM writer for this Spark")),
    ],
)
def test_random_kills_lose_and_repeat_nothing(
    client: PravegaClient,
    config: PravegaConfig,
    stream_name: StreamName,
    start_process: StartProcess,
    tmp_path: Path,
    raw_writer: str | None,
) -> None:
    source, commits = tmp_path / "source", tmp_path / "checkpoint" / "commits"
    source.mkdir()
    for file in range(FILES):
        (source / str(file)).write_text("\n".join(str(file * LINES + line) for line in range(LINES)))
    client.create_stream(stream_name, 2)
    if raw_writer == "jvm":
        assert jvm.main() == 0, "the JVM writer needs a JDK"

    def committed() -> int:
        return sum(each.name.isdigit() for each in commits.glob("*")) if commits.exists() else 0

    def start() -> subprocess.Popen[Any]:
        program = ["-c", PROGRAM] if raw_writer is None else ["-c", SINK]
        command = [*program, config.controller, stream_name, tmp_path, *filter(None, [raw_writer])]
        return start_process(command, {"PYSPARK_PYTHON": sys.executable}, start_new_session=True)

    chance = random.Random(seed := random.randrange(10**6))
    for _ in range(KILLS):
        job, before = start(), committed()
        while committed() == before:
            assert job.poll() is None, f"the job has ended by itself, seed {seed}"
            time.sleep(0.02)
        time.sleep(chance.uniform(0, 2))  # a random moment of the batches that follow
        assert job.poll() is None, f"there are too few files for {KILLS} kills"
        os.killpg(job.pid, signal.SIGKILL)  # the driver, its JVM and its workers
        job.wait(timeout=60)
    assert start().wait(timeout=600 + 100 * KILLS) == 0, f"seed {seed}"
    found = Counter(int(bytes(event)) for event in client.read(stream_name))
    lost = set(range(FILES * LINES)) - found.keys()
    repeated = [number for number, count in found.items() if count > 1]
    assert (lost, repeated) == (set(), []), f"seed {seed}"
