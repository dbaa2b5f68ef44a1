"""Requirements of the project: what the tests import is what their extra names, not what others happen to need."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "tools", "benchmarks", "examples")
OURS = {"pravega_serde", "connector", "pravega_connector", "pyspark_pravega", *FOLDERS}
# Of packages that are not installed for every Python.
DISTRIBUTIONS = packages_distributions() | {"pravega_client": ["pravega"]}
#: Large packages, each for one engine of an example. Its tests run where they are installed.
ENGINES = {"daft", "ray"}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def named(extra: str) -> set[str]:
    """Distributions of an extra and of the extras in it, and the dependencies."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found, waiting = set[str](), [*project["dependencies"], *project["optional-dependencies"][extra]]
    while waiting:
        match = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", waiting.pop())
        assert match is not None
        if plain(match[1]) != project["name"]:
            found.add(plain(match[1]))
            continue
        for other in match[2].split(","):
            waiting += project["optional-dependencies"][other]
    return found


def imported() -> Iterator[tuple[str, Path]]:
    """Top-level packages of other projects, and the files that import them."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    local = {file.stem for file in files}  # what peers and programs by path import next to them
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                names = [node.module]
            for name in (each.partition(".")[0] for each in names):
                if name not in sys.stdlib_module_names and name not in OURS and name not in local:
                    yield name, file


def test_what_the_tests_import_is_in_their_extra():
    known = named("test") | named("rust") | ENGINES | {"py4j"}  # PySpark brings its own version
    found = list(imported())
    assert len({name for name, _ in found}) > 30
    missing = {
        f"{name} ({file.relative_to(ROOT)})"
        for name, file in found
        if known.isdisjoint(map(plain, DISTRIBUTIONS.get(name, [name])))
    }
    assert missing == set()
