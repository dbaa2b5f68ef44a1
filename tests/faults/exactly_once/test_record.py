"""What is kept of many runs, what is still to be played, and how it is summed up."""

from pathlib import Path

from tools.faults.exactly_once._matrix import Record
from tools.faults.exactly_once._points import POINTS
from tools.faults.exactly_once._summary import summary, write_into
from tools.faults.exactly_once._verdict import Verdict

TWO = [POINTS["worker-begun"], POINTS["torn"]]


def verdict(point: str, **more: object) -> Verdict:
    fault = "at after begin, action kill, pid 77, run 1; controller 1234 and store 5678 killed"
    return Verdict(point, rows=900, read_back=900, left_open=0, fault=fault, **more)  # type: ignore[arg-type]


def test_what_has_passed_is_not_played_again(tmp_path: Path):
    file = tmp_path / "kills.json"
    record = Record(file)
    assert [point.name for point in record.missing(TWO, 2)] == ["worker-begun", "torn"] * 2
    record.add(verdict("torn"))
    record.add(verdict("worker-begun", failures=["1 rows lost"]))
    again = Record(file)
    assert again.verdicts == record.verdicts
    assert [point.name for point in again.missing(TWO, 2)] == ["worker-begun", "worker-begun", "torn"]
    assert not again.conclude(TWO)
    assert again.conclude(TWO[1:])


def test_a_point_is_summed_up_in_a_row():
    runs = [verdict("torn", lost=200, reported=200), verdict("torn", lost=1, failures=["1 rows lost"])]
    row = next(line for line in summary(runs).splitlines() if line.startswith("| `torn`"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[2:-1] == ["2, **1 failed**", "1,800", "1,800", "1 (and 200 reported)", "0", "0", "0"]
    assert cells[-1] == "2 × kill after begin; controller and store killed"


def test_a_table_replaces_the_one_of_its_name(tmp_path: Path):
    page = tmp_path / "page.md"
    end = "<!-- end of generated -->"
    page.write_text(f"<!-- generated: x -->\n\nkept\n\n{end}\n<!-- generated kills: y -->\n\nold\n\n{end}\nrest\n")
    for text in ("new", "newer"):
        write_into(page, "kills", text)
    expected = f"<!-- generated: x -->\n\nkept\n\n{end}\n<!-- generated kills: y -->\n\nnewer\n\n{end}\nrest\n"
    assert page.read_text() == expected
