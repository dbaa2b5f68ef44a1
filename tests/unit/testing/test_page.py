"""The tests on docs/tools/test-kit.md run as they stand, with the fixtures that the plugin brings."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tools/test-kit.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def run(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run a user's tests: with only our plugin for users."""
    (folder / "test_theirs.py").write_text(source)
    plugin = ["-p", "pravega_connector.testing.pytest_plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "--strict-markers",
            "-c",
            os.devnull,
            "--rootdir",
            folder,
            *plugin,
            folder,
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )


def test_the_tests_on_the_page_pass(tmp_path):
    here = [block for block in BLOCKS if "SparkSession" not in block]
    assert len(here) == len(BLOCKS) - 1, "the one with Spark is run by tests/integration/spark/test_kit.py"
    source = "\n\n".join(here)
    done = run(tmp_path, source)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{source.count('def test_')} passed" in done.stdout


def test_a_fault_that_never_happens_fails_the_test(tmp_path):
    done = run(tmp_path, "def test_nothing(pravega):\n    pravega.faults.drop_before('read', times=2)\n")
    assert "2 faults that the test asked for have not happened" in done.stdout
    assert "1 passed, 1 error" in done.stdout
