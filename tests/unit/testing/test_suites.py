"""The suites of real servers pass on ``pravega_connector.testing`` as well."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suites import ON_BOTH

ROOT = Path(__file__).parents[3]


@pytest.mark.long
@pytest.mark.timeout(2000)
@pytest.mark.parametrize(("suite", "count"), ON_BOTH.items())
def test_a_suite_passes(suite, count):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", "--pravega=kit"]
    done = subprocess.run(
        [*command, f"tests/integration/{suite}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        check=False,
        text=True,
        timeout=1900,
    )
    assert done.returncode == 0, done.stdout[-5000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= count
