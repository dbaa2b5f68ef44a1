"""Where a query starts and ends: words, cuts, JSON, times, the position of another query."""

import json
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import ConfigError, MalformedStreamCutError, TimeUnknownError
from pravega_connector.wire import StreamName
from tests.support.micro_batches import MicroBatches


@pytest.fixture
def two(client: PravegaClient, scope: str) -> tuple[StreamName, StreamName]:
    """Two streams with the numbers 0 to 99 each, scaled after 50 of them."""
    names = StreamName(scope, "a"), StreamName(scope, "b")
    for name in names:
        client.create_stream(name, 2)
        write(client, name, 0, 50)
        scale(client, name, 3)
        write(client, name, 50, 100)
    return names


def write(client: PravegaClient, name: StreamName, first: int, last: int) -> None:
    with client.writer(name) as writer:
        for n in range(first, last):
            writer.write(b"%d" % n, routing_key=str(n % 7))


def scale(client: PravegaClient, name: StreamName, segments: int) -> None:
    current = client.controller.current_segments(name)
    bounds = [(i / segments, (i + 1) / segments) for i in range(segments)]
    client.controller.scale_stream(name, [r.id for r in current], bounds)


def numbers(query: MicroBatches, **options: str) -> dict[str, list[int]]:
    """Rows of a run by stream."""
    found: dict[str, list[int]] = {}
    for batch in query.run(**options):
        for row in batch.rows:
            found.setdefault(row.stream, []).append(int(row.event))
    return {name: sorted(values) for name, values in sorted(found.items())}


def test_each_stream_has_its_own_places(config, client, two):
    a, b = two
    middle = client.tail(b)
    write(client, b, 100, 120)
    end = client.tail(b)
    write(client, b, 120, 130)
    options = {"controller": config.controller, "path": f"{a},{b}"}
    starts = json.dumps({str(a): "earliest", str(b): middle.to_text()})
    ends = json.dumps({str(b): end.to_text()})
    found = numbers(MicroBatches(), **options, start_stream_cut=starts, end_stream_cut=ends)
    assert found == {"a": list(range(100)), "b": list(range(100, 120))}
    segments = {f"{i & 0xFFFFFFFF}.#epoch.{i >> 32}": at for i, at in middle.positions.items()}
    starts = json.dumps({str(b): segments, "*": "latest"})
    assert numbers(MicroBatches(), **options, start_stream_cut=starts) == {"b": list(range(100, 130))}


def test_an_end_cut_of_an_earlier_epoch(config, client, scope):
    name = StreamName(scope, "a")
    client.create_stream(name, 2)
    write(client, name, 0, 50)
    end = client.tail(name)
    write(client, name, 50, 60)
    scale(client, name, 4)
    write(client, name, 60, 100)
    options = {"controller": config.controller, "path": str(name), "start_stream_cut": "earliest"}
    query = MicroBatches()
    for available_now in (True, False):  # the second time it stays where it is
        rows = [
            row
            for batch in query.run(available_now=available_now, **options, end_stream_cut=end.to_text())
            for row in batch.rows
        ]
        assert sorted(int(row.event) for row in rows) == (list(range(50)) if available_now else [])
    assert numbers(query, **options) == {"a": list(range(50, 100))}


def test_a_finished_querys_position(config, client, two, tmp_path):
    a, b = two
    options = {"controller": config.controller, "path": f"{a},{b}"}
    query = MicroBatches()
    numbers(query, **options, start_stream_cut="earliest", max_rows_per_trigger="30")
    checkpoint = checkpoint_of(query, tmp_path, committed=query.committed - 2)
    rest = numbers(MicroBatches(), **options, start_stream_cut=f"checkpoint:{checkpoint}")
    again = MicroBatches(query.offsets[: query.committed - 2], query.committed - 2, query.first)
    assert rest == numbers(again, **options)
    head = numbers(MicroBatches(), **options, start_stream_cut="earliest", end_stream_cut=f"checkpoint:{checkpoint}")
    whole = {name: sorted(head.get(name, []) + rest.get(name, [])) for name in ("a", "b")}
    assert whole == {"a": list(range(100)), "b": list(range(100))}
    client.create_stream(StreamName(a.scope, "c"))
    options["path"] = f"{a},{a.scope}/c"
    with pytest.raises(ConfigError, match="no position in stream"):
        numbers(MicroBatches(), **options, start_stream_cut=f"checkpoint:{checkpoint}")
    # The JSON of the offset itself does as well.
    options["path"] = str(a)
    numbers(MicroBatches(), **options, start_stream_cut=query.offsets[0])


def checkpoint_of(query: MicroBatches, folder: Path, committed: int) -> Path:
    """The query's checkpoint as Spark lays it out."""
    for log in ("offsets", "commits"):
        (folder / log).mkdir()
    for number, offset in enumerate(query.offsets):
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset}")
    for number in range(committed):
        (folder / "commits" / str(number)).write_text("v1\n{}")
    return folder


@pytest.mark.parametrize("when", ["timestamp:2026-11-21T10:00:00Z", "1795255200000", "timestamp:1795255200000"])
def test_a_time_that_nobody_has_noted(config, two, when):
    with pytest.raises(TimeUnknownError, match="watermarks"):
        numbers(MicroBatches(), controller=config.controller, path=str(two[0]), start_stream_cut=when)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("unbounded", ConfigError, "another position"),
        ("timestamp:yesterday", ConfigError, "invalid time"),
        ("{", ConfigError, "has invalid JSON"),
        ('{"a": "latest", "elsewhere/x": "latest"}', ConfigError, "elsewhere/x, which the query does not read"),
        ('{"a": {"0.#epoch.0": "x"}}', MalformedStreamCutError, "0.#epoch.0"),
        ('{"a": {"0.#epoch.0": 5}}', MalformedStreamCutError, "does not cover"),
        ("checkpoint:/nowhere", ConfigError, "no such folder"),
        ("whenever", MalformedStreamCutError, "invalid position 'whenever'"),
    ],
)
def test_says_what_is_wrong_with_a_place(config, scope, two, text, error, words):
    options = {"controller": config.controller, "scope": scope, "path": "a"}
    with pytest.raises(error, match=words):
        numbers(MicroBatches(), **options, start_stream_cut=text)


def test_java_writes_minus_one_for_a_segment_that_has_not_begun(config, client, two):
    tail = client.tail(two[0])
    cut = StreamCut(tail.stream, dict.fromkeys(tail.positions, -1))
    options = {"controller": config.controller, "path": str(two[0])}
    assert numbers(MicroBatches(), **options, start_stream_cut=cut.to_text()) == {"a": list(range(50, 100))}
