"""docs/spark/sql.md with Spark Connect and Declarative Pipelines, and Spark Connect of 3.5, each in a separate JVM."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.maven import Jar
from pravega_connector.spark.versions import VERSION
from pravega_connector.wire import StreamName
from pravega_serde import serializer_for
from tests.integration.spark._pages import sections

# A free port for the Connect server instead of its usual one.
ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
ROOT = Path(__file__).parents[3]
SECONDS = 250
DEFAULT = "tcp://localhost:9090"
pytestmark = pytest.mark.long
#: Server of Spark Connect, which is not part of PySpark 3.5.
CONNECT = JarSet(
    "spark-connect",
    "3.5.7",
    (
        Jar(
            "org.apache.spark",
            "spark-connect_2.12",
            "3.5.7",
            "",
            "jar",
            "15366e21273a874c760b51fa00743a2acb8fa78642cc35d7a076a3ade0c5eef6",
            14147901,
        ),
    ),
)
OF_3_5 = """
import sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import struct
from pravega_connector.errors import UnsupportedModeError
from pyspark_pravega import configure, from_pravega, read, register_functions, to_pravega, write

controller, stream = sys.argv[1:]
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = spark.range(10).selectExpr("id", "CAST(id AS STRING) AS name")
events = rows.select(to_pravega(struct("id", "name"), "json").alias("event"))
for _ in range(2):
    once = {"writer_mode": "exactly_once", "txn_app_id": "job", "txn_version": 0}
    write(events, stream, controller=controller, **once)
typed = read(spark, stream, controller=controller, format="json", schema="id BIGINT")
print("typed", sorted(row.id for row in typed.collect()))
raw = read(spark, stream, controller=controller)
row = from_pravega("event", "json", "name STRING").alias("row")
print("decoded", sorted(row.name for row in raw.select(row).select("row.*").collect()))
for name, call in (("configure", configure), ("register_functions", register_functions)):
    try:
        call(spark)
    except UnsupportedModeError as error:
        print(name, error)
try:
    spark.read.format("pravega").load(stream).collect()
except PySparkException as error:
    print("format", str(error).splitlines()[0])
"""


def run(*command: object, cwd: Path, **more: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=ENVIRONMENT | more,
        timeout=SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def test_spark_connect(config: PravegaConfig, client: PravegaClient, tmp_path: Path):
    ((_, example),) = sections("spark/sql.md")["Spark Connect"]
    program = tmp_path / "program.py"
    program.write_text(example.replace(DEFAULT, config.controller))
    said = run(sys.executable, "-W", "ignore", program, cwd=tmp_path)
    shown = re.findall(r"^print.*# (.*)$", example, re.MULTILINE)
    assert len(shown) == 2
    assert [line for line in said.splitlines() if line.startswith("[Row(")] == shown
    assert sorted(json.loads(event)["id"] for event in client.read("connect/copies")) == [1, 2]


@pytest.mark.skipif(VERSION >= (4, 0), reason="the page has the example of later versions")
def test_spark_connect_of_3_5(config: PravegaConfig, client: PravegaClient, stream_name: StreamName, tmp_path: Path):
    client.create_stream(stream_name, 2)
    (tmp_path / "program.py").write_text(OF_3_5)
    (jar,) = ensure_jars(CONNECT).glob("*.jar")
    submit = f"--conf spark.ui.showConsoleProgress=false --jars {jar} pyspark-shell"
    command = [sys.executable, "-W", "ignore", "program.py", config.controller, stream_name]
    said = run(*command, cwd=tmp_path, PYSPARK_SUBMIT_ARGS=submit, PYTHONPATH=str(ROOT))
    numbers = list(range(10))
    assert f"typed {numbers}\n" in said
    assert f"decoded {[str(number) for number in numbers]}\n" in said
    assert re.search(r"^configure \[PRAVEGA-UNSUPPORTED-MODE\].*docs/spark/spark-3.5.md", said, re.MULTILINE)
    assert re.search(r"^register_functions \[PRAVEGA-UNSUPPORTED-MODE\].*use from_pravega", said, re.MULTILINE)
    assert re.search(r"^format .*DATA_SOURCE_NOT_FOUND", said, re.MULTILINE)


def test_declarative_pipelines(config: PravegaConfig, client: PravegaClient, tmp_path: Path):
    blocks = dict(sections("spark/sql.md")["Declarative Pipelines"])
    spec = blocks["yaml"].replace("file:///var/lib/orders", (tmp_path / "storage").as_uri())
    (tmp_path / "spark-pipeline.yml").write_text(spec.replace(DEFAULT, config.controller))
    (tmp_path / "transformations").mkdir()
    (tmp_path / "transformations" / "orders.py").write_text(blocks["python"])
    (tmp_path / "transformations" / "items.sql").write_text(blocks["sql"])
    client.create_stream("pipeline/orders")
    command = Path(sys.executable).with_name("spark-pipelines")
    with client.writer("pipeline/orders", serializer_for("json")) as writer:
        for i, item in enumerate(("tea", "milk", "tea")):
            writer.write({"id": i, "item": item}, routing_key=item)
    said = run(command, "run", "--spec", "spark-pipeline.yml", cwd=tmp_path)
    assert "Run is COMPLETED" in said
    assert [json.loads(event)["id"] for event in client.read("pipeline/teas")] == [0, 2]
