"""Values that Java's registry serializers wrote, as ours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.message import Message

from pravega_serde.registry import CodecType, GroupProperties, SchemaInfo, SchemaRegistryClient, VersionInfo

__all__ = ["STATE", "VECTORS", "as_java", "as_json", "replay"]

_FOLDER: Final = Path(__file__).parents[2] / "vectors"
VECTORS: Final[list[dict[str, Any]]] = [
    json.loads(line) for line in (_FOLDER / "registry.jsonl").read_text().splitlines()
]
STATE: Final[dict[str, Any]] = json.loads((_FOLDER / "registry_state.json").read_text())


def replay(client: SchemaRegistryClient, calls: Iterable[dict[str, Any]]) -> None:
    """Make the calls that Java made, and compare each answer with the recorded one."""
    for call in calls:
        group, *rest = call["args"]
        match call["call"]:
            case "addGroup":
                assert client.add_group(group, GroupProperties.from_json(rest[0])) == call["result"]
            case "addCodecType":
                client.add_codec(group, CodecType.from_json(rest[0]))
            case "addSchema":
                assert client.add_schema(group, SchemaInfo.from_json(rest[0])).to_json() == call["result"]
            case "getEncodingId":
                found = client.encoding_id(group, VersionInfo.from_json(rest[0]), rest[1])
                assert found == call["result"]["encodingId"]
            case other:
                raise AssertionError(other)


def as_json(value: Any) -> Any:
    """A value of ours in the notation of the vectors."""
    if isinstance(value, Message):
        return json_format.MessageToDict(
            value, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    return {key: as_json(inner) for key, inner in value.items()} if isinstance(value, dict) else value


def as_java(vector: dict[str, Any], message: type[Message] | None = None) -> Any:
    """A vector's value, as it is given to a serializer."""
    value = vector["value"]
    if message is not None:
        return json_format.ParseDict(value, message())
    if "digest" in value:
        return {**value, "digest": bytes.fromhex(value["digest"]["hex"])}
    return value
