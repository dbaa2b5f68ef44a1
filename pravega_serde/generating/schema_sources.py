"""Schemas of files and of sniffed events, in the form in which a registry has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from pravega_serde.errors import SchemaError, SerdeError, UnsupportedTargetError
from pravega_serde.protobuf.schema import load as load_message
from pravega_serde.protobuf.texts import compiled_file
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.formats import event_type
from pravega_serde.sniffing.results import Sniffed

#: Members of the result of ``sniff`` in JSON.
_SNIFFED: Final = frozenset({"format", "parts", "scanned", "examined"})
_DESCRIPTORS: Final = (".binpb", ".desc", ".pb")
_SUFFIXES: Final = (".avsc", ".json", ".proto", *_DESCRIPTORS)


def file_schema(path: Path, name: str, type_name: str | None) -> SchemaInfo:
    """Return the schema in a file. The suffix of the file selects the format.

    ``name`` is the type of a JSON schema without title. A Protobuf schema has the type ``type_name``, or an empty one
    for all messages of the file. Raises :class:`SchemaError`, and :class:`UnsupportedTargetError` for other files.
    """
    if path.suffix not in _SUFFIXES:
        raise UnsupportedTargetError(
            f"the file {path.name!r:.200} has none of the suffixes of schema files: {', '.join(_SUFFIXES)}"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SerdeError(f"cannot read {path}: {error.strerror or error}; check the path") from error
    if path.suffix == ".proto":
        return _protobuf(compiled_file(path).SerializeToString(), type_name)
    if path.suffix in _DESCRIPTORS:
        return _protobuf(data, type_name)
    text = _decoded(data, path)
    if path.suffix == ".avsc":
        return _only(_avro(text), type_name)
    parsed = _parsed(text, path)
    if isinstance(parsed, Mapping) and parsed.keys() >= _SNIFFED:
        return _only(_of_result(parsed, name), type_name)
    return _only(_json(text, name), type_name)


def sniffed_schema(found: Sniffed, name: str) -> SchemaInfo:
    """Return the schema of the largest part that has one. Raises :class:`UnsupportedTargetError`."""
    return _of_result({"parts": [each.to_dict() for each in found.parts], "format": found.format}, name)


def _of_result(result: Mapping[str, Any], name: str) -> SchemaInfo:
    framings: set[str] = set()
    try:
        for part in result["parts"]:
            text, suffix = part["proposal"]["schema_file"], part["proposal"]["schema_suffix"]
            if text:
                return _avro(text) if suffix == ".avsc" else _json(text, name)
            framings |= set(part["framing"])
            if part["class_infos"]:
                raise UnsupportedTargetError(
                    "the result of sniff has only the names and fields of Java classes; use --from sniff with the "
                    "events"
                )
    except (KeyError, TypeError) as error:
        raise SchemaError(f"the file is not a result of sniff: {type(error).__name__} {error}") from error
    hint = "use --from registry" if framings & {"pravega-registry", "confluent", "apicurio"} else "use a schema file"
    raise UnsupportedTargetError(
        f"the format of the events is {result['format']}, and they show neither a schema nor Java objects; {hint}"
    )


def _avro(text: str) -> SchemaInfo:
    return event_type(text, format="avro").info


def _json(text: str, name: str) -> SchemaInfo:
    title = json.loads(text).get("title") if text.lstrip().startswith("{") else None
    return SchemaInfo(title if isinstance(title, str) and title else name, SerializationFormat.JSON, text.encode())


def _protobuf(data: bytes, type_name: str | None) -> SchemaInfo:
    info = SchemaInfo(type_name or "", SerializationFormat.PROTOBUF, data)
    if type_name is not None:
        load_message(data, type_name)
    return info


def _only(info: SchemaInfo, type_name: str | None) -> SchemaInfo:
    """Return the schema under a chosen name. Avro schemas have their own."""
    if type_name is None or type_name == info.type:
        return info
    if info.format == SerializationFormat.AVRO:
        raise SchemaError(f"the schema is of {info.type}, but the type is {type_name}; omit the type")
    return replace(info, type=type_name)


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise SchemaError(f"the file {path.name!r} is not UTF-8: {error.reason}") from error


def _parsed(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the file {path.name!r} is not JSON: {error}") from error
