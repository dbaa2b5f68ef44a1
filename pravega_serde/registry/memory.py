"""Schema registry in this process, which answers the REST interface from memory.

The URI ``mock://name`` is the registry of that name in this process. :func:`mock_registry` returns it, for inspection
or to make it fail. Another process that uses the same URI has a separate registry. Spark's workers need one that
answers over HTTP, such as that of :mod:`pravega_connector.testing`.

The answers are those that were measured with server 0.6.0. Paths, bodies and statuses are described in ``calls``.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.message import DecodeError

from pravega_serde.errors import RegistryProtocolError, RegistryUnavailableError, SchemaError
from pravega_serde.registry.calls import Call, TransientError
from pravega_serde.registry.confluent_memory import ConfluentMemoryRegistry, mock_confluent_registry
from pravega_serde.registry.contract import (
    CodecType,
    Compatibility,
    EncodingInfo,
    GroupProperties,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)
from pravega_serde.registry.evolution import check_compatibility
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.registry_config import RegistryConfig

T = TypeVar("T")
Answer = tuple[int, Any]

_AVRO: Final = SerializationFormat.AVRO
_PAGE: Final = 100
_RETRY_SECONDS: Final = 0.01
_PLAIN: Final = frozenset({"AllowAny", "DenyAll"})
_JSON_TYPES: Final = frozenset({"any", "array", "boolean", "integer", "null", "number", "object", "string"})
# The server ignores a symbol that the reader does not have.
_LENIENT: Final = "of the writer's symbols and has no default"
# Checks of a policy for a reader's schema, in addition to those for the next schema.
_READERS: Final = {
    "Backward": Compatibility.BACKWARD,
    "BackwardTransitive": Compatibility.BACKWARD_TRANSITIVE,
    "Forward": Compatibility.BACKWARD,
    "ForwardTransitive": Compatibility.BACKWARD,
    "Full": Compatibility.BACKWARD,
    "FullTransitive": Compatibility.BACKWARD_TRANSITIVE,
}


class _RefusedError(Exception):
    """Error that becomes an answer with a status and a text."""

    def __init__(self, status: int, text: str = "") -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass
class _Entry:
    """Schema of a group."""

    info: SchemaInfo
    version: VersionInfo
    identity: bytes
    policy: Compatibility
    added_ms: int
    deleted: bool = False

    def to_json(self) -> dict[str, Any]:
        return SchemaWithVersion(self.info, self.version).to_json()


@dataclass
class _Group:
    properties: GroupProperties
    entries: list[_Entry] = field(default_factory=list)
    encodings: list[tuple[VersionInfo, str]] = field(default_factory=list)
    codecs: dict[str, CodecType] = field(default_factory=dict)

    def live(self, schema_type: str | None = None, schema_format: SerializationFormat | None = None) -> list[_Entry]:
        """Return the schemas that were not deleted, optionally of one type and one format."""
        return [
            entry
            for entry in self.entries
            if not entry.deleted
            and schema_type in (None, entry.info.type)
            and schema_format in (None, entry.info.format)
        ]

    def found(self, identity: bytes, info: SchemaInfo) -> _Entry | None:
        """Return the schema that equals another one."""
        return next((each for each in self.live(info.type, info.format) if each.identity == identity), None)


class MemoryRegistry:
    """Registry in memory. Thread safe. ``requests`` counts its requests."""

    def __init__(self) -> None:
        self.requests = 0
        self._groups: dict[tuple[str, str], _Group] = {}
        self._lock = threading.Lock()
        self._failures: deque[int] = deque()

    def fail(self, status: int = 503, times: int = 1) -> None:
        """Answer the next requests with a status, without executing them."""
        self._failures.extend([status] * times)

    @property
    def pending(self) -> int:
        """Return the number of requested failures that have not happened yet."""
        return len(self._failures)

    def answer(self, method: str, path: str, query: Mapping[str, str], content: bytes | None) -> tuple[int, bytes]:
        """Return the status and body that answer a request. ``path`` is relative to the interface's base."""
        with self._lock:
            self.requests += 1
            if self._failures:
                return self._failures.popleft(), b"asked for by the test"
            try:
                status, body = self._route(method, path, query, content)
            except _RefusedError as error:
                return error.status, error.text.encode()
        return status, b"" if body is None else json.dumps(body).encode()

    def _route(self, method: str, path: str, query: Mapping[str, str], content: bytes | None) -> Answer:
        namespace = query.get("namespace", "")
        if match := re.fullmatch(r"/namespace/([^/]+)(/.*)", path):
            namespace, path = unquote(match[1]), match[2]
        known = False
        for verb, pattern, serve in _ROUTES:
            match = re.fullmatch(pattern, path)
            if match is not None and verb == method:
                parts = [unquote(part) for part in match.groups()]
                return serve(self, _Request(namespace, query, content), *parts)
            known = known or match is not None
        raise _RefusedError(405 if known else 404)

    # ---- groups ----

    def _list_groups(self, request: _Request) -> Answer:
        limit, start = int(request.query.get("limit", _PAGE)), int(request.query.get("continuationToken", 0))
        own = [(name, group) for (space, name), group in self._groups.items() if space == request.namespace]
        page = own[start : start + limit]
        groups = {name: group.properties.to_json() for name, group in page}
        return 200, {"groups": groups, "continuationToken": str(start + len(page))}

    def _add_group(self, request: _Request) -> Answer:
        body = request.body()
        if body.get("groupProperties") is None:
            raise _RefusedError(400, "group properties cannot be null")
        properties = _parsed(GroupProperties.from_json, body["groupProperties"])
        if properties.format != _AVRO and properties.compatibility.policy not in _PLAIN:
            raise _RefusedError(400)
        key = request.namespace, str(body.get("groupName"))
        if key in self._groups:
            return 409, None
        self._groups[key] = _Group(properties)
        return 201, None

    def _group(self, request: _Request, name: str) -> _Group:
        try:
            return self._groups[request.namespace, name]
        except KeyError:
            raise _RefusedError(404) from None

    def _properties(self, request: _Request, name: str) -> Answer:
        return 200, self._group(request, name).properties.to_json()

    def _remove_group(self, request: _Request, name: str) -> Answer:
        self._groups.pop((request.namespace, name), None)
        return 204, None

    def _set_policy(self, request: _Request, name: str) -> Answer:
        group, body = self._group(request, name), request.body()
        previous = body.get("previousCompatibility")
        if previous is not None and _parsed(Compatibility.from_json, previous) != group.properties.compatibility:
            return 409, None
        policy = _parsed(Compatibility.from_json, body.get("compatibility"))
        group.properties = replace(group.properties, compatibility=policy)
        return 200, None

    def _history(self, request: _Request, name: str) -> Answer:
        records = [
            {
                **entry.to_json(),
                "compatibility": entry.policy.to_json(),
                "timestamp": entry.added_ms,
                "schemaString": entry.info.data.decode(errors="replace"),
            }
            for entry in self._group(request, name).live()
        ]
        return 200, {"history": records}

    # ---- codecs and encodings ----

    def _codecs(self, request: _Request, name: str) -> Answer:
        return 200, {"codecTypes": [codec.to_json() for codec in self._group(request, name).codecs.values()]}

    def _add_codec(self, request: _Request, name: str) -> Answer:
        body = {"properties": {}, **request.body()}
        codec = _parsed(CodecType.from_json, body)
        self._group(request, name).codecs.setdefault(codec.name, codec)
        return 201, None

    def _encoding_id(self, request: _Request, name: str) -> Answer:
        group, body = self._group(request, name), request.body()
        key = _parsed(VersionInfo.from_json, body.get("versionInfo")), str(body.get("codecType") or "")
        if key not in group.encodings:
            version, codec = key
            if codec and codec not in group.codecs:
                raise _RefusedError(412, f"codec {codec} not registered")
            if _entry(group, version.id).deleted:
                raise _RefusedError(404)
            group.encodings.append(key)
        return 200, {"encodingId": group.encodings.index(key)}

    def _encoding_info(self, request: _Request, name: str, number: str) -> Answer:
        group = self._group(request, name)
        if int(number) >= len(group.encodings):
            raise _RefusedError(404)
        version, codec = group.encodings[int(number)]
        kind = group.codecs.get(codec, CodecType.NONE)
        return 200, EncodingInfo(_entry(group, version.id).info, version, kind).to_json()

    # ---- schemas ----

    def _latest(self, request: _Request, name: str) -> Answer:
        latest = {(entry.info.type, entry.info.format): entry for entry in self._group(request, name).live()}
        wanted = request.query.get("type")
        if wanted is not None and not any(schema_type == wanted for schema_type, _ in latest):
            raise _RefusedError(500, "Cannot invoke a method of the schema, which is null")
        return 200, {"schemas": [e.to_json() for (kind, _), e in latest.items() if wanted in (None, kind)]}

    def _versions(self, request: _Request, name: str) -> Answer:
        entries = self._group(request, name).live(request.query.get("type"))
        return 200, {"schemas": [entry.to_json() for entry in entries]}

    def _add_schema(self, request: _Request, name: str) -> Answer:
        group = self._group(request, name)
        info, identity = _checked(request.body())
        wanted, entries = group.properties.format, group.live()
        if wanted not in (SerializationFormat.ANY, info.format):
            raise _RefusedError(417, wanted.full_type_name)
        if (known := group.found(identity, info)) is not None:
            return 201, known.version.to_json()
        if not group.properties.allow_multiple_types and any(each.info.type != info.type for each in entries):
            raise _RefusedError(409)
        if not _may_follow(group, info, group.properties.compatibility):
            raise _RefusedError(409)
        alike = [each for each in group.entries if (each.info.type, each.info.format) == (info.type, info.format)]
        version = VersionInfo(info.type, info.format.full_type_name, len(alike), len(group.entries))
        now = time.time_ns() // 1_000_000
        group.entries.append(_Entry(info, version, identity, group.properties.compatibility, now))
        return 201, version.to_json()

    def _find(self, request: _Request, name: str) -> Answer:
        info, identity = _checked(request.body())
        if (known := self._group(request, name).found(identity, info)) is None:
            raise _RefusedError(404)
        return 200, known.version.to_json()

    def _validate(self, request: _Request, name: str) -> Answer:
        group, body = self._group(request, name), request.body()
        if body.get("compatibility") is None:
            raise _RefusedError(500, "Cannot invoke a method of the compatibility, which is null")
        info, _ = _checked(body.get("schemaInfo"))
        return 200, {"valid": _may_follow(group, info, _parsed(Compatibility.from_json, body["compatibility"]))}

    def _can_read(self, request: _Request, name: str) -> Answer:
        group = self._group(request, name)
        info, _ = _checked(request.body())
        return 200, {"compatible": _may_read(group, info)}

    def _schema(self, request: _Request, name: str, number: str) -> Answer:
        return 200, _entry(self._group(request, name), int(number)).info.to_json()

    def _delete_schema(self, request: _Request, name: str, number: str) -> Answer:
        _entry(self._group(request, name), int(number)).deleted = True
        return 204, None

    def _of_version(self, request: _Request, name: str, *place: str) -> Answer:
        return 200, _place(self._group(request, name), *place).info.to_json()

    def _delete_version(self, request: _Request, name: str, *place: str) -> Answer:
        _place(self._group(request, name), *place).deleted = True
        return 204, None

    def _added_to(self, request: _Request) -> Answer:
        info, identity = _checked(request.body())
        own = ((name, group) for (space, name), group in self._groups.items() if space == request.namespace)
        found = {name: entry.version.to_json() for name, group in own if (entry := group.found(identity, info))}
        return 200, {"groups": found}


@dataclass(frozen=True)
class _Request:
    namespace: str
    query: Mapping[str, str]
    content: bytes | None

    def body(self) -> dict[str, Any]:
        """Return the object in the body. Raises _RefusedError."""
        try:
            found = json.loads(self.content or b"")
        except ValueError as error:
            raise _RefusedError(400, str(error)) from None
        if not isinstance(found, dict):
            raise _RefusedError(400, "the body is no object")
        return found


_GROUP: Final = "/groups/([^/]+)"
_NUMBER: Final = "([0-9]{1,9})"
_PLACE: Final = rf"{_GROUP}/schemas/format/([^/]+)/type/([^/]*)/versions/{_NUMBER}"
_ROUTES: Final[Sequence[tuple[str, str, Callable[..., Answer]]]] = (
    ("GET", "/groups", MemoryRegistry._list_groups),
    ("POST", "/groups", MemoryRegistry._add_group),
    ("GET", _GROUP, MemoryRegistry._properties),
    ("DELETE", _GROUP, MemoryRegistry._remove_group),
    ("PUT", rf"{_GROUP}/compatibility", MemoryRegistry._set_policy),
    ("GET", rf"{_GROUP}/history", MemoryRegistry._history),
    ("GET", rf"{_GROUP}/codecTypes", MemoryRegistry._codecs),
    ("POST", rf"{_GROUP}/codecTypes", MemoryRegistry._add_codec),
    ("PUT", rf"{_GROUP}/encodings", MemoryRegistry._encoding_id),
    ("GET", rf"{_GROUP}/encodings/{_NUMBER}", MemoryRegistry._encoding_info),
    ("GET", rf"{_GROUP}/schemas", MemoryRegistry._latest),
    ("POST", rf"{_GROUP}/schemas", MemoryRegistry._add_schema),
    ("GET", rf"{_GROUP}/schemas/versions", MemoryRegistry._versions),
    ("POST", rf"{_GROUP}/schemas/versions/find", MemoryRegistry._find),
    ("POST", rf"{_GROUP}/schemas/versions/validate", MemoryRegistry._validate),
    ("POST", rf"{_GROUP}/schemas/versions/canRead", MemoryRegistry._can_read),
    ("GET", rf"{_GROUP}/schemas/schema/{_NUMBER}", MemoryRegistry._schema),
    ("DELETE", rf"{_GROUP}/schemas/schema/{_NUMBER}", MemoryRegistry._delete_schema),
    ("GET", _PLACE, MemoryRegistry._of_version),
    ("DELETE", _PLACE, MemoryRegistry._delete_version),
    ("POST", "/schemas/addedTo", MemoryRegistry._added_to),
)


def _entry(group: _Group, number: int) -> _Entry:
    if number >= len(group.entries):
        raise _RefusedError(404)
    return group.entries[number]


def _place(group: _Group, format_name: str, schema_type: str, version: str) -> _Entry:
    for entry in group.entries:
        if (entry.version.format, entry.version.type, entry.version.version) == (
            format_name,
            schema_type,
            int(version),
        ):
            return entry
    raise _RefusedError(404)


def _parsed(read: Callable[[object], T], body: object) -> T:
    try:
        return read(body)
    except RegistryProtocolError as error:
        raise _RefusedError(400, error.message) from None


# ---- schemas and their compatibility ----


def _checked(body: object) -> tuple[SchemaInfo, bytes]:
    """Return a schema with its full type name. Its bytes are equal for schemas that count as equal."""
    if isinstance(body, dict):
        body = {"properties": {}, **body}
    info = _parsed(SchemaInfo.from_json, body)
    if info.format == SerializationFormat.ANY:
        raise _RefusedError(400, "Invalid Serialization Format.")
    try:
        if info.format == _AVRO:
            return _checked_avro(info)
        if info.format == SerializationFormat.JSON:
            return info, _json_identity(info)
        if info.format == SerializationFormat.PROTOBUF:
            _check_message(info)
    except (SchemaError, ValueError, DecodeError):
        raise _RefusedError(400, "Unable to parse schema") from None
    return info, info.data


def _checked_avro(info: SchemaInfo) -> tuple[SchemaInfo, bytes]:
    part = part_of(_AVRO)
    assert part is not None
    identity = part.print(info)
    own = json.loads(identity)
    names = [_avro_name(branch) for branch in (own if isinstance(own, list) else [own])]
    for name in names:
        if info.type in ("", name, name.rpartition(".")[2]):
            return replace(info, type=name), identity
    raise _RefusedError(400, "Type mismatch. Type should be full name for avro message. Hint: namespace.recordname")


def _avro_name(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    if "name" not in schema:
        return str(schema["type"])
    name, namespace = str(schema["name"]), schema.get("namespace")
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _json_identity(info: SchemaInfo) -> bytes:
    schema = json.loads(info.data)
    if not isinstance(schema, dict) or (isinstance(schema.get("type"), str) and schema["type"] not in _JSON_TYPES):
        raise ValueError("no JSON schema")
    return json.dumps(schema, sort_keys=True).encode()


def _check_message(info: SchemaInfo) -> None:
    files = FileDescriptorSet.FromString(info.data).file
    names = {f"{each.package}.{message.name}".lstrip(".") for each in files for message in each.message_type}
    if info.type not in names:
        raise ValueError("no such message")


def _may_follow(group: _Group, info: SchemaInfo, policy: Compatibility) -> bool:
    """Return True if a policy allows a schema. Only Avro schemas are compared."""
    if policy.policy == "DenyAll":
        return not group.live()
    return info.format != _AVRO or not _faults(group.live(info.type, _AVRO), info, policy)


def _may_read(group: _Group, info: SchemaInfo) -> bool:
    """Return True if a schema reads all events that the group's policy lets writers write."""
    policy, known = group.properties.compatibility, group.live(info.type, info.format)
    if policy.policy == "AllowAny" or info.format != _AVRO:
        return policy.policy == "AllowAny" or not known or known[-1].info.data == info.data
    if policy.policy == "Advanced":
        rules = [Compatibility.advanced(backward=policy.backward)] if policy.backward is not None else []
        rules += [Compatibility.BACKWARD] if policy.forward is not None else []
    else:
        rules = [_READERS.get(policy.policy, Compatibility.BACKWARD)]
    return not any(_faults(known, info, rule) for rule in rules)


def _faults(known: Sequence[_Entry], info: SchemaInfo, policy: Compatibility) -> list[str]:
    before = [SchemaWithVersion(entry.info, entry.version) for entry in known]
    return [reason for reason in check_compatibility(before, info, policy) if not reason.endswith(_LENIENT)]


# ---- mock://name ----

_mocks: Final[dict[str, MemoryRegistry]] = {}
_mocks_lock: Final = threading.Lock()


def mock_registry(uri: str) -> MemoryRegistry:
    """Return the registry of ``mock://name`` in this process. Create it if necessary."""
    with _mocks_lock:
        return _mocks.setdefault(urlsplit(uri).netloc, MemoryRegistry())


class MockTransport:
    """Transport of calls to a registry of this process."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._registry: MemoryRegistry | ConfluentMemoryRegistry = (
            mock_registry(config.uri) if config.kind == "pravega" else mock_confluent_registry(config.uri)
        )

    def run(self, call: Call[T], end: float = math.inf) -> T:
        """Return the result of a call. Raises RegistryError, or RegistryUnavailableError at the deadline."""
        end = min(end, time.monotonic() + self._config.timeout)
        while True:
            try:
                return self.attempt(call)
            except TransientError as error:
                if time.monotonic() > end:
                    raise self.failed(call, error) from error
            time.sleep(_RETRY_SECONDS)

    def attempt(self, call: Call[T]) -> T:
        """Return the result of one attempt of a call. Raises TransientError if a retry may help."""
        query = dict(call.query)
        if self._config.namespace is not None:
            query.setdefault("namespace", self._config.namespace)
        status, content = self._registry.answer(call.method, call.path, query, call.content())
        return call.result(status, content, server=self._config.uri)

    def failed(self, call: Call[Any], error: TransientError) -> RegistryUnavailableError:
        """Return the error of a call that has no attempts left."""
        return RegistryUnavailableError(
            f"cannot {call.purpose}: {error.reason}; the registry {self._config.uri} was told to fail",
            status=error.status,
        )

    def close(self) -> None:
        """Do nothing: the registry keeps its state."""


class AsyncMockTransport(MockTransport):
    """Transport for the tasks of one event loop; otherwise as :class:`MockTransport`."""

    async def run(self, call: Call[T], end: float = math.inf) -> T:  # type: ignore[override]
        """As :meth:`MockTransport.run`."""
        end = min(end, time.monotonic() + self._config.timeout)
        while True:
            try:
                return self.attempt(call)
            except TransientError as error:
                if time.monotonic() > end:
                    raise self.failed(call, error) from error
            await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:  # type: ignore[override]
        """Do nothing."""
