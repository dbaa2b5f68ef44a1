"""The program in docs/spark/event-time.md does what it says."""

import re
from pathlib import Path

from pyspark.sql import SparkSession

from pravega_connector.config import PravegaConfig

PAGE = Path(__file__).parents[3] / "docs" / "spark/event-time.md"


def test_the_examples_run_as_they_stand(spark: SparkSession, config: PravegaConfig) -> None:
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    assert program.count("assert ") >= 3
    exec(compile(program, str(PAGE), "exec"), {"spark": spark, "controller": config.controller})
