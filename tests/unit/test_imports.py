"""Modules that a start does not load."""

import importlib.util
import subprocess
import sys

import pytest

from pravega_connector.operations.cli import COMMANDS

LOADED = (
    "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\nprint('pandas' in sys.modules)"
)


@pytest.mark.parametrize(
    "modules",
    [
        [f"pravega_connector.operations.cli.{name}" for name in sorted(COMMANDS)],
        [
            "pravega_connector.spark.data_source",
            "pravega_connector.spark.functions",
            "pravega_serde.java",
            "pravega_serde.registry",
        ],
    ],
    ids=["commands", "spark"],
)
def test_no_pandas_before_there_are_rows(modules):
    # Arrow loads it, if it exists, to make the first value of a Python one: 0.2 s, for every Spark worker.
    assert importlib.util.find_spec("pandas") is not None
    command = [sys.executable, "-c", LOADED, *modules]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout == "False\n"


def test_a_package_loads_nothing_before_it_is_asked_for():
    code = "import connector, pravega_serde, sys; print(len({'numpy', 'pyarrow', 'grpc', 'inspect'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "0\n"


def test_a_client_without_a_group_loads_nothing_of_groups():
    code = "import pravega_connector.spark.data_source, sys; print([m for m in sys.modules if 'connector.group' in m])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n"
