"""A module ``connector`` of the user's, next to the script that starts Spark, which Python then finds before ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.wire import StreamName

ROOT = Path(__file__).parents[3]
THEIRS = "def length(event): return len(event)\n"
JOB = """
import sys
import connector
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
uri, source, target, checkpoint = sys.argv[1:]
length = udf(connector.length, "int")
stream = spark.readStream.format("pravega").option("controller", uri)
events = stream.option("start_stream_cut", "earliest").load(source)
query = (
    events.withColumn("event", length("event").cast("string").cast("binary")).select("event")
    .writeStream.format("pravega").option("controller", uri).option("path", target).option("routing_key", "k")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
query.awaitTermination()
print(spark.read.format("pravega").option("controller", uri).load(target).count())
spark.stop()
"""


@pytest.mark.long
def test_the_format_works_next_to_it(
    client: PravegaClient, config: PravegaConfig, stream_name: StreamName, tmp_path: Path
) -> None:
    (tmp_path / "connector.py").write_text(THEIRS)
    (tmp_path / "job.py").write_text(JOB)
    target = StreamName(stream_name.scope, f"{stream_name.stream}-lengths")
    for name in (stream_name, target):
        client.create_stream(name)
    with client.writer(stream_name) as writer:
        for size in range(100):
            writer.write(b"x" * size)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    arguments = [config.controller, str(stream_name), str(target), str(tmp_path / "checkpoint")]
    command = [sys.executable, "job.py", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.split() == ["100"]
    assert sorted(int(event) for event in client.read(target)) == list(range(100))
