"""A driver that is killed inside a batch: the batch is read again byte for byte, through any changes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName

# Writes what each batch holds, by task, to a file; in one batch it then kills the driver, Python and JVM.
DRIVER = """
import json, os, signal, sys, warnings
warnings.simplefilter("ignore")
from pathlib import Path
from pyspark.sql import SparkSession

controller, path, checkpoint, out, master, kill_at, options = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
spark = builder.config("spark.sql.shuffle.partitions", "1").getOrCreate()
jvm = spark._jvm.java.lang.ProcessHandle.current().pid()

def keep(batch, number):
    rows = batch.selectExpr("spark_partition_id()", "stream", "segment_id", "offset", "hex(event)").collect()
    Path(out, str(number)).write_text(json.dumps(sorted(map(list, rows))))
    if number == int(kill_at):
        os.kill(jvm, signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

reader = spark.readStream.format("pravega").options(controller=controller, **json.loads(options))
writer = reader.load(path).writeStream.foreachBatch(keep).option("checkpointLocation", checkpoint)
writer.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""

Start = Callable[..., subprocess.Popen[str]]


def write(client: PravegaClient, stream: StreamName, first: int, last: int) -> None:
    with client.writer(stream) as writer:
        for n in range(first, last):
            writer.write(b"%d " % n + b"x" * (n % 50), routing_key=str(n % 100))


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_batch_is_the_same_after_a_kill(
    client: PravegaClient, config: PravegaConfig, stream_name: StreamName, start_python: Start, tmp_path: Path
):
    client.create_stream(stream_name, 2)
    write(client, stream_name, 0, 3000)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()

    def run(out: Path, master: str, kill_at: int, code: int, **options: str) -> None:
        options = {"start_stream_cut": "earliest"} | options
        arguments = [config.controller, stream_name, tmp_path / "checkpoint", out, master, kill_at, json.dumps(options)]
        process = start_python(DRIVER, *arguments)
        _, said = process.communicate(timeout=500)
        assert process.returncode == code, said

    run(first, "local[2]", 1, -9, max_rows_per_trigger="1000", min_partitions="5")
    assert sorted(path.name for path in first.iterdir()) == ["0", "1"]
    current = client.controller.current_segments(stream_name)
    client.controller.scale_stream(stream_name, [r.id for r in current], [(0.0, 0.3), (0.3, 1.0)])
    write(client, stream_name, 3000, 4000)
    run(second, "local[1]", -1, 0, max_bytes_per_trigger="100000", discovery_interval_ms="500")
    again, killed = (second / "1").read_text(), (first / "1").read_text()
    assert again == killed, "rows, and the tasks that they are in"
    assert len({row[0] for row in json.loads(killed)}) >= 5, "min_partitions was to divide the segments"
    assert not (second / "0").exists(), "the batch that was done is not read again"
    rows = [row for path in [first / "0", *second.iterdir()] for row in json.loads(path.read_text())]
    numbers = [int(bytes.fromhex(row[4]).split()[0]) for row in rows]
    assert sorted(numbers) == list(range(4000))
