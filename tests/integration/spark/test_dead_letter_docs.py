"""The program in docs/spark/dead-letter-queue.md does what it says."""

import re
from pathlib import Path

from pyspark.sql import SparkSession

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig

PAGE = Path(__file__).parents[3] / "docs" / "spark/dead-letter-queue.md"


def test_the_examples_run_as_they_stand(
    spark: SparkSession, config: PravegaConfig, client: PravegaClient, tmp_path: Path
):
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    assert program.count("assert ") >= 5
    names = {"spark": spark, "client": client, "controller": config.controller, "folder": tmp_path}
    exec(compile(program, str(PAGE), "exec"), names)
    letters = [line for path in (tmp_path / "dead").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert len(letters) == 2
