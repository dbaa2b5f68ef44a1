"""Proposals: how Spark, the client and the schema registry handle the events of a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from pravega_serde.columnar.types import SchemaWalk, is_family
from pravega_serde.envelopes import enveloped_fields
from pravega_serde.envelopes.debezium import change_schema
from pravega_serde.errors import SchemaError
from pravega_serde.format_table import FORMATS
from pravega_serde.framings.layouts import LAYOUTS
from pravega_serde.java import JavaSerializer
from pravega_serde.json import json_schema_of
from pravega_serde.sniffing.java_classes import JavaClasses
from pravega_serde.sniffing.payloads import READ_AS, UNKNOWN
from pravega_serde.sniffing.results import SniffedProposal

#: Address of a registry in a proposal.
_REGISTRY: Final = "http://localhost:9092"
#: Framing of another registry -> its address in a proposal.
_OTHER_REGISTRIES: Final = {
    "confluent": "confluent+http://localhost:8081",
    "apicurio": "apicurio+http://localhost:8080",
}
#: Bytes of an event that a proposal shows as sample of its Java class.
_LARGEST_SAMPLE: Final = 1024
_ENVELOPES: Final = frozenset({"cloudevents", "debezium", "kafka-connect"})
_WITH_SCHEMA: Final = {
    "avro": 'pravega_serde.AvroSerializer("events.avsc")',
    "protobuf": 'pravega_serde.ProtobufSerializer("events.desc")',
}
_CLASSES: Final = {
    "bytes": "pravega_serde.ByteArraySerializer()",
    "cbor": "pravega_serde.CborSerializer()",
    "java": "pravega_serde.JavaSerializer()",
    "json": "pravega_serde.JsonSerializer()",
    "string": "pravega_serde.UTF8StringSerializer()",
}


def proposal(
    stream: str,
    format_name: str,
    framing: Sequence[str],
    *,
    columns: tuple[pa.Schema | None, tuple[str, ...]] = (None, ()),
    java: JavaClasses | None = None,
    avro_schema: str = "",
    registry: tuple[str, str | None] | None = None,
) -> SniffedProposal:
    """Return the proposal for a part. ``registry`` is the address and the group of its registry, if it is known."""
    outer = [name for name in framing if name not in _ENVELOPES]
    if outer:
        found = _framed(stream, outer, format_name, columns=columns[0], avro_schema=avro_schema, registry=registry)
        is_change = "debezium" in framing and "registry" in found.spark
        return replace(found, spark={**found.spark, "unwrap": "debezium"}) if is_change else found
    if "cloudevents" in framing:
        return _cloudevents(stream, columns[0])
    if "debezium" in framing:
        return _changes(stream, columns[0])
    read_as = READ_AS.get(format_name, "bytes")
    if read_as == "java" and java is not None:
        return _java(stream, java)
    if read_as in ("json", "cbor"):
        return _documents(stream, read_as, *columns)
    return _SIMPLE.get(read_as, _bytes)(stream) if read_as != "avro" else _avro(stream, avro_schema)


def _framed(
    stream: str,
    framing: Sequence[str],
    format_name: str,
    *,
    columns: pa.Schema | None,
    avro_schema: str,
    registry: tuple[str, str | None] | None,
) -> SniffedProposal:
    uri, group = registry if registry is not None and _may_have(registry[0], framing) else (None, None)
    if framing[0] == "pravega-registry":
        return _from_registry(stream, format_name, columns, uri or _REGISTRY, group)
    if len(framing) == 1 and framing[0] in _OTHER_REGISTRIES:
        return _from_other_registry(stream, framing[0], uri, group)
    if all(name in LAYOUTS for name in framing):
        return _in_frames(stream, framing, format_name, columns, avro_schema)
    return _bytes(stream, _unwrapping(framing, format_name), format_name, columns, avro_schema)


def _may_have(registry: str, framing: Sequence[str]) -> bool:
    """Return True if the ids of a framing can be those of the registry at an address."""
    return framing[0] in _FRAMINGS_OF.get(registry.partition("+")[0], _FRAMINGS_OF["pravega"])


#: Registry, by the name before its address -> outermost framings of its events.
_FRAMINGS_OF: Final[Mapping[str, Sequence[str]]] = {
    "pravega": ["pravega-registry"],
    "confluent": ["confluent"],
    "apicurio": ["confluent", "apicurio"],
}


def _read(stream: str, serializer: str = "") -> str:
    return f'client.read("{stream}", {serializer})' if serializer else f'client.read("{stream}")'


def _title(stream: str) -> str:
    return stream.rpartition("/")[2]


def _documents(stream: str, read_as: str, columns: pa.Schema | None, left_out: Sequence[str]) -> SniffedProposal:
    notes = []
    if left_out:
        notes.append(f"no column for {', '.join(left_out[:10])}: several types, only null, or an invalid name")
    if columns is None:
        notes.append("the events are not objects with fields, so Spark has no columns for them; use the client")
        return SniffedProposal({}, "", _read(stream, f'"{read_as}"'), notes=tuple(notes))
    schema = json_schema_of(columns, _title(stream)) if read_as == "json" else ""
    return SniffedProposal(
        {"format": read_as},
        ddl(columns),
        _read(stream, f'"{read_as}"'),
        registry_format=FORMATS[read_as].registry_name,
        schema_file=schema,
        schema_suffix=".json" if schema else "",
        notes=tuple(notes),
    )


def _cloudevents(stream: str, columns: pa.Schema | None) -> SniffedProposal:
    """Return the proposal for CloudEvents, by the columns of whole events."""
    names = [] if columns is None else columns.names
    kind = columns.field("data").type if columns is not None and "data" in names else pa.binary()
    if pa.types.is_binary(kind) or "data_base64" in names:
        kind, data = pa.binary(), "bytes"
    else:
        data = "string" if pa.types.is_string(kind) else "json"
    return SniffedProposal(
        {"format": data, "envelope": "cloudevents"},
        ddl(pa.schema(enveloped_fields(kind))),
        _read(stream, f"pravega_serde.Enveloped({_CLASSES[data]})"),
    )


def _changes(stream: str, columns: pa.Schema | None) -> SniffedProposal:
    """Return the proposal for Debezium's change events in JSON, by the columns of whole events."""
    call = _read(stream, f"pravega_serde.ChangeDeserializer({_CLASSES['json']})")
    fields = {} if columns is None else {field.name: field for field in columns}
    if "op" not in fields and "payload" in fields and pa.types.is_struct(fields["payload"].type):
        fields = {field.name: field for field in fields["payload"].type}
    try:
        read = ddl(change_schema(pa.schema(fields.values())))
    except SchemaError:
        read = ""
    notes = () if read else ("name the columns of the rows: op STRING, after STRUCT<id: BIGINT, …>",)
    return SniffedProposal({"format": "json", "unwrap": "debezium"}, read, call, notes=notes)


def _java(stream: str, classes: JavaClasses) -> SniffedProposal:
    call = _read(stream, '"java"')
    smallest = classes.smallest
    if smallest is None:
        note = "no event could be examined within the limits, so Spark has no columns for them; use the client"
        return SniffedProposal({}, "", call, notes=(note,))
    if len(classes.names) != 1:
        return SniffedProposal(
            {}, "", call, notes=("the events have several classes, so Spark has no columns for them",)
        )
    (name,) = classes.names
    if _has_columns(java_type=name):
        return SniffedProposal({"format": "java", "java_type": name}, "", call)
    if not _has_columns(sample=smallest):
        return SniffedProposal({}, "", call, notes=(f"Spark has no columns for {name}",))
    if len(smallest) <= _LARGEST_SAMPLE:
        return SniffedProposal({"format": "java", "java_sample": smallest.hex()}, "", call)
    note = f"save an event: pravega-serde read {stream} --limit 1 --delimiter '' > event.bin"
    return SniffedProposal({"format": "java", "java_sample": "event.bin"}, "", call, notes=(note,))


def _has_columns(*, java_type: str | None = None, sample: bytes | None = None) -> bool:
    try:
        return JavaSerializer(java_type, sample=sample).arrow_type is not None
    except SchemaError:
        return False


def _avro(stream: str, schema: str) -> SniffedProposal:
    return SniffedProposal(
        {"format": "avro", "avro_schema": "events.avsc"},
        "",
        _read(stream, 'pravega_serde.AvroSerializer("events.avsc")'),
        registry_format="Avro",
        schema_file=schema,
        schema_suffix=".avsc",
    )


def _protobuf(stream: str) -> SniffedProposal:
    note = "a descriptor set names the fields: protoc --include_imports --descriptor_set_out=events.desc"
    options = {"format": "protobuf", "protobuf_descriptor": "events.desc"}
    call = _read(stream, 'pravega_serde.ProtobufSerializer("events.desc")')
    return SniffedProposal(options, "", call, registry_format="Protobuf", notes=(note,))


def _string(stream: str) -> SniffedProposal:
    return SniffedProposal({"format": "string"}, "", _read(stream, '"string"'))


def _from_registry(
    stream: str, format_name: str, columns: pa.Schema | None, registry: str, group: str | None
) -> SniffedProposal:
    call = f'pravega_serde.registry.deserializer("{registry}", group="{group or _title(stream)}")'
    name = READ_AS.get(format_name, "")
    schema = json_schema_of(columns, _title(stream)) if name == "json" and columns is not None else ""
    return SniffedProposal(
        {"registry": registry} | ({} if group is None else {"group": group}),
        "",
        _read(stream, call),
        registry_format=FORMATS[name].registry_name if name in FORMATS else "",
        schema_file=schema,
        schema_suffix=".json" if schema else "",
        notes=("the group is the stream's name, unless you set the option group",) if group is None else (),
    )


def _from_other_registry(stream: str, framing: str, registry: str | None, group: str | None) -> SniffedProposal:
    """Return the proposal for events of Confluent's registry or of Apicurio's."""
    notes = []
    if group is None:
        group = f"{_title(stream)}-value"
        notes.append("the group is the subject of the schemas; in Spark, the default is the stream's name and -value")
    if registry is None:
        registry = _OTHER_REGISTRIES[framing]
        if framing == "confluent":
            notes.append(
                f"events of Apicurio 3 have the same header; their registry is {_OTHER_REGISTRIES['apicurio']}"
            )
    call = f'pravega_serde.registry.deserializer("{registry}", group="{group}")'
    return SniffedProposal({"registry": registry, "group": group}, "", _read(stream, call), notes=tuple(notes))


def _in_frames(
    stream: str, framing: Sequence[str], format_name: str, columns: pa.Schema | None, avro_schema: str
) -> SniffedProposal:
    """Return the proposal for events that :class:`~pravega_serde.Framed` reads."""
    notes = []
    # The payloads of registries whose format is not visible are Avro: the others show theirs.
    inner = _WITH_SCHEMA.get(format_name) or _CLASSES.get(READ_AS.get(format_name, ""), _CLASSES["bytes"])
    if format_name == UNKNOWN and framing[0] in ("aws-glue", "azure"):
        inner = _WITH_SCHEMA["avro"]
        notes.append("the payloads are probably Avro: save the schema of the id as events.avsc")
    if framing[0] in ("aws-glue", "grpc"):
        framing = framing[:1]  # it decompresses its payload, too
    for name in reversed(framing):
        inner = f'pravega_serde.Framed({inner}, "{name}")'
    return replace(
        _bytes(stream, tuple(notes), format_name, columns, avro_schema),
        client=_read(stream, inner),
        registry_format=FORMATS[format_name].registry_name if format_name in FORMATS else "",
    )


def _unwrapping(framing: Sequence[str], format_name: str) -> tuple[str, ...]:
    """Return how to get the payload of an event without a serializer for its framing."""
    steps = {
        "confluent": "the schema id is in event[1:5], the payload is event[5:], for Protobuf after its message indexes",
        "apicurio": "the schema id is in event[1:9], the payload is event[9:]",
        "avro-single-object": "the fingerprint of the schema is in event[2:10], the body is event[10:]",
        "avro-container": "each event is a file: read it with fastavro.reader(io.BytesIO(event))",
        "gzip": "decompress each payload with gzip.decompress",
        "zlib": "decompress each payload with zlib.decompress",
        "snappy": "decompress each payload with cramjam.snappy.decompress_raw",
    }
    notes = [steps[name] for name in framing if name in steps]
    if format_name in _CLASSES:
        notes.append(f"then deserialize the payload with {_CLASSES[format_name]}")
    return tuple(notes)


def _bytes(
    stream: str,
    notes: tuple[str, ...] = (),
    format_name: str = "",
    columns: pa.Schema | None = None,
    avro_schema: str = "",
) -> SniffedProposal:
    schema = json_schema_of(columns, _title(stream)) if format_name == "json" and columns is not None else avro_schema
    suffix = (".avsc" if avro_schema else ".json") if schema else ""
    name = FORMATS[format_name].registry_name if format_name in FORMATS and notes else ""
    return SniffedProposal(
        {}, "", _read(stream), registry_format=name, schema_file=schema, schema_suffix=suffix, notes=notes
    )


_SIMPLE: Final[Mapping[str, Callable[[str], SniffedProposal]]] = {"protobuf": _protobuf, "string": _string}


# ---- Spark's types ----

_PLAIN: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def ddl(columns: pa.Schema) -> str:
    """Return columns as Spark's DDL."""
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in _SparkTypes().members(columns, "$").items())


class _SparkTypes(SchemaWalk[str]):
    language, column = "Spark", "spark"

    def leaf(self, kind: pa.DataType, path: str, form: str) -> str:
        return form.replace("(p, s)", f"({kind.precision}, {kind.scale})") if is_family(kind, "decimal") else form

    def items(self, kind: pa.ListType, path: str) -> str:
        return f"ARRAY<{self.item(kind, path)}>"

    def entries(self, kind: pa.MapType, path: str) -> str:
        return f"MAP<{self.of(kind.key_type, path)}, {self.value(kind, path)}>"

    def fields(self, kind: pa.StructType, path: str) -> str:
        members = self.members(kind, path).items()
        return f"STRUCT<{', '.join(f'{_quoted(name)}: {inner}' for name, inner in members)}>"


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"
