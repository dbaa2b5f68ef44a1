"""JSON events in files: lines with the same bytes, and columns that lose nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.operations.export import export_stream
from pravega_connector.testing import InProcessPravega
from pravega_serde.errors import DeserializationError


@pytest.fixture(scope="module")
def server() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def export(server: InProcessPravega, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    stream = f"export/s{abs(hash(request.node.nodeid))}"

    def run(events: list[bytes], suffix: str, **options: Any) -> Path:
        with server.client() as client:
            write(client, stream, events)
        path = tmp_path / f"x.{suffix}"
        export_stream(stream, path, controller=server.uri, format="json", overwrite=True, **options)
        return path

    return run


def write(client: PravegaClient, stream: str, events: list[bytes]) -> None:
    client.create_scope("export")
    if client.create_stream(stream, 1):
        with client.writer(stream) as writer:
            writer.write_column(pa.array(events, pa.binary()))


LINES = [
    b'{"a":1}',
    b'{"b":2, "c" : [1.50, 1E5]}',
    b'{"id":18446744073709551615}',
    b'{"id":"x"}',
    b'{"at":"2026-05-01T12:00:00+02:00"}',
    b'{"a":1,"a":2}',
    b'{"s":"\\ud800 \\u0041 /"}',
    b"{}",
]


def test_lines_are_the_events(export: Any):
    assert export(LINES, "jsonl").read_bytes().splitlines() == LINES


def test_line_ends_byte_order_marks_and_zeros_are_not_in_lines(export: Any):
    events = [b'{"a":\n1,\r\n"b":"x"}', b'\xef\xbb\xbf{"a":1}', b' {"a":1}\n', b'{"a":1}\0\0']
    expected = [b'{"a": 1,  "b":"x"}', b'{"a":1}', b'{"a":1}', b'{"a":1}']
    assert export(events, "jsonl").read_bytes().splitlines() == expected


BAD = [b'{"a":', b'{"a":"\xe9"}', b"[1]", b"5", b"null", b'{"a":NaN}', b"", b"[" * 100_000]


def test_malformed_events_follow_the_mode(export: Any):
    with pytest.raises(DeserializationError, match="offset"):
        export([*LINES, *BAD], "jsonl")
    assert export([], "jsonl", mode="dropmalformed").read_bytes().splitlines() == LINES
    lines = export([], "jsonl", mode="permissive").read_bytes().splitlines()
    assert lines[: len(LINES)] == LINES
    assert [set(json.loads(line)) for line in lines[len(LINES) :]] == [
        {"_corrupt_record", "_corrupt_record_error"}
    ] * len(BAD)


@pytest.mark.parametrize("suffix", ["parquet", "avro"])
def test_columns_hold_every_value(export: Any, suffix: str):
    events = [
        b'{"id":1,"f":0.5,"m":1,"d":1,"l":[1],"o":{"a":1}}',
        b'{"id":18446744073709551615,"f":2,"m":"x","d":0.12345678901234567891,"l":["a"],"o":{"b":"c"}}',
        b'{"m":{"deep":[1.10]}}',
        *[b'{"id":7}'] * 10_000,
        b'{"late":true,"m":1e2}',
    ]
    path = export(events, suffix)
    if suffix == "parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        with path.open("rb") as file:
            rows = list(fastavro.reader(file))
    assert len(rows) == len(events)
    assert [row["id"] for row in rows[:3]] == [1, 2**64 - 1, None]
    assert [row["f"] for row in rows[:2]] == [0.5, 2.0]
    assert [row["m"] for row in (*rows[:3], rows[-1])] == ["1", "x", '{"deep":[1.10]}', "1e2"]
    assert [row["d"] for row in rows[:2]] == [1, Decimal("0.12345678901234567891")]
    assert [row["l"] for row in rows[:2]] == [["1"], ["a"]]
    assert [row["o"] for row in rows[:2]] == [{"a": 1, "b": None}, {"a": None, "b": "c"}]
    assert rows[-1]["late"] is True


@pytest.mark.parametrize("bad", [b'{"a":1,"a":2}', b'{"t":"\\ud800"}', b"[1]", b'{"a":1} {'])
def test_what_a_column_would_lose_follows_the_mode(export: Any, bad: bytes):
    events = [b'{"a":1,"t":"x"}', bad, b'{"a":3}']
    with pytest.raises(DeserializationError, match="offset"):
        export(events, "parquet")
    assert [row["a"] for row in pq.read_table(export([], "parquet", mode="dropmalformed")).to_pylist()] == [1, 3]
    kept = pq.read_table(export([], "parquet", mode="permissive"))
    assert kept.column("_corrupt_record").to_pylist() == [None, bad, None]
