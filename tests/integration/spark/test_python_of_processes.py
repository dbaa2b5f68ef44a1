"""The Python that Spark starts: by default the first ``python3`` of the ``PATH``, with ``configure`` the program's."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.testing import InProcessPravega

ROOT = Path(__file__).parents[3]
SECONDS = 300
EVENTS = [b'{"id": %d}' % number for number in range(30)]

#: Application that reads and copies a stream, with column functions, in the Python of this program.
APPLICATION = """
import json, os, sys
from pyspark.sql import SparkSession
from pyspark_pravega import configure, from_pravega

uri, folder = sys.argv[1:]
builder = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    .config("spark.pravega.controller.uri", uri).config("spark.sql.warehouse.dir", folder + "/warehouse")
)
spark = configure(builder)
stream = spark.readStream.format("pravega").option("start_stream_cut", "earliest").load("shop/orders")
query = stream.select("event").writeStream.format("pravega").option("checkpointLocation", folder + "/checkpoint")
query.trigger(availableNow=True).start("shop/copy").awaitTermination()
rows = spark.read.format("pravega").load("shop/copy").select(from_pravega("event", "json", "id INT").alias("order"))
spark.sql("CREATE TEMP VIEW copied USING pravega OPTIONS (stream 'shop/copy')")
print(json.dumps({
    "ids": sorted(row.order.id for row in rows.collect()),
    "count": spark.sql("SELECT count(*) AS found FROM copied").first().found,
    "set": os.environ.get("PYSPARK_PYTHON"),
}))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Environment in which the first ``python3`` has no packages."""
    folder = tmp_path / "bin"
    folder.mkdir()
    bare = folder / "python3"
    version = ".".join(map(str, sys.version_info[:2]))
    bare.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python{version}" -S "$@"\n')
    bare.chmod(0o755)
    found = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "SPARK_HOME")}
    path = os.pathsep.join([str(folder), os.environ["PATH"]])
    return {**found, "PATH": path, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}


@pytest.mark.long
def test_configure_uses_the_python_of_the_program(environment: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "application.py"
    program.write_text(APPLICATION)
    with InProcessPravega() as pravega:
        with pravega.client() as client:
            client.create_stream("shop/orders", 2)
            client.create_stream("shop/copy", 2)
            with client.writer("shop/orders") as writer:
                writer.write_column(pa.array(EVENTS, pa.binary()), pa.array([str(i) for i in range(len(EVENTS))]))
        done = subprocess.run(
            [sys.executable, str(program), pravega.uri, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env=environment,
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"ids": list(range(len(EVENTS))), "count": len(EVENTS), "set": None}


@pytest.mark.long
def test_doctor_reports_a_python_without_the_package(environment: dict[str, str], tmp_path: Path) -> None:
    environment |= {"XDG_CONFIG_HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-c",
        "from pravega_connector.operations.cli import main; main()",
        "doctor",
        "--json",
        "--spark",
    ]
    with InProcessPravega() as pravega:
        with pravega.client() as client:
            client.create_stream("shop/orders", 2)
        for variable, found in (({}, "failed"), ({"PYSPARK_PYTHON": sys.executable}, "ok")):
            done = subprocess.run(
                [*command, "--controller", pravega.uri, "--master", "local[1]"],
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
                env=environment | variable,
                cwd=tmp_path,
            )
            checks = [
                each for each in json.loads(done.stdout)["checks"] if each["check"] in ("data source", "executor")
            ]
            source, executor = checks[:2]
            assert [source["check"], source["status"], executor["status"]] == ["data source", found, found], checks
            assert done.returncode == (1 if found == "failed" else 0)
            if found == "failed":
                assert source["values"]["python"] == str(tmp_path / "bin" / "python3")
                assert f"PYSPARK_PYTHON={sys.executable}" in source["remedy"]
