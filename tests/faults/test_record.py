"""Records of many runs: kept verdicts, runs that are missing, and the table that sums them up."""

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from tests.faults.record import Record, write_into
from tests.faults.sink.inject.spark_faults import PATCHES
from tests.faults.sink.table import TABLE
from tests.faults.verdict import Verdict

TWO = ["worker-begun", "torn"]
COUNTS = {"events": 900, "lost": 0, "duplicated": 0, "out_of_order": 0}


def verdict(scenario: str, seed: int = 0, lost: int = 0, reported: int = 0, **more: object) -> Verdict:
    measures = {"reported": reported, "left_open": 0}
    return Verdict(
        scenario,
        seed,
        {"Java": COUNTS | {"lost": lost}},
        measures,
        proofs=["kill after begin"],
        **more,  # type: ignore[arg-type]
    )


def test_what_has_passed_is_not_played_again(tmp_path: Path):
    file = tmp_path / "kills.json"
    record = Record(file)
    assert record.missing(TWO, 5, 2) == [("worker-begun", 5), ("torn", 5), ("worker-begun", 6), ("torn", 6)]
    record.add(verdict("torn", 5))
    record.add(verdict("worker-begun", 5, failures=["1 rows lost"]))
    again = Record(file)
    assert again.verdicts == record.verdicts
    assert again.missing(TWO, 5, 2) == [("worker-begun", 5), ("worker-begun", 6), ("torn", 6)]
    assert not again.conclude(TWO)
    assert again.conclude(TWO[1:])


def test_measures_may_be_a_counter(tmp_path: Path):
    file = tmp_path / "kills.json"
    Record(file).add(Verdict("kills-file", measures=Counter(kills=110)))
    assert Record(file).verdicts == [Verdict("kills-file", measures={"kills": 110})]


def test_a_point_is_summed_up_in_a_row():
    record = Record()
    record.verdicts = [verdict("torn", reported=200), verdict("torn", 1, lost=1, failures=["1 rows lost"])]
    table = record.table({name: one.about for name, one in TABLE.named.items()}, TABLE.columns)
    rows = [line for line in table.splitlines() if line.startswith("| `torn`")]
    cells = [cell.strip() for cell in rows[0].strip("|").split("|")]
    assert cells[2:] == ["2, **1 failed**", "1,800", "1", "0", "0", "200", "0", "2 × kill after begin"]
    record.verdicts[0].seed = 7
    seeds = record.table({"torn": ""}, TABLE.columns, by_seed=True).splitlines()[2:]
    assert [line.split("|")[1].strip() for line in seeds] == ["7", "1"]


def test_a_table_replaces_the_one_of_its_name(tmp_path: Path):
    page = tmp_path / "page.md"
    end = "<!-- end of generated -->"
    page.write_text(f"<!-- generated: x -->\n\nkept\n\n{end}\n<!-- generated kills: y -->\n\nold\n\n{end}\nrest\n")
    for text in ("new", "newer"):
        write_into(page, "kills", text)
    expected = f"<!-- generated: x -->\n\nkept\n\n{end}\n<!-- generated kills: y -->\n\nnewer\n\n{end}\nrest\n"
    assert page.read_text() == expected


def test_each_module_with_kill_points_exists():
    assert [name for name in PATCHES if find_spec(name) is None] == []
