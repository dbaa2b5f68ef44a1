"""The two names of the package connector, and a module of a user's that has one of them."""

import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import connector
from connector.errors import ConfigError

ROOT = Path(__file__).parents[2]


def python(*words: str, folder: Path = ROOT) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def names() -> list[str]:
    found = [each.name for each in pkgutil.walk_packages(connector.__path__, "connector.")]
    # This one is a program that is run by path.
    return [name for name in found if name != "connector.local.supervisor"]


def test_each_module_is_one_under_both_names():
    assert len(names()) > 50
    for name in names():
        module = importlib.import_module(name)
        assert module is importlib.import_module(f"pravega_{name}")
        assert module.__name__ == f"pravega_{name}"
        assert module.__spec__.name == module.__name__


@pytest.mark.parametrize("first", ["connector", "pravega_connector"])
def test_which_name_comes_first_makes_no_difference(first):
    second = {"connector": "pravega_connector", "pravega_connector": "connector"}[first]
    code = (
        f"import {first}.client, {second}.client\n"
        f"from {second} import ledger\n"
        f"assert {first}.client is {second}.client and {first}.client.PravegaClient\n"
        f"import {first}.ledger\n"
        f"assert ledger is {first}.ledger\n"
        "import pyspark_pravega, connector.data_source\n"
        "assert pyspark_pravega.DefaultSource is connector.data_source.PravegaDataSource"
    )
    python("-c", code)


def test_a_class_is_pickled_by_the_name_that_nobody_else_has():
    data = pickle.dumps(ConfigError)
    assert b"pravega_connector.errors" in data
    assert pickle.loads(data) is ConfigError


def test_a_module_that_does_not_exist_is_told_by_its_name():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'connector\.absent'"):
        importlib.import_module("connector.absent")


def test_a_users_own_connector_hides_nothing_that_spark_needs(tmp_path):
    (tmp_path / "connector.py").write_text("mine = 1\n")
    code = (
        "import pyspark_pravega, pyspark_pravega.functions, connector\n"
        "assert connector.mine == 1\n"
        "import pickle\n"
        "source = pickle.loads(pickle.dumps(pyspark_pravega.DefaultSource))\n"
        "print(source.name(), source.__module__)"
    )
    assert python("-c", code, folder=tmp_path) == "pravega pravega_connector.data_source\n"
