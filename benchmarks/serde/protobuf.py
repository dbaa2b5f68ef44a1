"""Protobuf: the flat and the nested record, compared with upb, ptars and protobuf-java."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
from google.protobuf.message import Message

from benchmarks.serde._subject import Subject, Work
from benchmarks.serde.avro import sensor, trip
from pravega_serde.protobuf import ProtobufSerializer

__all__ = ["PACKAGES", "sensor_message", "subjects"]

PACKAGES: Final = ("protobuf", "ptars")

_T: Final = FieldDescriptorProto
_SENSOR: Final = {
    "id": _T.TYPE_INT64,
    "name": _T.TYPE_STRING,
    "temp": _T.TYPE_DOUBLE,
    "count": _T.TYPE_INT32,
    "ok": _T.TYPE_BOOL,
    "ts": _T.TYPE_INT64,
}
_PLACE: Final = {"x": _T.TYPE_DOUBLE, "label": _T.TYPE_STRING}
_TRIP: Final = {"id": _T.TYPE_INT64, "state": ".State", "origin": ".Place", "stops": "*.Place", "note": _T.TYPE_STRING}


def _file() -> FileDescriptorProto:
    file = FileDescriptorProto(name="benchmark.proto", syntax="proto3")
    state = file.enum_type.add(name="State")
    for number, name in enumerate(("OPEN", "DONE", "LOST")):
        state.value.add(name=name, number=number)
    for message, fields in (("Sensor", _SENSOR), ("Place", _PLACE), ("Trip", _TRIP)):
        added = file.message_type.add(name=message)
        for number, (name, kind) in enumerate(fields.items(), 1):
            added.field.add(name=name, number=number, **_type(kind))
    return file


def _type(kind: Any) -> dict[str, Any]:
    if not isinstance(kind, str):
        return {"type": kind, "label": _T.LABEL_OPTIONAL}
    name = kind.removeprefix("*")
    label = _T.LABEL_REPEATED if kind.startswith("*") else _T.LABEL_OPTIONAL
    return {"type": _T.TYPE_ENUM if name == ".State" else _T.TYPE_MESSAGE, "type_name": name, "label": label}


def sensor_message() -> type[Message]:
    """Return the class of the flat record."""
    return _messages()["Sensor"]


def _messages() -> dict[str, type[Message]]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(_file().SerializeToString())
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in ("Sensor", "Trip")}


def subjects(count: int) -> Iterator[Subject]:
    """Return the same records as for the other formats.

    The nested record has no map, because ptars has another type for it.
    """
    messages = _messages()
    flat = [sensor(i) | {"ts": 1_704_067_200_000 + 1000 * i} for i in range(count)]
    yield _subject("Protobuf flat", messages["Sensor"], flat, java="protobuf")
    yield _subject("Protobuf nested", messages["Trip"], [_trip(i) for i in range(count // 2)])


def _trip(i: int) -> dict[str, Any]:
    row = trip(i)
    stops = [{"x": stop["x"], "label": stop["label"] or ""} for stop in row["stops"]]
    return {"id": i, "state": row["state"], "origin": row["origin"], "stops": stops, "note": row["note"] or ""}


def _subject(name: str, message: type[Message], values: list[dict[str, Any]], java: str = "") -> Subject:
    serializer = ProtobufSerializer(message)
    messages = [message(**value) for value in values]
    events = [each.SerializeToString() for each in messages]
    kind = serializer.arrow_type
    names = [field.name for field in kind]
    plain = name.endswith("flat")

    def to_columns() -> pa.Array:
        parsed = [message.FromString(event) for event in events]
        return pa.StructArray.from_arrays(
            [pa.array([getattr(each, field.name) for each in parsed], field.type) for field in kind], names
        )

    libraries: dict[str, dict[str, Work]] = {
        "decode rows": {"upb": lambda: [message.FromString(event) for event in events]},
        "encode rows": {"upb": lambda: [each.SerializeToString() for each in messages]},
        "decode columns": {"upb, pyarrow": to_columns} if plain else {},
        "encode columns": {},
    }
    arrow = serializer.decode_column(pa.array(events))
    if plain:
        libraries["encode columns"]["upb, pyarrow"] = lambda: pa.array(
            [message(**row).SerializeToString() for row in arrow.to_pylist()]
        )
    _add_ptars(libraries, message, events)
    fastest = {"decode columns": ("", 0.8), "encode columns": ("", 0.8)}
    return Subject(name=name, serializer=serializer, events=events, libraries=libraries, java=java, aims=fastest)


def _add_ptars(libraries: dict[str, dict[str, Work]], message: type[Message], events: list[bytes]) -> None:
    try:
        import ptars
    except ImportError:
        return
    handler = ptars.HandlerPool([message.DESCRIPTOR.file]).get_for_message(message.DESCRIPTOR)
    libraries["decode columns"]["ptars"] = lambda: handler.list_to_record_batch(events)
    batch = handler.list_to_record_batch(events)
    libraries["encode columns"]["ptars"] = lambda: handler.record_batch_to_array(batch)
