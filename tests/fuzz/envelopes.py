"""Envelopes: CloudEvents in each format around bytes, and change events of Debezium in JSON."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from pravega_serde import ByteArraySerializer, ChangeDeserializer, Envelope, Enveloped, JsonSerializer, change_type
from pravega_serde.format_table import ENVELOPES
from tests.fuzz._target import Format, Target

__all__ = ["FORMAT"]

_SIZE: Final = (1 << 20) - 1024
_DEFAULTS: Final = {"source": "/shop", "type": "order"}
_ROW: Final = pa.struct([("id", pa.int64()), ("item", pa.string())])


def _envelopes() -> list[Envelope[bytes]]:
    source = random.Random(1)
    noon = datetime(2026, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)
    kinds = ["application/json", "text/plain", "application/octet-stream", "application/vnd.a.b+json"]
    return [
        Envelope(
            source.choice([b"{}", b'"tea"', b"[1, 2.5]"]) if source.random() < 0.9 else None,  # type: ignore[arg-type]
            source.choice([None, "", "ann", "bøb"]),
            source.choice([None, noon, noon.replace(microsecond=0)]),
            {"datacontenttype": source.choice(kinds), **({"ext": "5", "subject": 'a"b'} if number % 3 else {})},
        )
        for number in range(60)
    ]


def _texts() -> list[bytes]:
    """Events in JSON that other programs could write."""
    event = {"specversion": "1.0", "id": "1", **_DEFAULTS}
    more: list[dict[str, Any]] = [
        {"n": 5, "flag": True, "nothing": None, "data": {"a": [1, "x"]}},
        {"time": "2026-05-01T12:00:00+02:00", "data": "tea"},
        {"time": "2026-05-01t12:00:00.123456789z", "data": None},
        {"datacontenttype": "text/plain", "data": "ü"},
        {"datacontenttype": "application/xml", "data_base64": "PGEvPg=="},
    ]
    return [json.dumps({**event, **each}).encode() for each in more]


def _changes() -> list[bytes]:
    source = random.Random(2)
    origins: list[dict[str, Any]] = [
        {"connector": "postgresql", "ts_ms": 1_777_636_800_000, "sequence": '["600","656"]'},
        {"connector": "mysql", "ts_ms": 1_777_636_800_000, "file": "bin.000003", "pos": 154, "row": 1},
        {"connector": "oracle", "ts_ms": None, "commit_scn": "900", "scn": "850", "ssn": 3},
        {"connector": "mongodb", "ts_ms": 5, "ts_us": 5001, "ord": 2},
        {"connector": "vitess"},
    ]
    made = []
    for number in range(60):
        row = {"id": number, "item": source.choice(["tea", None])}
        change = {"op": source.choice("crud"), "before": source.choice([None, row]), "after": row, "ts_ms": number}
        change["source"] = source.choice(origins)
        made.append(change if number % 3 else {"schema": {"type": "struct"}, "payload": change})
    return [json.dumps(each).encode() for each in made]


def _event(*members: str) -> bytes:
    start = json.dumps({"specversion": "1.0", "id": "1", **_DEFAULTS})[:-1]
    return f"{start},{','.join(members)}}}".encode()


_BOMBS: Final[Mapping[str, Callable[[], bytes]]] = {
    "many attributes": lambda: _event(*(f'"a{number}":1' for number in range(_SIZE // 12))),
    "one attribute": lambda: _event(f'"a":"{"x" * _SIZE}"'),
    "nested data": lambda: _event('"data":' + "[" * _SIZE),
    "nested and closed data": lambda: _event('"data":' + "[" * (_SIZE // 2) + "]" * (_SIZE // 2)),
    "many data": lambda: _event(*(['"data":1'] * (_SIZE // 9))),
    "escaped data": lambda: _event('"datacontenttype":"text/plain"', '"data":"' + "\\u0041" * (_SIZE // 6) + '"'),
    "large data": lambda: _event(f'"data":"{"x" * _SIZE}"'),
}


def _cloudevents(envelope: str) -> Target:
    serializer = Enveloped(ByteArraySerializer(), envelope, **_DEFAULTS)
    is_json = envelope == "cloudevents"
    return Target(
        name=envelope,
        serializer=serializer,
        corpus=[*map(serializer.serialize, _envelopes()), *(_texts() if is_json else [])],
        bombs=_BOMBS if is_json else {},
        smaller_in_python="beyond the years",
    )


FORMAT: Final = Format(
    targets=[
        *map(_cloudevents, ENVELOPES),
        Target(
            name="debezium",
            serializer=ChangeDeserializer(JsonSerializer(arrow_type=change_type(_ROW, _ROW))),
            corpus=_changes(),
            rows_take_more=True,
            smaller_in_python="beyond the range",
        ),
    ],
    tokens=[
        *(b'"specversion"', b'"1.0"', b'"data"', b'"data_base64"', b'"partitionkey"', b'"time"', b'"datacontenttype"'),
        *(b'"op"', b'"source"', b'"payload"', b'"connector"', b'"sequence"', b'"ts_ms"', b"null", b"-1", b"1.5"),
        *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\xff", b"\0", b"\xef\xbb\xbf", b"\x80"),
    ],
)
