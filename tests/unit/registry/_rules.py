"""Schemas with rules, in a Confluent-compatible registry in memory."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry
from tests.unit.registry._scripted import answer, scripted

__all__ = [
    "AVRO",
    "FORMATS",
    "JSON",
    "PROTOBUF",
    "VALUE",
    "encrypting",
    "register",
    "rule",
    "served_registry",
    "text_of",
]

VALUE: Final[dict[str, Any]] = {"id": 7, "card": "4111", "tags": ["a", "müsli"]}
AVRO: Final = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "card", "type": ["null", "string"], "confluent:tags": ["PII"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "confluent:tags": ["PII"]},
    ],
}
JSON: Final = {
    "type": "object",
    "title": "Order",
    "properties": {
        "id": {"type": "integer"},
        "card": {"oneOf": [{"type": "null"}, {"type": "string"}], "confluent:tags": ["PII"]},
        "tags": {"type": "array", "items": {"type": "string"}, "confluent:tags": ["PII"]},
    },
}


def _protobuf() -> FileDescriptorSet:
    file = FileDescriptorProto(name="order.proto", package="shop", syntax="proto3", dependency=["confluent/meta.proto"])
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="card", number=2, type=9, label=1)
    message.field.add(name="tags", number=3, type=9, label=3)
    for field in message.field[1:]:
        # confluent.field_meta, whose field 3 has the tags
        field.options.MergeFromString(b"\x82\x44\x05\x1a\x03PII")
    return FileDescriptorSet(file=[file])


PROTOBUF: Final = _protobuf()
#: Format -> schema of the value.
FORMATS: Final[Mapping[str, Any]] = {"avro": AVRO, "json": JSON, "protobuf": PROTOBUF}


def text_of(format: str) -> str:
    """Return the text of the schema of a format, as a registry has it."""
    if format == "protobuf":
        return base64.b64encode(PROTOBUF.file[0].SerializeToString()).decode()
    return json.dumps(FORMATS[format])


def rule(type: str, /, **more: Any) -> dict[str, Any]:
    """Return a rule of both directions, whose type is also its name."""
    return {"name": type.lower(), "kind": "TRANSFORM", "mode": "WRITEREAD", "type": type, **more}


def encrypting(algorithm: str = "AES256_GCM", days: int = 0, **more: Any) -> dict[str, Any]:
    params = {
        "encrypt.kek.name": f"kek-{algorithm}-{days}",
        "encrypt.kms.type": "local-kms",
        "encrypt.kms.key.id": "mine",
        "encrypt.dek.algorithm": algorithm,
        "encrypt.dek.expiry.days": str(days),
    }
    return rule("ENCRYPT", tags=["PII"], params=params, **more)


def register(
    registry: ConfluentMemoryRegistry,
    subject: str,
    schema: Any,
    *rules: Mapping[str, Any],
    kind: str = "AVRO",
    phase: str = "domainRules",
    metadata: Mapping[str, Any] | None = None,
    references: Sequence[Mapping[str, Any]] = (),
    **rule_set: Any,
) -> int:
    """Register a schema with rules, and return its id."""
    body: dict[str, Any] = {"schema": schema if isinstance(schema, str) else json.dumps(schema), "schemaType": kind}
    body |= {"references": list(references), "metadata": dict(metadata or {})}
    body["ruleSet"] = {phase: list(rules), **rule_set}
    status, answered = registry.answer("POST", f"/subjects/{subject}/versions", {}, json.dumps(body).encode())
    found = json.loads(answered)
    assert status == 200, found
    number: int = found["id"]
    return number


@contextlib.contextmanager
def served_registry() -> Iterator[tuple[ConfluentMemoryRegistry, str]]:
    """Serve a registry in memory over real sockets."""
    registry = ConfluentMemoryRegistry()

    def act(handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        status, content = registry.answer(
            handler.command, parts.path, dict(parse_qsl(parts.query)), served.requests[-1].body
        )
        answer(handler, status, content)

    with scripted(act) as served:
        yield registry, served.uri
