"""Random events with the header of a schema registry: several versions of a schema, read as one of them."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorSet

from pravega_serde.json.derive import json_schema_of
from pravega_serde.registry import Compatibility, GroupProperties, SerializationFormat, deserializer, event_type
from pravega_serde.registry.codecs import CODEC_GZIP
from pravega_serde.registry.memory import mock_confluent_registry
from pravega_serde.registry.settings import serializer_config
from pravega_serde.registry.stores import store_of
from tests.fuzz import jvm_schemas
from tests.fuzz._messages import fill
from tests.fuzz._target import Target

__all__ = ["Framed", "framed"]

_EVENTS: Final = 20
_NEW: Final = GroupProperties(SerializationFormat.ANY, Compatibility.ALLOW_ANY, allow_multiple_types=True)
_groups: Final = itertools.count()

#: Returns the payload of a random value.
Payload = Callable[[], bytes]
#: Schema of a version, and its payloads.
Version = tuple[Any, Payload]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framed(Target):
    """Events of a registry."""

    late: Callable[[], Sequence[bytes]]
    """Register one more version, and return events of it."""


def framed(name: str, chance: random.Random) -> Framed:
    """Return a target of a new group of one of the registries. Raises SchemaError for a schema without columns."""
    uris = ("mock://fuzz", "confluent+mock://fuzz", "apicurio+mock://fuzz")
    # Apicurio has Protobuf files as source, which a compiler reads for each version.
    uri = chance.choice(uris if name != "protobuf" or chance.random() < 0.01 else uris[:2])
    if "+" in uri:
        mock_confluent_registry(uri).answer("PUT", "/config", {}, b'{"compatibility": "NONE"}')
    group = f"group-{next(_groups)}"
    versions = _VERSIONS[name](chance)
    reader = chance.choice(versions)[0]
    *known, late = versions

    def events(version: Version) -> list[bytes]:
        found = []
        codec = "gzip" if uri == "mock://fuzz" and chance.random() < 0.3 else None
        for each in (codec, None):  # the latest encoding is not compressed
            header = _header(uri, group, name, version[0], each)
            if uri.startswith("apicurio") and chance.random() < 0.5:
                header = bytes(5) + header[1:]  # the global id
            payloads = [version[1]() for _ in range(_EVENTS if each == codec else 0)]
            found += [header + (CODEC_GZIP.pack(p) if each else p) for p in payloads]
        return found

    corpus = [event for version in known for event in events(version)]
    corpus += [b"", b"\0\0\0", b"\1\0\0\0\x63a", b"\0\0\0\0\x63a", bytes(8) + b"\x63a"]
    serializer = deserializer(
        uri,
        group=group,
        schema=reader,
        format=name,
        type="r.M0" if name == "protobuf" else None,
        unknown_ids="corrupt",
        evolution=chance.choice(("resolve",) * 9 + ("corrupt",)),
        check_readable=False,
    )
    title = f"{name} of {uri}, read as {reader}"
    return Framed(name=title[:1500], serializer=serializer, corpus=corpus, late=lambda: events(late))


def _header(uri: str, group: str, name: str, schema: Any, codec: str | None) -> bytes:
    settings: dict[str, Any] = {"register_schema": True, "allow_incompatible": True}
    if codec is not None:
        settings |= {"codec": codec, "register_codec": True}
    settings["create_group"] = True if "+" in uri else _NEW
    store = store_of(serializer_config(uri, group, settings))
    store.prepare_writer(SerializationFormat.ANY)
    type_name = {"avro": None, "json": "T", "protobuf": "r.M0"}[name]
    if name == "json":
        schema = json_schema_of(schema, "T")
    return store.prepared(event_type(schema, format=name, type=type_name))[0]


# ---- versions of a schema ----


def _avro(chance: random.Random) -> list[Version]:
    make = jvm_schemas._Avro(chance)
    base = make.record()

    def version() -> Version:
        schema = copy.deepcopy(base)
        fields = [each for each in schema["fields"] if chance.random() < 0.95]
        for number, (kind, default) in enumerate(_DEFAULTS):
            if chance.random() < 0.3:
                added = {"name": f"g{number}", "type": kind, "default": default}
                fields.insert(chance.randrange(len(fields) + 1), added)
        for each in fields:
            if isinstance(each["type"], str) and each["type"] in _PROMOTED and chance.random() < 0.3:
                each["type"] = _PROMOTED[each["type"]]
                each.pop("default", None)
        schema["fields"] = fields or schema["fields"][:1]
        return schema, lambda: make.value(schema)

    return [version() for _ in range(chance.randrange(2, 6))]


_DEFAULTS: Final[Sequence[tuple[Any, Any]]] = (
    ("int", 7),
    ("string", "default"),
    (["null", "long"], None),
    ({"type": "array", "items": "int"}, [1, 2]),
    ({"type": "map", "values": "double"}, {"a": 0.5}),
)
_PROMOTED: Final = {"int": "long", "long": "double", "float": "double", "string": "bytes"}


def _json(chance: random.Random) -> list[Version]:
    make = jvm_schemas._Json(chance)
    base = make.struct()

    def version() -> Version:
        fields = [each for each in base if chance.random() < 0.9] or list(base)[:1]
        kind = pa.struct(fields)
        return pa.schema(fields), lambda: make.value(kind).encode()

    return [version() for _ in range(chance.randrange(2, 6))]


def _protobuf(chance: random.Random) -> list[Version]:
    base = jvm_schemas._Protobuf(chance)

    def version() -> Version:
        files = FileDescriptorSet.FromString(base._set.SerializeToString())
        file = files.file[-1]
        (root,) = (each for each in file.message_type if each.name == "M0")
        if len(root.field) > 1 and chance.random() < 0.5 and not root.oneof_decl and not root.nested_type:
            del root.field[chance.randrange(len(root.field))]
        if chance.random() < 0.5:
            root.field.add(name="g", number=77, label=1, type=FieldDescriptorProto.TYPE_INT64)
        if chance.random() < 0.3:  # the message is not the first one of its file
            others = [each.__class__.FromString(each.SerializeToString()) for each in file.message_type]
            del file.message_type[:]
            file.message_type.add(name="First").field.add(name="a", number=1, label=1, type=5)
            file.message_type.extend(others)

        def payload() -> bytes:
            message = type.payloads.message_class()
            fill(message, chance, 4)
            return bytes(message.SerializeToString())

        type: Any = event_type(files, format="protobuf", type="r.M0")
        return files, payload

    return [version() for _ in range(chance.randrange(2, 4))]


_VERSIONS: Final[Mapping[str, Callable[[random.Random], list[Version]]]] = {
    "avro": _avro,
    "json": _json,
    "protobuf": _protobuf,
}
