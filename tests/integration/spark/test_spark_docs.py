"""The program in docs/spark/read-and-write.md does what it says."""

import re
from pathlib import Path

from pyspark.sql import SparkSession

from pravega_connector.config import PravegaConfig
from pravega_connector.spark.data_source import PravegaDataSource

PAGE = Path(__file__).parents[3] / "docs" / "spark/read-and-write.md"


def test_the_examples_run_as_they_stand(spark: SparkSession, config: PravegaConfig):
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    assert program.count("assert ") >= 3
    program = program.replace("tcp://localhost:9090", config.controller)
    try:
        exec(compile(program, str(PAGE), "exec"), {"spark": spark, "controller": config.controller})
    finally:
        spark.conf.unset("spark.pravega.controller.uri")
        spark.dataSource.register(PravegaDataSource)
