"""An older Spark: the package can be imported, and a use that it does not allow raises the error with the version."""

import subprocess
import sys

import pytest

#: Program with the PySpark of a version, and the parts that it lacks.
PROGRAM = """
import sys
import pyspark
from pyspark.sql import functions
from pyspark.sql.pandas import types

pyspark.__version__ = sys.argv[1]
if sys.argv[1] < "4.1" and hasattr(functions, "arrow_udf"):
    del functions.arrow_udf
if sys.argv[1] < "4.0":
    sys.modules["pyspark.sql.datasource"] = None
usual = types.to_arrow_type
types.to_arrow_type = lambda dt, *, error_on_duplicated_field_names_in_struct=False: usual(dt)

import pyspark_pravega as p

for use in (
    lambda: p.configure(None, jvm_reader=False),
):
    try:
        use()
    except Exception as error:
        print(error)
"""


@pytest.mark.parametrize("version", ["3.5.9"])
def test_each_use_is_refused_with_the_version(version: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, version], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    lacking = " has no data sources in Python, so it" if version < "4.0" else ""
    use = "configure without jvm_reader"
    assert [line.partition(": use ")[0] for line in done.stdout.splitlines()] == [
        f"[PRAVEGA-UNSUPPORTED-MODE] Spark {version}{lacking} is too old for {use}"
    ]
    assert ("docs/spark/spark-3.5.md" in done.stdout) == (version < "4.0")
