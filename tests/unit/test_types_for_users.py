"""What a type checker knows in a program of a user's (PEP 561)."""

import ast
import inspect
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_overloads

from pravega_serde import serializer_for
from pravega_serde.serializer import FORMATS, imported

ROOT = Path(__file__).parents[2]
PROGRAM = """\
from dataclasses import dataclass

import pravega_connector
from connector import PravegaClient, ScalingPolicy, StreamCut, StreamNotFoundError, export_stream
from pravega_serde import AvroSerializer, DeserializationError, Serializer, serializer_for, typed
from pyspark_pravega import PravegaDataSource, from_pravega


@dataclass
class Order:
    number: int


def first(serializer: Serializer[str]) -> str:
    return serializer.deserialize(b"")


reveal_type(serializer_for("string"))  # pravega_serde.text.UTF8StringSerializer
reveal_type(serializer_for("bytes").deserialize(b""))  # bytes
reveal_type(serializer_for("avro", schema="{}"))  # pravega_serde.avro.serializer.AvroSerializer
reveal_type(serializer_for("json"))  # pravega_serde.json.serializer.JsonSerializer
reveal_type(serializer_for(str("json")))  # pravega_serde.serializer.Serializer[Any]
reveal_type(typed(serializer_for("json"), Order).deserialize(b"{}"))  # user.Order
reveal_type(first(serializer_for("string")))  # str
first(serializer_for("bytes"))  # error: arg-type
with PravegaClient() as client:
    orders = typed(serializer_for("json"), Order)
    reveal_type(client.writer("s/x", orders))  # connector.client.event_writer.EventWriter[user.Order]
    reveal_type(client.read("s/x", orders))  # typing.Iterator[user.Order]
    reveal_type(client.read("s/x", "string"))  # typing.Iterator[str]
    reveal_type(client.head("s/x"))  # connector.wire.cuts.StreamCut
    client.writer("s/x", serializer_for("string")).write(5)  # error: arg-type
reveal_type(pravega_connector.PravegaClient())  # connector.client.pravega_client.PravegaClient
from connector import StreamManager  # error: attr-defined
from pravega_serde import AvroSerialiser  # error: attr-defined
"""


def test_a_users_program_is_checked(tmp_path, request):
    (tmp_path / "user.py").write_text(PROGRAM)
    # Kept between runs of the tests: the first takes a quarter of a minute, the next ones two seconds.
    cache = request.config.cache.mkdir("types-for-users")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(cache), "user.py"]
    # As installed packages, not as sources: without py.typed they have no types.
    environment = {k: v for k, v in os.environ.items() if k != "MYPYPATH"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=280
    )
    said = re.findall(
        r'^user.py:(\d+): (?:note: Revealed type is "(.+)"|(error: ).*\[(.+)\])$', done.stdout, re.MULTILINE
    )
    found = {int(line): kind or error + code for line, kind, error, code in said}
    expected = {
        number: line.partition("  # ")[2] for number, line in enumerate(PROGRAM.splitlines(), start=1) if "  # " in line
    }
    assert found == expected, done.stdout + done.stderr


def test_each_package_of_the_wheel_is_typed():
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"][
        "packages"
    ]
    assert set(packages) == {"connector", "pravega_connector", "pravega_serde", "pyspark_pravega"}
    assert [package for package in packages if not (ROOT / package / "py.typed").is_file()] == []


def test_each_format_has_its_types():
    """The overloads of serializer_for name each format's class and its arguments."""
    *overloads, anything = get_overloads(serializer_for)
    assert anything.__annotations__["format_name"] == "str"
    declared = {}
    for overload in overloads:
        name = ast.literal_eval(overload.__annotations__["format_name"].removeprefix("Literal[").removesuffix("]"))
        _, *options = inspect.signature(overload).parameters
        declared[name] = overload.__annotations__["return"], options
    classes = {name: imported(each.serializer) for name, each in FORMATS.items()}
    assert declared == {
        name: (made.__name__, list(inspect.signature(made).parameters)) for name, made in classes.items()
    }
