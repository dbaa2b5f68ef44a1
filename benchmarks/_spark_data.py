"""Events of each kind for the Spark benchmark, and the options with which either side decodes them to columns.

A stream is filled at random from a pool of some thousand different events. The values are as hard to read as real ones:

- Doubles use all their digits, and integers have all lengths.
- Some fields are absent in a third of the events.
- A few names are frequent.
- Most lists have up to two items, and a few have hundreds.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_connector.client import PravegaClient
from pravega_connector.wire import StreamName
from pravega_serde.avro import AvroSerializer
from pravega_serde.java import ClassDescriptor, JavaSerializer
from pravega_serde.registry import serializer

__all__ = ["KEYS", "KINDS", "Kind", "Place", "fill"]

KEYS: Final = 4096
_POOL: Final = 16_384
_NESTED_POOL: Final = 4_096
_STEP_BYTES: Final = 8 << 20
_PRESENT: Final = 0.7
_SHUFFLED: Final = 0.1  # part of the JSON events with keys in any order
_SKEW: Final = 1.2  # exponent of the lengths of lists
_LONGEST: Final = 300

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Folder, registry and group for the events of one kind."""

    folder: Path
    registry: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Events of one kind."""

    events: Sequence[bytes]
    ours: Mapping[str, str] = field(default_factory=dict)
    """Options with which our source returns columns."""
    columns: str | None = None
    """Columns as DDL for both sides, if the user must name them."""
    theirs: Mapping[str, Any] | None = None
    """Arguments that decode the Scala connector's events to columns: see ``_decoded`` in peers/spark_app.py."""
    absent_is_default: bool = False
    """True if an absent field is its type's default on one side and null on the other."""

    @property
    def size(self) -> int:
        """Average number of bytes of an event."""
        return round(sum(map(len, self.events)) / len(self.events))


def fill(controller: str, stream: StreamName, events: Sequence[bytes], count: int) -> None:
    """Write ``count`` random events of these."""
    source = np.random.default_rng(20_240_101)
    pool, keys = pa.array(events, pa.binary()), pa.array([str(key) for key in range(KEYS)])
    step = max(1, _STEP_BYTES // (pool.nbytes // len(pool)))
    with PravegaClient(controller) as client, client.writer(stream) as writer:
        for first in range(0, count, step):
            rows = min(step, count - first)
            which = pa.array(source.integers(0, len(pool), rows))
            writer.write_column(pool.take(which), keys.take(pa.array(source.integers(0, KEYS, rows))))
        writer.flush()


def _readings(source: random.Random) -> Iterator[Row]:
    for _ in range(_POOL):
        yield {
            "id": source.getrandbits(source.randrange(1, 60)),
            "name": f"sensor-{min(int(source.paretovariate(0.5)), 100_000)}",
            "temp": source.gauss(20, 8),
            "count": min(int(source.paretovariate(0.3)), 2**31 - 1),
            "ok": source.random() < 0.9,
            "note": f"note {source.getrandbits(32):x}" if source.random() < _PRESENT else None,
            "at": 1_790_000_000_000_000 + source.getrandbits(44),
        }


def _orders(source: random.Random) -> Iterator[Row]:
    for _ in range(_NESTED_POOL):
        length = min(int(source.paretovariate(_SKEW)) - 1, _LONGEST)
        yield {
            "id": source.getrandbits(source.randrange(1, 60)),
            "customer": f"customer-{min(int(source.paretovariate(0.5)), 100_000)}",
            "state": source.choice(("OPEN", "DONE", "LOST")),
            "place": {"x": source.uniform(-180, 180), "y": source.uniform(-90, 90), "label": _maybe(source, "dock")},
            "items": [
                {
                    "sku": f"sku-{source.getrandbits(20)}",
                    "price": source.expovariate(0.05),
                    "amount": min(int(source.paretovariate(1)), 1000),
                    "note": _maybe(source, "gift"),
                }
                for _ in range(length)
            ],
            "counts": {f"k{n}": source.getrandbits(20) for n in range(source.randrange(3))},
            "note": _maybe(source, "note"),
        }


def _maybe(source: random.Random, text: str) -> str | None:
    return f"{text} {source.getrandbits(24):x}" if source.random() < _PRESENT else None


def _random() -> random.Random:
    return random.Random(20_240_101)


def _raw(shortest: int, longest: int) -> Callable[[Place], Kind]:
    def make(_: Place) -> Kind:
        source = _random()
        return Kind(events=[source.randbytes(source.randint(shortest, longest)) for _ in range(_POOL // 4)])

    return make


# ---- Avro ------------------------------------------------------------------------------------------------------------

_OPTIONAL_TEXT: Final = ["null", "string"]
_READING_AVRO: Final = json.dumps(
    {
        "type": "record",
        "name": "Reading",
        "namespace": "benchmark",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "temp", "type": "double"},
            {"name": "count", "type": "int"},
            {"name": "ok", "type": "boolean"},
            {"name": "note", "type": _OPTIONAL_TEXT},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
)
_ITEM_AVRO: Final = [("sku", "string"), ("price", "double"), ("amount", "int"), ("note", _OPTIONAL_TEXT)]
_PLACE_AVRO: Final = [("x", "double"), ("y", "double"), ("label", _OPTIONAL_TEXT)]


def _record(name: str, fields: Sequence[tuple[str, Any]]) -> Row:
    return {"type": "record", "name": name, "fields": [{"name": each, "type": kind} for each, kind in fields]}


_ORDER_AVRO: Final = json.dumps(
    _record(
        "Order",
        [
            ("id", "long"),
            ("customer", "string"),
            ("state", {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE", "LOST"]}),
            ("place", _record("Place", _PLACE_AVRO)),
            ("items", {"type": "array", "items": _record("Item", _ITEM_AVRO)}),
            ("counts", {"type": "map", "values": "long"}),
            ("note", _OPTIONAL_TEXT),
        ],
    )
)


def _timed_readings() -> Iterator[Row]:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    for row in _readings(_random()):
        yield row | {"at": epoch + timedelta(microseconds=row["at"])}


def _avro_flat(_: Place) -> Kind:
    return _avro(_READING_AVRO, _timed_readings())


def _avro_nested(_: Place) -> Kind:
    return _avro(_ORDER_AVRO, _orders(_random()))


def _avro(schema: str, rows: Iterator[Row]) -> Kind:
    made = AvroSerializer(schema)
    return Kind(
        events=[made.serialize(row) for row in rows],
        ours={"format": "avro", "avro_schema": schema},
        theirs={"how": "avro", "schema": schema},
    )


def _registry(place: Place) -> Kind:
    made = serializer(
        place.registry, group=place.group, schema=_READING_AVRO, format="avro", create_group=True, register_schema=True
    )
    return Kind(
        events=[made.serialize(row) for row in _timed_readings()],
        ours={"registry": place.registry, "group": place.group},
        theirs={"how": "avro", "schema": _READING_AVRO, "header": 5},
    )


# ---- Protobuf --------------------------------------------------------------------------------------------------------

_T: Final = FieldDescriptorProto
_MESSAGES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Reading": {
        "id": _T.TYPE_INT64,
        "name": _T.TYPE_STRING,
        "temp": _T.TYPE_DOUBLE,
        "count": _T.TYPE_INT32,
        "ok": _T.TYPE_BOOL,
        "note": _T.TYPE_STRING,
        "at": _T.TYPE_INT64,
    },
    "Place": {"x": _T.TYPE_DOUBLE, "y": _T.TYPE_DOUBLE, "label": _T.TYPE_STRING},
    "Item": {"sku": _T.TYPE_STRING, "price": _T.TYPE_DOUBLE, "amount": _T.TYPE_INT32, "note": _T.TYPE_STRING},
    "Order": {
        "id": _T.TYPE_INT64,
        "customer": _T.TYPE_STRING,
        "state": ".benchmark.State",
        "place": ".benchmark.Place",
        "items": "*.benchmark.Item",
        "note": _T.TYPE_STRING,
    },
}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="benchmark.proto", package="benchmark", syntax="proto3")
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("UNKNOWN", "OPEN", "DONE", "LOST")):
        state.value.add(name=name, number=number)
    for message, fields in _MESSAGES.items():
        added = file.message_type.add(name=message)
        for number, (name, kind) in enumerate(fields.items(), 1):
            added.field.add(name=name, number=number, **_type(kind))
    return file


def _type(kind: Any) -> Row:
    if not isinstance(kind, str):
        return {"type": kind, "label": _T.LABEL_OPTIONAL}
    name = kind.removeprefix("*")
    label = _T.LABEL_REPEATED if name != kind else _T.LABEL_OPTIONAL
    return {"type": _T.TYPE_ENUM if name.endswith("State") else _T.TYPE_MESSAGE, "type_name": name, "label": label}


def _protobuf_flat(place: Place) -> Kind:
    return _protobuf(place, "Reading", _readings(_random()))


def _protobuf_nested(place: Place) -> Kind:
    return _protobuf(place, "Order", _orders(_random()))


def _protobuf(place: Place, name: str, rows: Iterator[Row]) -> Kind:
    file = _file()
    path = place.folder / "benchmark.desc"
    path.write_bytes(FileDescriptorSet(file=[file]).SerializeToString())
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(f"benchmark.{name}"))
    wanted = _MESSAGES[name]
    return Kind(
        events=[
            message(**{key: value for key, value in row.items() if key in wanted}).SerializeToString() for row in rows
        ],
        ours={"format": "protobuf", "protobuf_descriptor": str(path), "protobuf_message": f"benchmark.{name}"},
        theirs={"how": "protobuf", "message": f"benchmark.{name}", "descriptor": str(path)},
        absent_is_default=True,
    )


# ---- JSON ------------------------------------------------------------------------------------------------------------

_READING_DDL: Final = "id BIGINT, name STRING, temp DOUBLE, count INT, ok BOOLEAN, note STRING, at BIGINT"
_ORDER_DDL: Final = (
    "id BIGINT, customer STRING, state STRING, place STRUCT<x: DOUBLE, y: DOUBLE, label: STRING>, "
    "items ARRAY<STRUCT<sku: STRING, price: DOUBLE, amount: INT, note: STRING>>, note STRING"
)


def _json_flat(_: Place) -> Kind:
    return _json(_READING_DDL, _readings(_random()))


def _json_nested(_: Place) -> Kind:
    return _json(_ORDER_DDL, ({**row, "counts": None} for row in _orders(_random())))


def _json(columns: str, rows: Iterator[Row]) -> Kind:
    source = _random()
    events = [json.dumps(_present(row, source), separators=(",", ":")).encode() for row in rows]
    return Kind(events=events, ours={"format": "json"}, columns=columns, theirs={"how": "json", "schema": columns})


def _present(value: Any, source: random.Random) -> Any:
    """Return the value without null fields. Some objects have their keys in another order."""
    if isinstance(value, list):
        return [_present(each, source) for each in value]
    if not isinstance(value, dict):
        return value
    names = [name for name in value if value[name] is not None]
    if source.random() < _SHUFFLED:
        source.shuffle(names)
    return {name: _present(value[name], source) for name in names}


# ---- Java ------------------------------------------------------------------------------------------------------------

_READING_JAVA: Final = dict(  # noqa: C408 -- names without quotes
    id="long",
    name="java.lang.String",
    temp="double",
    count="int",
    ok="boolean",
    note="java.lang.String",
    at="java.lang.Long",
)


def _java_objects(_: Place) -> Kind:
    made = JavaSerializer(ClassDescriptor.of("Reading", 5, _READING_JAVA))
    events = made.encode_column(pa.array(list(_readings(_random())), made.arrow_type)).to_pylist()
    return Kind(
        events=events,
        ours={"format": "java", "java_sample": events[0].hex()},
        theirs={"how": "java", "function": "ObjectColumns$Readings", "schema": _READING_DDL},
    )


def _java_strings(_: Place) -> Kind:
    made, source = JavaSerializer("java.lang.String"), _random()
    texts = (f"{row['name']} says {row['temp']} {row['note'] or ''}" for row in _readings(source))
    events = [made.serialize(text) for text in texts]
    return Kind(
        events=events,
        ours={"format": "java", "java_type": "java.lang.String"},
        theirs={"how": "java", "function": "ObjectColumns$Text", "schema": "STRING"},
    )


#: Each kind by its name.
KINDS: Final[Mapping[str, Callable[[Place], Kind]]] = {
    "100 B": _raw(100, 100),
    "10–200 B": _raw(10, 200),
    "1 KiB": _raw(1024, 1024),
    "flat Avro": _avro_flat,
    "nested Avro": _avro_nested,
    "flat Protobuf": _protobuf_flat,
    "nested Protobuf": _protobuf_nested,
    "flat JSON": _json_flat,
    "nested JSON": _json_nested,
    "Java strings": _java_strings,
    "Java objects": _java_objects,
    "registry's Avro": _registry,
}
