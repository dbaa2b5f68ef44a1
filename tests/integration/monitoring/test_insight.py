"""Lag to the byte, cuts compared, a stream's history and rates, and the commands that show them."""

import itertools
import json
import random
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import Result

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import MalformedStreamCutError
from pravega_connector.operations.monitoring import (
    StreamWatch,
    compare_cuts,
    draw_history,
    scaling_history,
    stream_lag,
    write_cut,
)
from pravega_connector.wire import StreamName
from tests.integration._events import SIZE, write_events

Write = Callable[[int], StreamCut]
Run = Callable[..., Result]


@pytest.fixture
def write(client: PravegaClient, stream_name: StreamName) -> Write:
    """``write(count)``: this many events of SIZE bytes with their headers; the tail after them."""
    client.create_stream(stream_name, 2)
    return partial(write_events, client, stream_name)


@pytest.fixture
def scale(client: PravegaClient, stream_name: StreamName) -> Callable[..., None]:
    def scale(*bounds: float) -> None:
        current = client.controller.current_segments(stream_name)
        client.controller.scale_stream(stream_name, [r.id for r in current], list(itertools.pairwise(bounds)))

    return scale


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[[StreamCut], Path]:
    """``checkpoint(cut)``: as of a query that has read up to a cut."""

    def checkpoint(cut: StreamCut) -> Path:
        for name in ("offsets", "commits"):
            (tmp_path / name).mkdir(exist_ok=True)
        offset = json.dumps({"streams": json.loads(write_cut(cut, "json")), "version": 1})
        (tmp_path / "offsets" / "4").write_text(f"v1\n{{}}\n{offset}")
        (tmp_path / "commits" / "4").write_text("v1\n{}")
        return tmp_path

    return checkpoint


def test_lag_is_right_to_the_byte_through_scaling_and_truncation(client, stream_name, write, scale):
    marks = [client.head(stream_name)]
    counts = [7, 0, 31, 12, 5]
    for count, bounds in zip(
        counts, [(0.0, 0.3, 1.0), (0.0, 0.2, 0.6, 1.0), (0.0, 0.5, 1.0), (0.0, 0.1, 1.0), None], strict=True
    ):
        marks.append(write(count))
        if bounds is not None:
            scale(*bounds)
    for place, mark in enumerate(marks):
        assert stream_lag(client, mark).bytes == sum(counts[place:]) * SIZE
    client.truncate(marks[3])
    for seal in (False, True):
        if seal:
            client.controller.seal_stream(stream_name)
        for place, mark in enumerate(marks):
            found = stream_lag(client, mark)
            assert found.is_final is seal
            assert found.bytes == sum(counts[max(place, 3) :]) * SIZE
            assert sum(loss.bytes for loss in found.losses) == sum(counts[place:3]) * SIZE


def test_cuts_are_compared_across_scaling(client, stream_name, write, scale):
    cuts = [client.head(stream_name)]
    for count, bounds in ((9, (0.0, 0.3, 1.0)), (14, (0.0, 0.2, 0.6, 1.0)), (3, (0.0, 0.5, 1.0)), (1, (0.0, 0.4, 1.0))):
        cuts.append(write(count))
        scale(*bounds)
    for (i, first), (j, second) in itertools.product(enumerate(cuts), repeat=2):
        found = compare_cuts(first, second, client)
        assert found.relation == ("equal" if i == j else "before" if i < j else "after")
        assert found.bytes == sum([9, 14, 3, 1][min(i, j) : max(i, j)]) * SIZE
    low, high = cuts[0].positions, cuts[1].positions
    mixed = StreamCut(stream_name, {0: low[0], 1: high[1]})
    assert compare_cuts(mixed, StreamCut(stream_name, {0: high[0], 1: low[1]})).relation == "incomparable"
    client.truncate(cuts[3])
    assert compare_cuts(cuts[0], cuts[4], client).bytes == 27 * SIZE  # also where the bytes were truncated
    with pytest.raises(MalformedStreamCutError, match="different streams"):
        compare_cuts(cuts[0], StreamCut(StreamName("s", "other"), {0: 0}))


def test_a_cut_in_every_form(run, client, stream_name, write):
    cut = write(6)
    text = run("cut", "of", stream_name).output.strip()
    assert StreamCut.from_text(text) == cut
    forms = {form: run("cut", "convert", text, "--to", form).output.strip() for form in ("text", "json", "positions")}
    for source, target in itertools.product(forms, repeat=2):
        assert run(
            "cut", "compare", forms[source], run("cut", "convert", forms[source], "--to", target).output
        ).output == ("equal\n")
    head = run("cut", "of", stream_name, "--at", "head", "--to", "positions").output.strip()
    assert run("cut", "compare", head, text).output == f"before: {6 * SIZE} bytes between them\n"
    assert json.loads(run("cut", "compare", text, head, "--json").output) == {"relation": "after", "bytes": 6 * SIZE}
    shown = json.loads(run("cut", "show", text, "--json").output)
    assert {s["segment_id"]: s["offset"] for s in shown["segments"]} == cut.positions
    assert "1.#epoch.0" in run("cut", "show", forms["json"]).output
    assert "PRAVEGA-MALFORMED-STREAM-CUT" in run("cut", "show", "nonsense", code=1).output
    assert "PRAVEGA-TIME-UNKNOWN" in run("cut", "of", stream_name, "--at", "2026-01-01", code=1).output


def test_lag_of_a_checkpoint(run, client, stream_name, write, scale, checkpoint):
    folder = checkpoint(write(10))
    scale(0.0, 0.3, 1.0)
    write(4)
    told = json.loads(run("lag", folder, "--json", "--events").output)
    assert (told["batch"], told["bytes"], told["events"]) == (4, 4 * SIZE, 4)
    assert sum(told["streams"][str(stream_name)]["segments"].values()) == 4 * SIZE
    assert f"lag of {4 * SIZE} bytes" in run("lag", folder, "--max-bytes", 4 * SIZE).output
    client.truncate(client.tail(stream_name))
    write(1)
    told = json.loads(run("lag", folder, "--json", code=3).stdout)["streams"][str(stream_name)]
    assert (told["bytes"], told["lost_bytes"]) == (SIZE, 4 * SIZE)
    assert f": {4 * SIZE} bytes were not read" in run("lag", folder, code=3).output
    delete(client, stream_name)
    assert json.loads(run("lag", folder, "--json", code=4).stdout)["streams"][str(stream_name)]["deleted"] is True


def test_lag_sounds_an_alarm_for_whatever_is_wrong(run, client, stream_name, write, checkpoint, tmp_path):
    folder = checkpoint(write(10))
    write(4)
    assert run("lag", folder, "--max-bytes", 4 * SIZE).stderr == ""
    told = run("lag", folder, "--max-bytes", 4 * SIZE - 1, code=5).stderr
    assert told == f"lag of {4 * SIZE} bytes, more than {4 * SIZE - 1}\n"
    # Nothing is left to read, which is not a reason to be green.
    client.truncate(client.tail(stream_name))
    told = run("lag", folder, "--max-bytes", 1_000_000, code=3).stderr
    assert f"data loss in {stream_name}: {4 * SIZE} bytes" in told
    delete(client, stream_name)
    assert f"{stream_name} was deleted" in run("lag", folder, "--max-bytes", 1_000_000, code=4).stderr
    client.create_stream(stream_name, 3)
    assert f"{stream_name} was deleted" in run("lag", folder, "--max-bytes", 1_000_000, code=4).stderr, "it is another"
    assert "PRAVEGA-CONFIG" in run("lag", tmp_path / "no such", "--max-bytes", 1_000_000, code=1).stderr


@pytest.mark.long  # the 15 s of a first contact; tests/unit/cli has the exit codes
def test_lag_sounds_an_alarm_if_no_controller_answers(run, write, checkpoint):
    folder = checkpoint(write(10))
    told = run("lag", folder, "--max-bytes", 1_000_000, "--controller", "tcp://127.0.0.1:1", code=8).stderr
    assert "PRAVEGA-CONTROLLER-UNAVAILABLE" in told


def delete(client: PravegaClient, stream: StreamName) -> None:
    client.controller.seal_stream(stream)
    client.controller.delete_stream(stream)


def test_the_history_of_random_scalings(run, client, stream_name, write, tmp_path):
    """Every routing key has one segment in every epoch; each segment's successors are those that the server tells."""
    chance = random.Random(7)
    for _ in range(6):
        write(2)
        ranges = client.controller.current_segments(stream_name)
        one = chance.choice(ranges)
        if len(ranges) > 2 and chance.random() < 0.5:
            place = chance.randrange(len(ranges) - 1)
            pair = sorted(ranges, key=lambda r: r.low)[place : place + 2]
            client.controller.scale_stream(stream_name, [r.id for r in pair], [(pair[0].low, pair[1].high)])
        else:
            middle = (one.low + one.high) / 2
            client.controller.scale_stream(stream_name, [one.id], [(one.low, middle), (middle, one.high)])
    client.truncate(client.tail(stream_name))
    history = scaling_history(client, stream_name)
    assert scaling_history(client, str(stream_name)) == history
    assert (history.first, history.last) == (0, 6)
    for epoch in range(7):
        there = sorted((s.range.low, s.range.high) for s in history.segments if s.first <= epoch <= s.last)
        assert (there[0][0], there[-1][1]) == (0.0, 1.0)
        assert all(a[1] == b[0] for a, b in itertools.pairwise(there))
    for life in history.segments:
        after = {s.range.id for before, s in history.followers() if before is life}
        assert after == {s.range.id for s in client.controller.successors(stream_name, life.range.id)}
    assert sum(s.length for s in history.segments) == 12 * SIZE
    assert {s.state for s in history.segments} == {"open", "truncated"}
    picture = tmp_path / "history.svg"
    run("scaling", stream_name, "--output", picture)
    assert picture.read_text() == draw_history(history)
    titles = [e.text for e in ET.fromstring(picture.read_text()).iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == len(history.segments) + 1
    told = json.loads(run("scaling", stream_name, "--json", "--last", 2).output)
    assert told["epochs"] == [5, 6]


def test_watching(run, client, stream_name, write):
    write(5)
    times = iter([10.0, 12.0])
    watch = StreamWatch(client, stream_name, lambda: next(times))
    assert watch.look().rate is None
    write(8)
    view = watch.look()
    assert view.rate == 8 * SIZE / 2
    assert sum(s.length for s in view.segments) == 13 * SIZE
    told = json.loads(run("watch", stream_name, "--once", "--json", "--interval", 0.1).output)
    assert [s["segment"] for s in told["segments"]] == ["0.#epoch.0", "1.#epoch.0"]
    assert "2 open segments" in run("watch", stream_name, "--once", "--interval", 0.1).output
    assert "PRAVEGA-STREAM-NOT-FOUND" in run("watch", "no/stream", "--once", code=4).output


def test_subscribers(run, client, stream_name, write):
    client.subscriber(stream_name, "sales").publish(write(1))
    assert run("subscribers", stream_name).output == f"{stream_name.scope}/sales.{stream_name.stream}\n"
    assert json.loads(run("subscribers", stream_name, "--json").output) == [
        f"{stream_name.scope}/sales.{stream_name.stream}"
    ]
    assert run("subscribers", stream_name, "--remove", "sales").output == ""
    assert "has no subscriber 'sales'" in run("subscribers", stream_name, "--remove", "sales", code=1).output
