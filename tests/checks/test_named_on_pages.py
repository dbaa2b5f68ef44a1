"""Pages name every format, setting, option and fault that exists, and their examples are current."""

import json
import re
import shlex
from pathlib import Path

import pytest

from pravega_connector.exactly_once.steps import StepsState, Update
from pravega_connector.operations.cli.export import export
from pravega_connector.operations.cli.write import write
from pravega_connector.operations.ingest.feed import Progress
from pravega_connector.testing.faults import Faults
from pravega_serde import formats
from pravega_serde.registry.settings import WriterSettings

ROOT = Path(__file__).parents[2]
SERIALIZERS = (ROOT / "docs/serialization/serializers.md").read_text()
REGISTRY = (ROOT / "docs/serialization/schema-registry.md").read_text()
FLOWS = (ROOT / "docs/tools/export-and-pipe.md").read_text()
INGESTION = (ROOT / "benchmarks/results/ingestion.md").read_text()
VERSIONS = (ROOT / "docs/spark/versions.md").read_text()
TEST_KIT = (ROOT / "docs/tools/test-kit.md").read_text()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def _names_under(heading: str) -> list[str]:
    """Return the first cells of the tables in a section."""
    section = SERIALIZERS[SERIALIZERS.index(f"## {heading}\n") :].split("\n## ")[0]
    return sorted(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_format_has_its_line():
    assert _names_under("Formats") == list(formats())


def test_every_format_with_values_inside_values_has_its_limits():
    assert _names_under("Limits") == sorted(set(formats()) - {"bytes", "string"})


def test_every_setting_of_a_registry_serializer_is_on_the_page():
    names = WriterSettings.__annotations__
    assert [name for name in names if f"| `{name}`" not in REGISTRY and f", `{name}`" not in REGISTRY] == []
    assert len(names) == 14


def test_endless_pipes_are_commands():
    (endless,) = [block for block in blocks(FLOWS, "sh") if "tail -F" in block]
    assert len(endless.splitlines()) == 3
    for line in endless.splitlines():
        program, name, *arguments = shlex.split(line.rpartition("| ")[2])
        assert (program, name) == ("pravega-serde", "write")
        assert write.make_context(name, arguments).params["stream"]


@pytest.mark.parametrize("command", [export, write])
def test_the_page_has_every_option_of_export_and_write(command):
    known = {option for parameter in command.params for option in parameter.opts}
    others = {option for other in (export, write) for parameter in other.params for option in parameter.opts}
    named = set(re.findall(r"`(--[a-z-]+)", FLOWS))
    assert named <= others
    general = "--controller --quiet --to --compression --registry-group -o --option stream files -K file"
    assert known - named <= set(general.split())


def test_the_state_of_an_ingestion_is_as_shown():
    initial, update = (json.loads(text) for text in blocks(INGESTION, "json"))
    state = StepsState.from_json(initial)
    assert Progress.from_json(state.positions["/data/a.csv"]).finished
    assert state.to_json() == initial
    assert Update.from_json(update).to_json() == update
    state.apply(Update.from_json(update))
    assert state.steps["run-2"].to_json() == update["step"]
    assert Progress.from_json(state.positions["/data/b.csv"]).offset == 250


def test_the_page_of_the_test_kit_has_every_fault():
    own = [name for name in vars(Faults) if not name.startswith("_")]
    assert len(own) > 10
    assert [name for name in own if not re.search(rf"`[^`\n]*\b{name}\b", TEST_KIT)] == []


def test_every_difference_between_versions_of_spark_has_a_test_that_runs_on_each():
    rows = [line.split(" | ") for line in VERSIONS.splitlines() if line.startswith("| ") and line.endswith("` |")]
    named = {name for row in rows for name in re.findall(r"`(test_\w+(?:\.py)?)`", row[-1])}
    assert len(rows) >= 17
    assert all(len(row) == 6 and re.search(r"`test_\w+(\.py)?`", row[-1]) for row in rows)
    folder = ROOT / "tests/integration/spark"
    functions = (folder / "test_version_differences.py").read_text()
    assert [name for name in named if not name.endswith(".py") and f"def {name}(" not in functions] == []
    files = {name for name in named if name.endswith(".py")} - {"test_jvm_writer.py"}  # of one version
    assert [name for name in files if "pytest.mark.each_spark" not in (folder / name).read_text()] == []
    of_3_5 = re.findall(r"PWD/(test_\w+\.py)", (ROOT / "run").read_text())
    assert {"test_dataframes.py", "test_jvm_stream.py", "test_functions.py", "test_sql_functions.py"} <= set(of_3_5)
    assert "test_version_differences.py" in of_3_5
