"""The program in docs/operate/monitor-and-recover.md does what it says, and the commands after it run."""

import os
import re
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from pravega_connector.config import PravegaConfig

PAGE = Path(__file__).parents[3] / "docs" / "operate/monitor-and-recover.md"
COMMAND = "from pravega_connector.cli import main; main()"


def test_the_examples_run_as_they_stand(spark: SparkSession, config: PravegaConfig, tmp_path: Path):
    text = PAGE.read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    program = program.replace("checkpoints/orders", str(tmp_path / "checkpoints" / "orders"))
    assert program.count("assert ") >= 6
    exec(compile(program, str(PAGE), "exec"), {"spark": spark, "controller": config.controller})

    lines = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for line in block.splitlines()
    ]
    assert len(lines) >= 12
    serde = f'"{sys.executable}" -c "{COMMAND}"'
    script = "\n".join(["set -e", *(re.sub(r"^pravega-serde", serde.replace("\\", "/"), line) for line in lines)])
    environment = {**os.environ, "PYTHONPATH": str(PAGE.parents[1]), "PRAVEGA_CONTROLLER_URI": config.controller}
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "lag of 0 bytes" in done.stdout
    assert "equal" in done.stdout
    assert (tmp_path / "orders.svg").read_text().startswith("<svg")
