"""A registry of one group, over real sockets: what a reader asks for, and nothing that a writer does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any

from pravega_serde.registry import CodecType, EncodingInfo, SchemaInfo, VersionInfo, event_type
from tests.unit.registry._scripted import Scripted, answer, scripted

__all__ = ["encoding", "served", "typed"]


def typed(schema: Any, **settings: Any) -> SchemaInfo:
    """A schema as the registry has it."""
    return event_type(schema, **settings).info


def encoding(schema: SchemaInfo, *, version: int = 0, codec: CodecType = CodecType.NONE) -> EncodingInfo:
    return EncodingInfo(schema, VersionInfo(schema.type, schema.format.name, version, version), codec)


@contextlib.contextmanager
def served(
    encodings: Mapping[int, EncodingInfo], *, latest: Sequence[SchemaInfo] = (), can_read: bool = True
) -> Iterator[Scripted]:
    """Serves every group whose name does not begin with ``no``."""
    codecs = {each.codec.name: each.codec.to_json() for each in encodings.values() if each.codec.name}
    schemas = [{"schemaInfo": each.to_json(), "versionInfo": encoding(each).version.to_json()} for each in latest]

    def act(handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.split("?")[0]
        group, _, rest = path.removeprefix("/v1/groups/").partition("/")
        found: Any = {
            "": {"serializationFormat": {"serializationFormat": "Any", "fullTypeName": "Any"},
                 "compatibility": {"policy": "AllowAny"}, "allowMultipleTypes": True, "properties": {}},
            "codecTypes": {"codecTypes": list(codecs.values())},
            "schemas": {"schemas": schemas},
            "schemas/versions/canRead": {"compatible": can_read},
        }.get(rest)  # fmt: skip
        if rest.startswith("encodings/") and int(rest[10:]) in encodings:
            found = encodings[int(rest[10:])].to_json()
        if found is None or group.startswith("no"):
            answer(handler, 404, b"")
        else:
            answer(handler, 200, found)

    with scripted(act) as registry:
        yield registry
