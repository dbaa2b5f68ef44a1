"""Install the project with each Python and each Spark that allow each other, and run a job in each environment.

``./run pythons`` calls it, with the settings of pip for uv. Pythons are those of PATH and pyenv; uv installs others.
The command prints a line for each pair, and ends with 1 if a job failed. ``./run pythons 4.0:3.13`` runs one pair.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools.packages.__main__ import pythons

_ROOT: Final = Path(__file__).resolve().parent.parent
_SECONDS: Final = 900
_OF_SPARK_4: Final = ("pandas>=2.2,<3",)
#: Spark, the Pythons that it supports, and what a user installs next to it. NumPy 1 has no wheels for later Pythons.
_PAIRS: Final = (
    ("3.5", ("3.11", "3.12"), ("numpy<2", "pandas>=2.2,<3", "pyarrow<26", "setuptools<81")),
    ("4.0", ("3.11", "3.12", "3.13"), _OF_SPARK_4),
    ("4.1", ("3.11", "3.12", "3.13", "3.14"), _OF_SPARK_4),
    ("4.2", ("3.11", "3.12", "3.13", "3.14"), _OF_SPARK_4),
    ("4.3", ("3.11", "3.12", "3.13", "3.14"), _OF_SPARK_4),
)
#: A batch write, a batch read, a query that writes exactly once, and a column function.
_JOB: Final = """
import os, sys, tempfile
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from pravega_connector.testing import InProcessPravega
from pyspark_pravega import from_pravega, read, write

builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.log.level", "ERROR").config("spark.sql.shuffle.partitions", "2").getOrCreate()
has_format = spark.version >= "4"
with InProcessPravega() as server, server.client() as client, tempfile.TemporaryDirectory() as folder:
    client.create_scope("s")
    for name in "ab":
        client.create_stream(f"s/{name}", 2)
    given = {"controller": server.uri, "format": "json"}
    rows = spark.range(100).selectExpr("id", "id % 7 = 0 AS seven")
    if has_format:
        rows.write.format("pravega").mode("append").options(**given).save("s/a")
        found = spark.read.format("pravega").options(**given).schema("id BIGINT").load("s/a")
    else:
        write(rows, "s/a", **given)
        found = read(spark, "s/a", **given, schema="id BIGINT")
    assert sorted(row.id for row in found.collect()) == list(range(100))
    raw = read(spark, "s/a", controller=server.uri, columns="event")
    decoded = raw.select(from_pravega("event", "json", "id BIGINT, seven BOOLEAN").alias("row"))
    assert decoded.where("row.seven").count() == 15

    def save(batch, number):
        once = {"writer_mode": "exactly_once", "txn_app_id": "job", "txn_version": number}
        write(batch, "s/b", controller=server.uri, **once)

    if has_format:
        stream = spark.readStream.format("pravega").options(controller=server.uri, start_stream_cut="earliest")
        query = stream.load("s/a").selectExpr("event").writeStream.format("pravega")
        query = query.options(controller=server.uri).option("checkpointLocation", folder + "/c").start("s/b")
    else:
        raw.selectExpr("CAST(event AS STRING) AS event").write.text(folder + "/in")
        lines = spark.readStream.text(folder + "/in").selectExpr("value AS event")
        query = lines.writeStream.foreachBatch(save).option("checkpointLocation", folder + "/c").start()
    query.processAllAvailable()
    query.stop()
    assert sorted(event["id"] for event in client.read("s/b", "json")) == list(range(100))
spark.stop()
from importlib.metadata import version
print(*(f"{name} {version(name)}" for name in ("pyspark", "numpy", "pandas", "pyarrow")), sep=", ")
"""


def main(chosen: list[str]) -> int:
    """Run the pairs ``SPARK:PYTHON``, or all of them; 1 if a job failed."""
    pairs = [(spark, python, more) for spark, supported, more in _PAIRS for python in supported]
    found, failed = pythons([]), 0
    for spark, python, more in pairs:
        if chosen and f"{spark}:{python}" not in chosen:
            continue
        try:
            said = _tried(spark, found.get(python, python), more)
        except subprocess.CalledProcessError as error:
            failed += 1
            said = "FAILED: " + ((error.stderr or "").strip().splitlines() or ["no output"])[-1]
        except subprocess.TimeoutExpired:
            failed += 1
            said = f"FAILED: it took more than {_SECONDS} s"
        print(f"Spark {spark}, Python {python}: {said}", flush=True)
    return 1 if failed else 0


def _tried(spark: str, python: str, more: tuple[str, ...]) -> str:
    """Return the last line of the job. Raises CalledProcessError and TimeoutExpired."""
    with tempfile.TemporaryDirectory(prefix="pythons-") as folder:
        environment = Path(folder) / "environment"
        inner = environment / "bin" / "python"
        uv = [str(Path(sys.executable).with_name("uv")), "--no-config", "--quiet"]
        _run([*uv, "venv", "--python", python, str(environment)])
        stored = "pyspark:--build-option=--compression=stored"  # a wheel of 450 MB is not compressed
        install = [*uv, "pip", "install", "--python", str(inner), "--config-settings-package", stored]
        constraints = ["--build-constraints", str(_ROOT / "requirements-lock.txt")]
        _run([*install, *constraints, str(_ROOT), f"pyspark~={spark}.0", *more])
        return _run([str(inner), "-W", "ignore", "-c", _JOB], cwd=folder).strip().splitlines()[-1]


def _run(command: list[str], cwd: str | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK_"))}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=_SECONDS, env=environment, cwd=cwd
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
