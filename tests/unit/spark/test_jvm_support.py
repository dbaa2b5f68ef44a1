"""The helper process of the JVM reader decides as the Python reader does, by the same code and the same errors."""

import base64
import itertools
import json
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import IntegerType, StructField, StructType

from pravega_connector.client import PravegaClient, StreamCut
from pravega_connector.errors import (
    ConfigError,
    ConnectionLostError,
    DataLossError,
    MalformedStreamCutError,
    ProtocolError,
)
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark import pickling
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.jvm.decoding import TypedRows
from pravega_connector.spark.jvm.messages import TaskOptions, packed, unpacked
from pravega_connector.spark.jvm.support import Sessions
from pravega_connector.spark.source.offset_planner import OPEN_END
from pravega_connector.testing import InProcessPravega
from pravega_connector.wire import NoSuchSegment, SegmentIsTruncated, StreamName, WrongHost, encode, segment_name

STREAM = StreamName("jvm", "support")
HEADER = 8
_sessions = itertools.count(1)


@pytest.fixture
def pravega() -> Iterator[InProcessPravega]:
    with InProcessPravega() as server:
        yield server


@pytest.fixture
def client(pravega: InProcessPravega) -> Iterator[PravegaClient]:
    with pravega.client() as client:
        client.create_stream(STREAM, 1)
        with client.writer(STREAM) as writer:
            for _ in range(10):
                writer.write(bytes(100 - HEADER))
        yield client


@pytest.fixture
def request_of(pravega: InProcessPravega, client: PravegaClient) -> Any:
    """``request_of("lost", text="…", **options)`` is a request about a read of the whole segment."""

    def request_of(do: str, *, fail: bool = True, position: int = 0, **fields: Any) -> dict[str, Any]:
        raw = {"controller": pravega.uri, "stream": str(STREAM), "fail_on_data_loss": str(fail).lower()}
        options = TaskOptions(parse_options(SourceOptions, raw | {"timeout_ms": "2000", "failover_timeout_ms": "3000"}))
        return {
            "id": 1, "do": do, "session": next(_sessions), "progressed": False,
            "options": base64.b64encode(pickle.dumps(options)).decode(),
            "scope": STREAM.scope, "stream": STREAM.stream, "segment_id": 0,
            "start": 0, "end": 1000, "position": position, "event": position,
            "store": "{}:{}".format(*client.stores.endpoint(STREAM, 0)),
        } | fields  # fmt: skip

    return request_of


@pytest.fixture
def decoding(pravega: InProcessPravega, request_of: Any, tmp_path: Path) -> Any:
    """``decoding(events, offset)`` is a request about events of JSON; malformed ones go to files in ``tmp_path``."""
    columns = StructType([StructField("n", IntegerType())])
    options = {"controller": pravega.uri, "path": str(STREAM), "format": "json", "dead_letter_path": str(tmp_path)}
    read = TypedRows(*PravegaDataSource(options).reader_arguments(columns))

    def decoding(events: list[bytes], offset: int, **fields: Any) -> dict[str, Any]:
        data = b"".join(bytes(4) + len(event).to_bytes(4, "big") + event for event in events)
        return request_of(
            "decode", rows=packed(read), columns=columns.json(), offset=offset, query="q",
            data=base64.b64encode(data).decode(), places=[], lows=[], highs=[],
        ) | fields  # fmt: skip

    return decoding


def replied(message: Any, **in_flight: int) -> dict[str, Any]:
    wire = encode(message)
    reply = base64.b64encode(wire[8:]).decode()
    number = int.from_bytes(wire[:4], "big", signed=True)
    return {"type": number, "reply": reply, "in_flight": [[int(at[1:]), size] for at, size in in_flight.items()]}


def test_a_lost_connection_is_tried_again_at_the_segments_place(request_of: Any, client: PravegaClient) -> None:
    answer = Sessions().answer(request_of("lost", text="closed", position=300))
    assert (answer["host"], answer["port"]) == client.stores.endpoint(STREAM, 0)
    assert answer["event"] == 300
    assert answer["quiet"] > 0


def test_a_segment_that_has_moved_is_found_again(request_of: Any, client: PravegaClient) -> None:
    moved = replied(WrongHost(0, segment_name(STREAM, 0), "other", ""), _0=500)
    assert (Sessions().answer(request_of("replied", **moved))["host"]) == client.stores.endpoint(STREAM, 0)[0]


def test_a_store_that_stays_away_is_an_error_in_time(request_of: Any, pravega: InProcessPravega) -> None:
    sessions, request = Sessions(), request_of("lost", text="closed")
    sessions.answer(request)

    def fail_until_the_timeout() -> None:
        while True:  # each pause is longer than the one before; 3 s in all
            sessions.answer(request)

    with pytest.raises(ConnectionLostError, match=r"the connection to the segment store at \S+ was lost: closed"):
        fail_until_the_timeout()


def test_progress_ends_an_outage(request_of: Any) -> None:
    sessions, request = Sessions(), request_of("lost", text="closed")
    for _ in range(12):  # without progress, the pauses would take more than the timeout
        sessions.answer(request | {"progressed": True})


def test_a_request_after_the_end_of_its_task_begins_no_outage(request_of: Any) -> None:
    sessions, request = Sessions(), request_of("lost", text="closed")
    sessions.answer(request)
    sessions.end(request["session"])
    with pytest.raises(ConfigError, match="the task has ended"):
        sessions.answer(request)


def test_truncated_data_is_an_error_or_skipped(request_of: Any, client: PravegaClient) -> None:
    client.truncate(STREAM, StreamCut(STREAM, {0: 400}))
    refusal = replied(SegmentIsTruncated(100, segment_name(STREAM, 0), 400, "", 100), _100=900)
    with pytest.raises(DataLossError) as raised:
        Sessions().answer(request_of("replied", position=100, **refusal))
    assert "segment 0, offset 100: 300 bytes" in str(raised.value)
    skipped = Sessions().answer(request_of("replied", position=100, fail=False, **refusal))
    assert skipped["event"] == 400
    assert skipped["port"] > 0


def test_a_deleted_stream_is_an_error_or_the_end(request_of: Any, client: PravegaClient) -> None:
    client.delete_stream(STREAM)
    refusal = replied(NoSuchSegment(0, segment_name(STREAM, 0), "", 0), _0=500)
    with pytest.raises(DataLossError, match="segment 0, offset 0: 1,000 bytes"):
        Sessions().answer(request_of("replied", **refusal))
    assert Sessions().answer(request_of("replied", fail=False, **refusal))["event"] == 1000


def test_a_reply_to_no_request_is_read_again(request_of: Any, caplog: pytest.LogCaptureFixture) -> None:
    other = replied(NoSuchSegment(7, segment_name(STREAM, 0), "", 7), _0=500)
    caplog.set_level("INFO", "pravega_connector")
    assert Sessions().answer(request_of("replied", **other))["event"] == 0
    assert "trying again after" in caplog.text


@pytest.mark.parametrize(("size", "wanted"), [(600, 500), (500, None), (0, 500)])
def test_a_wrong_answer_is_read_again(request_of: Any, size: int, wanted: int | None) -> None:
    answer = {"size": size, "wanted": wanted, "end_of_segment": False, "offset": 0, "segment": segment_name(STREAM, 0)}
    assert Sessions().answer(request_of("answered", **answer))["event"] == 0


def test_a_range_past_the_end_of_a_sealed_segment_is_an_error(request_of: Any) -> None:
    answer = {"size": 100, "wanted": 500, "end_of_segment": True, "offset": 0, "segment": segment_name(STREAM, 0)}
    with pytest.raises(MalformedStreamCutError):
        Sessions().answer(request_of("answered", **answer))


@pytest.mark.parametrize("header", [b"\x01" + bytes(7), bytes(4) + b"\x7f\xff\xff\xff", bytes(5)])
def test_an_invalid_or_cut_event_is_an_error(request_of: Any, header: bytes) -> None:
    with pytest.raises(ProtocolError):
        Sessions().answer(request_of("frame", offset=0, header=base64.b64encode(header).decode()))


def test_the_process_answers_lines_and_ends_with_its_input(
    request_of: Any, decoding: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request_of("place") | {"id": 1}, request_of("frame", offset=0, header="AQAAAAAAAAA=") | {"id": 2}]
    options = unpacked(requests[0]["options"])
    monkeypatch.setattr(pickling, "VERSION", pickling.VERSION - 1)
    other = packed(options)
    monkeypatch.undo()
    requests.insert(0, decoding([b"{}"], 0, rows=other, id=3))
    with subprocess.Popen(
        [sys.executable, "-m", "pravega_connector.spark.jvm.support"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(each) + "\n" for each in requests))
        process.stdin.flush()
        answers = {answer["id"]: answer for answer in (json.loads(process.stdout.readline()) for _ in requests)}
        process.stdin.close()
        assert process.wait(timeout=120) == 0
    assert answers[1]["ok"]["port"] > 0
    assert answers[2]["error"].startswith("pravega_connector.errors.ProtocolError: [PRAVEGA-")
    assert "[PRAVEGA-VERSION-MISMATCH]" in answers[3]["error"]


def test_a_file_of_dead_letters_appears_when_the_slice_is_complete(decoding: Any, tmp_path: Path) -> None:
    sessions = Sessions()
    first = decoding([b'{"n": 1}', b"bad"], 0)
    session = {"session": first["session"]}
    assert sessions.answer(first)["letters"] == 1
    assert sessions.answer(decoding([b"worse"], 100, **session))["letters"] == 1
    with pytest.raises(ConnectionLostError, match="Spark must run the task again"):
        sessions.answer({"do": "complete", "letters": 3, **session})
    assert not list(tmp_path.glob("*.jsonl"))
    sessions.answer({"do": "complete", "letters": 2, **session})
    (file,) = tmp_path.iterdir()
    letters = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(letter["offset"], base64.b64decode(letter["event"])) for letter in letters] == [
        (16, b"bad"),
        (100, b"worse"),
    ]
    sessions.end(session["session"])
    with pytest.raises(ConfigError, match="the task has ended"):
        sessions.answer(decoding([b"late"], 200, **session))


def test_a_slice_that_is_given_up_leaves_no_file(decoding: Any, tmp_path: Path, eventually: Any) -> None:
    sessions, request = Sessions(), decoding([b"bad"], 0)
    assert sessions.answer(request)["letters"] == 1
    assert len(list(tmp_path.iterdir())) == 1, "a hidden file"
    sessions.end(request["session"])
    eventually(lambda: not list(tmp_path.iterdir()))


def test_a_deleted_segment_under_a_tail_is_left_to_the_driver(request_of: Any, client: PravegaClient) -> None:
    client.seal_stream(STREAM)
    client.delete_stream(STREAM)
    gone = replied(NoSuchSegment(300, segment_name(STREAM, 0), "", 0), o300=100)
    answer = Sessions().answer(request_of("replied", fail=False, position=300, end=OPEN_END, **gone))
    assert answer["event"] == OPEN_END
