"""The suites that are run on real servers pass on those of ``pravega_connector.testing`` as well."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("suite", "count"),
    [
        ("client", 170),
        ("ledger", 36),
        pytest.param("registry", 260, marks=pytest.mark.long),
        ("insight", 8),
        pytest.param("flow", 46, marks=pytest.mark.long),
        pytest.param("ingest", 35, marks=pytest.mark.long),
        ("test_controller.py", 32),
        pytest.param("test_pages.py", 16, marks=pytest.mark.long),
    ],
)
def test_a_suite_passes(suite, count):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", "--pravega=kit"]
    done = subprocess.run(
        [*command, f"tests/integration/{suite}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        check=False,
        text=True,
        timeout=800,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= count
