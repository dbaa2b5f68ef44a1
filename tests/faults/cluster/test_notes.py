"""Notes that the faults' verdicts use: the arithmetic of times, and the counting of numbered events."""

import json

from tests.faults.cluster.timeline import Notes, Timeline
from tests.faults.verdict import Tally


def timeline(*, probes=(), done=()):
    made = Timeline()
    for start, end in probes:
        made.take({"what": "probe", "client": "probe", "start": start, "time": end})
    for moment in done:
        made.take({"what": "done", "client": "writer", "time": moment})
    return made


def test_only_what_is_noted_later_is_read_and_no_half_line(tmp_path):
    notes = Notes(tmp_path / "a.notes")
    notes.done("writer")
    read = Timeline(tmp_path)
    notes.error("writer", ValueError("first line\nsecond"))
    Notes(tmp_path / "b.notes").add("probe", "probe", start=1.0)
    with (tmp_path / "a.notes").open("a") as file:
        file.write('{"time": 1, ')
    read.refresh()
    assert (read.done, [text for _, text in read.errors["writer"]]) == ({}, ["ValueError: first line"])
    assert len(read.probes) == 1
    with (tmp_path / "a.notes").open("a") as file:
        file.write('"client": "writer", "what": "done"}\n')
    assert read.refresh().done == {"writer": [1]}
    assert [json.loads(line)["what"] for line in (tmp_path / "a.notes").read_text().splitlines()][:2] == [
        "done",
        "error",
    ]


def test_servers_are_well_when_a_probe_succeeds_that_began_after_the_fault():
    made = timeline(probes=[(9.0, 11.0), (12.0, 19.0), (15.0, 16.0)])
    assert made.refresh().well(10.0) == 16.0
    assert made.well(20.0) is None


def test_lag_is_from_the_servers_being_well_to_the_next_success():
    made = timeline(probes=[(12.0, 15.0), (31.0, 32.0)], done=[1.0, 14.0, 18.0, 33.0])
    assert made.lag("writer", [10.0]) == 3.0
    assert made.lag("writer", [10.0, 30.0]) == 3.0
    assert made.lag("writer", [30.0]) == 1.0
    assert timeline(probes=[(12.0, 15.0)], done=[14.0]).lag("writer", [10.0]) is None


def test_a_client_is_not_behind_new_ones_that_have_to_wait_as_long():
    made = timeline(probes=[(12.0, 15.0), (16.0, 33.0), (35.0, 36.0)], done=[35.0])
    assert made.lag("writer", [10.0]) == 20.0
    assert made.behind("writer", [10.0]) == 3.0
    made.take({"what": "failed probe", "client": "probe", "start": 20.0, "time": 34.5, "text": "no answer"})
    assert made.behind("writer", [10.0]) == 1.5


def test_a_client_is_behind_for_as_long_as_new_ones_do_not_wait():
    made = timeline(probes=[(12.0, 15.0), (16.0, 17.0)], done=[35.0])
    assert made.behind("writer", [10.0]) == 20.0
    made = timeline(probes=[(12.0, 15.0), (16.0, 17.0), (34.0, 45.0)], done=[35.0])
    assert made.behind("writer", [10.0]) == 19.0


def test_stall_counts_from_the_beginning_to_the_end():
    assert timeline(done=[3.0, 4.0]).stall("writer", 0.0, 9.0) == 5.0
    assert timeline(done=[3.0, 8.0]).stall("writer", 0.0, 9.0) == 5.0
    assert timeline().stall("writer", 0.0, 9.0) == 9.0


def tally(numbers):
    made = Tally()
    for number in numbers:
        made.add("k", number)
    return made


def counts(made, *args):
    return {what: count for what, count in made.take(*args).items() if count}


def test_all_in_order():
    made = tally([0, 1, 2])
    assert made.behind({"k": 2}) == 0
    assert made.behind({"k": 3}) == 1
    assert made.behind({"other": 0}) == 1
    assert counts(made, {"k": 2}) == {"events": 3}


def test_a_gap_a_repetition_and_a_late_one():
    assert counts(tally([0, 2]), {"k": 2}) == {"events": 2, "lost": 1}
    assert counts(tally([0, 1, 1]), {"k": 1}) == {"events": 3, "duplicated": 1}
    assert counts(tally([0, 2, 1]), {"k": 2}) == {"events": 3, "out_of_order": 1}


def test_what_never_came_is_lost_and_what_an_error_named_is_not():
    assert counts(tally([0]), {"k": 2}) == {"events": 1, "lost": 2}
    assert counts(tally([0]), {"k": 2}, [("k", 1)]) == {"events": 1, "lost": 1}


def test_each_loss_is_reported_once():
    made = tally([0, 2])
    made.take({"k": 4})
    for number in (5, 6):
        made.add("k", number)
    assert counts(made, {"k": 6}) == {"events": 2}


def test_notes_follow_their_file_when_it_is_renamed(tmp_path):
    notes, read = Notes(tmp_path / "a.notes"), Timeline(tmp_path)
    notes.done("writer")
    (tmp_path / "a.notes").rename(tmp_path / "a.retired")
    notes.done("writer")
    assert read.refresh().done == {}
    assert len((tmp_path / "a.retired").read_text().splitlines()) == 2
