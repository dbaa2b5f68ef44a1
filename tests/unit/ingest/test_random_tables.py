"""A little of what ``python -m tests.fuzz.files`` does at length: every value is itself, its text, or a named error."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pravega_connector.testing import InProcessPravega
from tests.fuzz._tables import COLUMNS
from tests.fuzz.files import KINDS, LATE, Totals, check_exports, check_files, check_late

ROWS = 20

#: Columns that formats do not have, and values that they do not write.
REFUSALS = re.compile(
    r"not supported by|cannot be read as|do not have columns in common|invalid (Avro|Protobuf) name|would lose data"
    r"|invalid (int64|double|string|bytes|message \S+): None|beyond the range of|invalid value (NaN|-?Infinity)"
    r"|Expected 2 columns, got 1|\(--type x=string\)"
)


def check(totals: Totals, most_refused: float) -> None:
    assert not totals.findings
    assert [error for error in totals.errors.values() if not REFUSALS.search(error)] == []
    for kind in totals.equal:
        assert totals.refused[kind] <= most_refused * totals.equal[kind], totals.line()


@pytest.mark.parametrize("kind", KINDS)
def test_every_value_of_a_file_is_ingested(tmp_path: Path, kind: str):
    totals = Totals()
    check_files(totals, kind, list(COLUMNS), random.Random(7), ROWS, tmp_path, few=True)
    assert totals.equal[kind] > 40 * ROWS
    check(totals, 0.2)


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_other_values_after_the_sample_change_nothing(tmp_path: Path, kind: str):
    """Columns that are inferred from another column: the values are the same, or an error names a fix that works."""
    totals = Totals()
    check_late(totals, kind, LATE, random.Random(7), ROWS, tmp_path)
    assert "--type x=string" in " ".join(totals.errors.values())
    check(totals, 0.1)


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


def test_every_value_of_an_event_is_exported(tmp_path: Path, server: InProcessPravega):
    totals = Totals()
    check_exports(totals, list(COLUMNS), random.Random(7), ROWS, tmp_path, server, few=True)
    assert min(totals.equal.values()) > 30 * ROWS
    check(totals, 0.2)
