"""docs/spark/sql.md with Spark Connect and Declarative Pipelines, each in a separate JVM."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_serde import serializer_for
from tests.integration.spark._pages import sections

# A free port for the Connect server instead of its usual one.
ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_TESTING": "1"}
SECONDS = 250
DEFAULT = "tcp://localhost:9090"
pytestmark = pytest.mark.long


def run(*command: object, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=ENVIRONMENT, timeout=SECONDS, capture_output=True, text=True, check=False
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
