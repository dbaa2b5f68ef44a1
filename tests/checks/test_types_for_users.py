"""Types that a type checker finds in a user's program (PEP 561)."""

import ast
import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_overloads

from pravega_serde import serializer_for
from pravega_serde.format_table import FORMATS, imported

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tools" / "packages" / "typed_program.py"


def test_a_users_program_is_checked(tmp_path, request):
    program = PROGRAM.read_text()
    assert program.count("assert_type(") >= 10
    assert program.count("# type: ignore[") >= 5
    (tmp_path / "user.py").write_text(program)
    # Kept between runs of the tests: the first takes a quarter of a minute, the next ones two seconds.
    cache = request.config.cache.mkdir("types-for-users")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", str(cache), "user.py"]
    # As installed packages, not as sources: without py.typed they have no types.
    environment = {k: v for k, v in os.environ.items() if k != "MYPYPATH"} | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr


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
