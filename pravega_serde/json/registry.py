"""Registry part of JSON: types of events from a JSON schema, and compatibility."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar.bad_rows import has_surrogate
from pravega_serde.errors import SchemaError
from pravega_serde.json.derive import arrow_type_of_json_schema, json_schema_of
from pravega_serde.json.rows import parse_plainly
from pravega_serde.json.ruled_values import JsonRuledValues
from pravega_serde.json.serializer import JsonSerializer
from pravega_serde.registry.contract import SchemaInfo, SerializationFormat
from pravega_serde.registry.interface import EventType, RegistryFormat, RuledValues, SchemaText, schema_text
from pravega_serde.serializer_interface import Serializer


class JsonRegistry(RegistryFormat):
    """JSON in a registry: an unchanged JSON schema, under the name passed with it."""

    suffixes = (".json",)
    anonymous = True
    typed_readers_undo_codecs = False

    def event_type(self, schema: Any, name: str | None, *, all_files: bool = False) -> EventType:
        """Return the type of a schema's events; its default name is the schema's title."""
        text = _text_of(schema)
        payloads = _serializer(text)
        title = json.loads(text).get("title") if name is None else name
        if not isinstance(title, str):
            raise SchemaError(
                "a JSON schema is registered under a name; pass type, which in Java is the name of the class"
            )
        return EventType(SchemaInfo(title, SerializationFormat.JSON, text.encode()), payloads)

    def payloads(self, info: SchemaInfo) -> JsonSerializer:
        """Return a serializer with the columns that the schema names."""
        return _serializer(schema_text(info))

    def plain_reader(self, payloads: Serializer[Any]) -> Callable[[bytes], Any]:
        """Return a reader of numbers with a fraction or exponent as decimals."""
        return partial(parse_plainly, decimals=True)

    def from_text(self, schema: SchemaText) -> SchemaInfo:
        """Return the schema under its title, with the schemas to which it refers as definitions.

        A reader of all types reads the events of a schema without title.
        """
        info = SchemaInfo("", SerializationFormat.JSON, schema.text.encode())
        loaded = _load(info)
        if schema.references and isinstance(loaded, dict):
            loaded = _with_definitions(loaded, schema)
            info = replace(info, data=json.dumps(loaded, separators=(",", ":"), ensure_ascii=False).encode())
        title = loaded.get("title") if isinstance(loaded, dict) else None
        return replace(info, type=title) if isinstance(title, str) and not has_surrogate(title) else info

    def ruled_values(self, info: SchemaInfo, tags_of: Callable[[str], frozenset[str]]) -> RuledValues:
        """Return parsed JSON, with the tags of properties."""
        return JsonRuledValues(_load(info), tags_of)

    def referring(self, schema: Any, references: Any) -> SchemaText:
        """Return the text of a schema with those that it refers to with ``$ref``, by their names."""
        if not isinstance(references, Mapping):
            raise SchemaError("references of a JSON schema are by the names in its $ref: pass {'name.json': schema}")
        texts = {name: _text_of(each) for name, each in references.items()}

        def text(own: str, inside: tuple[str, ...]) -> SchemaText:
            used = {reference.partition("#")[0] for reference in _references_in(json.loads(own))}
            names = [name for name in texts if name in used and name not in inside]
            return SchemaText(own, {name: text(texts[name], (*inside, name)) for name in names})

        return text(_text_of(schema), ())

    def derive(self, columns: pa.Schema, name: str) -> str:
        """Return the schema of objects with the columns as properties; see :func:`json_schema_of`."""
        return json_schema_of(columns, name)

    def reader_for(self, info: SchemaInfo, columns: pa.StructType) -> EventType:
        """Return the type with these columns; reading needs only their names and types."""
        return EventType(info, JsonSerializer(arrow_type=columns))

    def faults(self, writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
        """Yield the kinds of documents of the writer's schema that the reader's schema rejects.

        Writers are assumed to write only the members that their schema names. A document may hold any other member as
        well, but this does not make every new property a fault. Drafts 3 to 2020-12 are compared, as far as their
        keywords are known here. An unknown keyword that differs is reported as such.
        """
        written, read = (_load(schema) for schema in (writer, reader))
        yield from _Comparison(written, read).compare(written, read, "$", 0)

    def resolve(self, writer: SchemaInfo, reader: EventType) -> tuple[Any, str]:
        """Return the serializer of the reader; reading needs only the names and types of its columns."""
        return reader.payloads, ""


def _references_in(schema: Any) -> set[str]:
    if isinstance(schema, list):
        return {name for each in schema for name in _references_in(each)}
    if not isinstance(schema, Mapping):
        return set()
    own = {schema["$ref"]} if isinstance(schema.get("$ref"), str) else set()
    return own | {name for each in schema.values() for name in _references_in(each)}


def _with_definitions(loaded: dict[str, Any], schema: SchemaText) -> dict[str, Any]:
    """Return a schema with those that it refers to as definitions, by the names in the references."""
    found: dict[str, Any] = {}
    left = [*schema.references.items()]
    while left:
        name, text = left.pop()
        if name not in found:
            inner = _load(SchemaInfo(name, SerializationFormat.JSON, text.text.encode()))
            if isinstance(inner, dict):
                found[name] = {**_relocated(inner, name, 0), "$id": name}
            left += text.references.items()
    given = loaded.get("definitions")
    return {**loaded, "definitions": {**(given if isinstance(given, dict) else {}), **found}}


def _relocated(schema: Any, name: str, depth: int) -> Any:
    """Return a schema whose references inside itself are references to it by its name."""
    if depth > _DEPTH:
        raise SchemaError(f"the JSON schema {name!r} is nested too deeply")
    if isinstance(schema, list):
        return [_relocated(each, name, depth + 1) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _relocated(each, name, depth + 1) for key, each in schema.items()}
    if isinstance(schema.get("$ref"), str) and schema["$ref"].startswith("#"):
        made["$ref"] = name + schema["$ref"].removesuffix("#")
    return made


def _serializer(text: str) -> JsonSerializer:
    """Return a serializer with the columns that the schema names, if any; rows need none."""
    try:
        return JsonSerializer(arrow_type=arrow_type_of_json_schema(text))
    except SchemaError:
        return JsonSerializer()


def _text_of(schema: Any) -> str:
    """Return the text of a schema from its text, its parsed JSON, or the path of its file."""
    if isinstance(schema, str) and not schema.lstrip().startswith("{"):
        schema = Path(schema)
    try:
        if isinstance(schema, Path):
            schema = schema.read_text(encoding="utf-8")
        if isinstance(schema, Mapping):
            return json.dumps(schema, separators=(",", ":"), ensure_ascii=False)
        if isinstance(schema, str) and isinstance(json.loads(schema), dict):
            return schema
    except (OSError, TypeError, ValueError) as error:
        raise SchemaError(f"invalid JSON schema: {error}") from error
    raise SchemaError(f"a JSON schema must be an object as text, parsed, or in a file, not {type(schema).__name__}")


# ---- compatibility ----

Json = Mapping[str, Any]

# Maximum levels of schemas in schemas, and of compared pairs of schemas: choices inside choices multiply.
_DEPTH: Final = 100
_PAIRS: Final = 20_000
_ALL: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# Keywords without effect on the validity of documents.
_NOTES: Final = frozenset(
    {"$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default"}
    | {"examples", "deprecated", "readOnly", "writeOnly", "links", "contentMediaType", "contentEncoding"}
)
_CHOICES: Final = ("anyOf", "oneOf")
# Bounds of the reader that must not be tighter: True where a larger number is tighter.
_BOUNDS: Final = {
    "minimum": True,
    "exclusiveMinimum": True,
    "minLength": True,
    "minItems": True,
    "minProperties": True,
    "maximum": False,
    "exclusiveMaximum": False,
    "maxLength": False,
    "maxItems": False,
    "maxProperties": False,
}
_USUAL: Final = {"uniqueItems": False, "additionalItems": True, "unevaluatedProperties": True}
_COMPARED: Final = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "enum", "const", "allOf", "$ref"}
    | {*_CHOICES, *_BOUNDS}
)


def _load(schema: SchemaInfo) -> Any:
    try:
        loaded = json.loads(schema.data)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"the schema of type {schema.type!r} is not JSON: {error}") from error
    if not isinstance(loaded, dict | bool):
        raise SchemaError(f"the schema of type {schema.type!r} is not a JSON schema, but {type(loaded).__name__}")
    return loaded


class _Comparison:
    def __init__(self, writer: Any, reader: Any) -> None:
        self._roots = writer, reader
        self._open: set[tuple[int, int]] = set()
        self._pairs = 0

    def compare(self, writer: Any, reader: Any, path: str, depth: int) -> Iterator[str]:
        """Yield the faults of documents of one schema read with the other."""
        writer, reader = self._follow(writer, 0, path), self._follow(reader, 1, path)
        pair = id(writer), id(reader)
        if writer == reader or writer is False or reader in (True, {}) or pair in self._open:
            return
        self._pairs += 1
        if depth > _DEPTH or self._pairs > _PAIRS:
            raise SchemaError(f"the JSON schemas are too deep or too entangled to be compared, at {path}")
        if reader is False:
            yield f"{path}: the reader allows nothing"
            return
        self._open.add(pair)
        try:
            yield from self._schemas({} if writer is True else writer, reader, path, depth + 1)
        finally:
            # Lazy: a caller that needs one fault stops there.
            self._open.discard(pair)

    def _schemas(self, writer: Json, reader: Json, path: str, depth: int) -> Iterator[str]:
        choice = next((name for name in _CHOICES if name in writer), None)
        if choice is not None:
            rest = {name: value for name, value in writer.items() if name != choice}
            for branch in _list(writer, choice, path):
                yield from self.compare({**rest, **branch} if isinstance(branch, dict) else branch, reader, path, depth)
            return
        yield from self._choices(writer, reader, path, depth)
        yield from _types(writer, reader, path)
        yield from _values(writer, reader, path)
        yield from _bounds(writer, reader, path)
        yield from self._objects(writer, reader, path, depth)
        yield from self._arrays(writer, reader, path, depth)
        yield from _others(writer, reader, path)

    def _choices(self, writer: Json, reader: Json, path: str, depth: int) -> Iterator[str]:
        for branch in _list(reader, "allOf", path):
            yield from self.compare(writer, branch, path, depth)
        for name in _CHOICES:
            branches = _list(reader, name, path)
            if branches and not any(self._fits(writer, branch, path, depth) for branch in branches):
                yield f"{path}: the written value fits none of the reader's {name}"

    def _fits(self, writer: Json, branch: Any, path: str, depth: int) -> bool:
        return next(self.compare(writer, branch, path, depth), None) is None

    def _objects(self, writer: Json, reader: Json, path: str, depth: int) -> Iterator[str]:
        if "object" not in _type_names(writer) & _type_names(reader):
            return
        written, read = _properties(writer, path), _properties(reader, path)
        for name in sorted(_required(reader, read) - _required(writer, written)):
            yield f"{path}.{name}: the reader requires it, but the writer may omit it"
        for name, schema in written.items():
            if name in read:
                yield from self.compare(schema, read[name], f"{path}.{name}", depth)
            else:
                yield from self._unnamed(schema, reader, f"{path}.{name}", depth)
        others = writer.get("additionalProperties", True)
        if isinstance(others, dict):
            # A map: its entries may have the names of the reader's properties.
            for name in sorted(read.keys() - written.keys()):
                yield from self.compare(others, read[name], f"{path}.{name}", depth)
        if others is not False:
            yield from self._unnamed(others, reader, f"{path}.*", depth)

    def _unnamed(self, schema: Any, reader: Json, path: str, depth: int) -> Iterator[str]:
        """Yield the faults of a member that the reader's properties do not name."""
        others = reader.get("additionalProperties", True)
        if others is False:
            yield f"{path}: the reader does not name it, and allows no additional properties"
        else:
            yield from self.compare(schema, others, path, depth)

    def _arrays(self, writer: Json, reader: Json, path: str, depth: int) -> Iterator[str]:
        if "array" not in _type_names(writer) & _type_names(reader):
            return
        written, read = writer.get("items", True), reader.get("items", True)
        if isinstance(written, list) or isinstance(read, list):
            if written != read:
                yield f"{path}[]: the items' positions changed, which is not compared further"
        else:
            yield from self.compare(written, read, f"{path}[]", depth)

    def _follow(self, schema: Any, side: int, path: str) -> Any:
        """Return the target of a reference inside the schema. Raise :class:`SchemaError` if there is none."""
        seen: set[str] = set()
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str) and schema["$ref"] not in seen:
            reference = schema["$ref"]
            seen.add(reference)
            schema = _target(self._roots[side], reference)
        if not isinstance(schema, dict | bool):
            raise SchemaError(f"at {path} a JSON schema is expected, not {type(schema).__name__}")
        return schema


def _target(root: Any, reference: str) -> Any:
    if isinstance(root, dict) and reference in (root.get("id"), root.get("$id")):
        return root
    found = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, dict) else None
    if found is None or not reference.startswith("#"):
        raise SchemaError(f"the JSON schema refers to {reference!r}, which is not in it")
    return found


def _properties(schema: Json, path: str) -> dict[str, Any]:
    found = schema.get("properties", {})
    if not isinstance(found, dict):
        raise SchemaError(f"at {path} the properties of a JSON schema are an object, not {type(found).__name__}")
    return found


def _list(schema: Json, name: str, path: str) -> list[Any]:
    found = schema.get(name, [])
    if not isinstance(found, list):
        raise SchemaError(f"at {path} the {name} of a JSON schema is a list, not {type(found).__name__}")
    return found


def _type_names(schema: Json) -> frozenset[str]:
    found = schema.get("type", "any")
    names = frozenset(name for name in (found if isinstance(found, list) else [found]) if isinstance(name, str))
    names = _ALL if "any" in names else names | {"integer"} if "number" in names else names
    values = _listed(schema)
    return names if values is None else names & {_type_of(value) for value in values}


def _type_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return "integer"
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _required(schema: Json, properties: Json) -> set[str]:
    found = schema.get("required")
    # Draft 3 has it at each property.
    own = {name for name, value in properties.items() if isinstance(value, dict) and value.get("required") is True}
    return own | {name for name in (found if isinstance(found, list) else ()) if isinstance(name, str)}


def _types(writer: Json, reader: Json, path: str) -> Iterator[str]:
    allowed = _type_names({"type": reader["type"]}) if "type" in reader else _ALL
    lost = _type_names(writer) - allowed
    if lost:
        yield f"{path}: the reader accepts no {', no '.join(sorted(lost))}"


def _values(writer: Json, reader: Json, path: str) -> Iterator[str]:
    """Return the values that a schema lists one by one."""
    written, read = _listed(writer), _listed(reader)
    if read is None:
        return
    if written is None:
        yield f"{path}: the reader accepts certain values only"
        return
    lost = [value for value in written if value not in read]
    if lost:
        yield f"{path}: the reader does not accept {', '.join(json.dumps(value) for value in lost)}"


def _listed(schema: Json) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    found = schema.get("enum")
    return found if isinstance(found, list) else None


def _bounds(writer: Json, reader: Json, path: str) -> Iterator[str]:
    for name, larger_is_tighter in _BOUNDS.items():
        bound, own = reader.get(name), writer.get(name)
        if bound is None or bound is False or bound == own:
            continue
        if not _is_number(bound) or not _is_number(own) or (bound > own) == larger_is_tighter:
            yield f"{path}: the reader's {name} of {json.dumps(bound)} is tighter"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _others(writer: Json, reader: Json, path: str) -> Iterator[str]:
    """Return the keywords that are not compared: the reader's must equal the writer's."""
    for name in sorted(reader.keys() - _COMPARED - _NOTES):
        if reader[name] != writer.get(name, _USUAL.get(name)):
            yield f"{path}: the reader's {name} is not the writer's"
