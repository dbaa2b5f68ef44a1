"""Confluent-compatible registry in this process, which answers the REST interface and that of data keys from memory.

The URIs ``confluent+mock://name`` and ``apicurio+mock://name`` are the registry of that name in this process. It stores
metadata and rules with schemas, as Confluent's registry does, and does not run them.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pravega_serde.errors import PravegaError
from pravega_serde.registry.confluent_calls import LEVELS, SubjectSchema
from pravega_serde.registry.contract import Compatibility, SchemaInfo, SchemaWithVersion, VersionInfo
from pravega_serde.registry.evolution import check_compatibility
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.interface import SchemaText

Answer = tuple[int, Any]
Body = dict[str, Any]

_CONTRACT: Final = ("metadata", "ruleSet")
_PREFIXES: Final = ("/apis", "/ccompat/v7")
#: Name of a level in the interface -> policy.
_POLICIES: Final = {level: Compatibility(policy) for policy, level in LEVELS.items()}
_DEFAULT_LEVEL: Final = "BACKWARD"


class _RefusedError(Exception):
    def __init__(self, status: int, code: int, text: str) -> None:
        super().__init__(text)
        self.status, self.body = status, {"error_code": code, "message": text}


@dataclass
class _Subject:
    versions: dict[int, int] = field(default_factory=dict)
    """Id of each version that exists."""
    deleted: dict[int, int] = field(default_factory=dict)

    @property
    def latest(self) -> int:
        return max(self.versions)


class ConfluentMemoryRegistry:
    """Registry in memory. Thread safe. ``requests`` counts its requests."""

    def __init__(self) -> None:
        self.requests = 0
        self._schemas: dict[int, Body] = {}
        self._subjects: dict[str, _Subject] = {}
        self._levels: dict[str, str] = {}
        self._keks: dict[str, Body] = {}
        self._deks: dict[tuple[str, str, str], dict[int, Body]] = {}
        self._lock = threading.Lock()
        self._failures: deque[int] = deque()

    def fail(self, status: int = 503, times: int = 1) -> None:
        """Answer the next requests with a status, without executing them."""
        self._failures.extend([status] * times)

    def answer(self, method: str, path: str, query: Mapping[str, str], content: bytes | None) -> tuple[int, bytes]:
        """Return the status and body that answer a request. ``path`` may be that of Apicurio's interface."""
        with self._lock:
            self.requests += 1
            if self._failures:
                return self._failures.popleft(), b"asked for by the test"
            for prefix in _PREFIXES:
                path = path.removeprefix(prefix)
            try:
                status, body = self._route(method, path, query, json.loads(content) if content else {})
            except _RefusedError as error:
                status, body = error.status, error.body
        return status, json.dumps(body).encode()

    def _route(self, method: str, path: str, query: Mapping[str, str], body: Body) -> Answer:
        for verb, pattern, act in _ROUTES:
            found = re.fullmatch(pattern, path) if verb == method else None
            if found:
                return 200, act(self, *map(unquote, found.groups()), query=query, body=body)
        raise _RefusedError(404, 404, f"there is no {method} {path} here")

    # ---- schemas ----

    def _subject(self, name: str) -> _Subject:
        found = self._subjects.get(name)
        if found is None or not found.versions:
            raise _RefusedError(404, 40401, f"Subject '{name}' not found.")
        return found

    def _id_of(self, name: str, version: str, *, deleted: bool = False) -> tuple[int, int]:
        subject = self._subject(name)
        number = subject.latest if version in ("latest", "-1") else int(version) if version.isdecimal() else 0
        found = subject.versions.get(number, subject.deleted.get(number) if deleted else None)
        if found is None:
            raise _RefusedError(404, 40402, f"Version {version} not found.")
        return number, found

    def _version(self, name: str, version: str, *, query: Mapping[str, str], body: Body) -> Any:
        number, schema_id = self._id_of(name, version, deleted=query.get("deleted") == "true")
        return {**self._schemas[schema_id], "subject": name, "version": number, "id": schema_id}

    def _by_id(self, schema_id: str, *, query: Mapping[str, str], body: Body) -> Any:
        found = self._schemas.get(int(schema_id))
        if found is None:
            raise _RefusedError(404, 40403, f"Schema {schema_id} not found")
        return found

    def _versions_of_id(self, schema_id: str, *, query: Mapping[str, str], body: Body) -> Any:
        wanted, deleted = int(schema_id), query.get("deleted") == "true"
        return [
            {"subject": name, "version": version}
            for name, subject in self._subjects.items()
            for version, each in (subject.versions | (subject.deleted if deleted else {})).items()
            if each == wanted
        ]

    def _names(self, *, query: Mapping[str, str], body: Body) -> Any:
        prefix = query.get("subjectPrefix", "")
        return [name for name, each in self._subjects.items() if each.versions and name.startswith(prefix)]

    def _version_numbers(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        subject = self._subject(name)
        return sorted((*subject.versions, *(subject.deleted if query.get("deleted") == "true" else ())))

    def _lookup(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        subject, wanted = self._subject(name), self._stored(body)
        sort, deleted = query.get("normalize") == "true", query.get("deleted") == "true"
        known_versions = subject.versions | (subject.deleted if deleted else {})
        # First the same contract, also if it is empty; then any version with what the request has.
        for compared in (_CONTRACT, tuple(each for each in _CONTRACT if each in wanted)):
            for version, schema_id in sorted(known_versions.items(), reverse=True):
                known = self._schemas[schema_id]
                if _identity(known, *compared, sort=sort) == _identity(wanted, *compared, sort=sort):
                    return {**known, "subject": name, "version": version, "id": schema_id}
        raise _RefusedError(404, 40403, "Schema not found")

    def _register(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        wanted, subject = self._stored(body), self._subjects.setdefault(name, _Subject())
        if subject.versions and not any(each in wanted for each in _CONTRACT):
            latest = self._schemas[subject.versions[subject.latest]]
            wanted |= {each: latest[each] for each in _CONTRACT if each in latest}
        sort = query.get("normalize") == "true"
        identity = _identity(wanted, *_CONTRACT, sort=sort)
        same = (i for i, each in self._schemas.items() if _identity(each, *_CONTRACT, sort=sort) == identity)
        known = next(same, None)
        schema_id = len(self._schemas) + 1 if known is None else known
        if schema_id not in subject.versions.values():
            reasons = self._faults(name, wanted)
            if reasons:
                raise _RefusedError(409, 409, f"Schema being registered is incompatible: {'; '.join(reasons)}")
            self._schemas[schema_id] = wanted
            subject.versions[max((*subject.versions, *subject.deleted), default=0) + 1] = schema_id
        return {"id": schema_id, **wanted}

    def _test(self, name: str, version: str, *, query: Mapping[str, str], body: Body) -> Any:
        self._id_of(name, version)
        reasons = self._faults(name, self._stored(body))
        return {"is_compatible": not reasons, "messages": reasons}

    def _with_metadata(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        """Return the latest version with one property in its metadata."""
        for number in reversed(self._version_numbers(name, query=query, body={})):
            found = self._version(name, str(number), query=query, body={})
            if found.get("metadata", {}).get("properties", {}).get(query["key"]) == query["value"]:
                return found
        raise _RefusedError(404, 40402, "Version not found.")

    def _delete_version(self, name: str, version: str, *, query: Mapping[str, str], body: Body) -> Any:
        permanent = query.get("permanent") == "true"
        number, schema_id = self._id_of(name, version, deleted=permanent)
        subject = self._subjects[name]
        subject.deleted[number] = schema_id
        subject.versions.pop(number, None)
        if permanent:
            del subject.deleted[number]
        return number

    def _delete_subject(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        subject = self._subject(name)
        numbers = sorted(subject.versions)
        subject.deleted |= subject.versions
        subject.versions.clear()
        return numbers

    def _stored(self, body: Body) -> Body:
        """Return a schema as it is stored. Its default type is Avro."""
        kind = body.get("schemaType") or "AVRO"
        made: Body = {"schema": body.get("schema", ""), "schemaType": kind}
        made |= {each: body[each] for each in ("references", *_CONTRACT) if body.get(each)}
        try:
            self._info(made)
        except PravegaError as error:
            raise _RefusedError(422, 42201, f"Invalid schema: {error.message}") from error
        return made

    def _info(self, stored: Body) -> SchemaInfo:
        part = part_of(SubjectSchema.from_json(stored).format)
        assert part is not None
        return part.from_text(self._text(stored))

    def _text(self, stored: Body) -> SchemaText:
        found = {}
        for each in stored.get("references", ()):
            schema_id = self._id_of(each["subject"], str(each["version"]))[1]
            found[each["name"]] = self._text(self._schemas[schema_id])
        return SchemaText(stored["schema"], found)

    def _faults(self, name: str, wanted: Body) -> list[str]:
        """Return the reasons why a schema may not follow those of a subject."""
        policy = _POLICIES[self._levels.get(name, self._levels.get("", _DEFAULT_LEVEL))]
        subject = self._subjects.get(name)
        if policy == Compatibility.ALLOW_ANY or subject is None or not subject.versions:
            return []
        before = []
        for version, schema_id in sorted(subject.versions.items()):
            info = self._info(self._schemas[schema_id])
            before.append(SchemaWithVersion(info, VersionInfo(info.type, info.format.name, version, schema_id)))
        return list(check_compatibility(before, self._info(wanted), policy))

    # ---- compatibility ----

    def _level(self, name: str = "", *, query: Mapping[str, str], body: Body) -> Any:
        level = self._levels.get(name)
        if level is None and name and query.get("defaultToGlobal") != "true":
            raise _RefusedError(404, 40408, f"Subject '{name}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": level or self._levels.get("", _DEFAULT_LEVEL)}

    def _set_level(self, name: str = "", *, query: Mapping[str, str], body: Body) -> Any:
        level = str(body.get("compatibility", "")).upper()
        if level not in _POLICIES:
            raise _RefusedError(422, 42203, "Invalid compatibility level.")
        self._levels[name] = level
        return {"compatibility": level}

    # ---- data keys ----

    def _add_kek(self, *, query: Mapping[str, str], body: Body) -> Any:
        if body["name"] in self._keks:
            raise _RefusedError(409, 40972, f"Key '{body['name']}' already exists")
        self._keks[body["name"]] = {"kmsProps": {}, "shared": False, **body, "ts": _now(), "deleted": False}
        return self._keks[body["name"]]

    def _kek(self, name: str, *, query: Mapping[str, str], body: Body) -> Any:
        if name not in self._keks:
            raise _RefusedError(404, 40470, f"Key '{name}' not found")
        return self._keks[name]

    def _kek_names(self, *, query: Mapping[str, str], body: Body) -> Any:
        return list(self._keks)

    def _add_dek(self, kek: str, subject: str = "", *, query: Mapping[str, str], body: Body) -> Any:
        self._kek(kek, query=query, body=body)
        algorithm, version = body.get("algorithm") or "AES256_GCM", body.get("version") or 1
        known = self._deks.setdefault((kek, subject or body["subject"], algorithm), {})
        if version in known:
            raise _RefusedError(409, 40972, f"Key '{subject}' already exists")
        known[version] = {"kekName": kek, **body, "algorithm": algorithm, "version": version, "ts": _now()}
        return known[version]

    def _dek(self, kek: str, subject: str, version: str, *, query: Mapping[str, str], body: Body) -> Any:
        known = self._deks.get((kek, subject, query.get("algorithm", "AES256_GCM")), {})
        found = known.get(max(known, default=0) if version in ("-1", "latest") else int(version))
        if found is None:
            raise _RefusedError(404, 40470, f"Key '{subject}' not found")
        return found

    def _found_versions(self, *, query: Mapping[str, str], body: Body) -> Any:
        """Return the content of a global id of Apicurio, or of the versions of an artifact. Both ids are equal here."""
        if "artifactId" in query:
            found = [*self._subjects.get(query["artifactId"], _Subject()).versions.values()]
        else:
            found = [each for each in (int(query["globalId"]),) if each in self._schemas]
        return {"versions": [{"globalId": each, "contentId": each} for each in found]}


def _identity(stored: Body, *contract: str, sort: bool) -> str:
    """Return a text that is equal for schemas that the registry treats as the same. ``sort`` normalizes them."""
    text = stored["schema"]
    if stored["schemaType"] != "PROTOBUF":
        text = json.loads(text) if text.lstrip()[:1] in ("{", "[", '"') else text
    parts = (stored["schemaType"], text, stored.get("references") or [])
    rest = json.dumps([_stated(stored.get(each)) for each in contract], sort_keys=True)
    return json.dumps(parts, sort_keys=sort) + rest


def _stated(contract: Any) -> Any:
    """Return a contract without members that are empty: clients send them, or leave them out."""
    if isinstance(contract, Mapping):
        kept = {name: _stated(each) for name, each in contract.items()}
        return {name: each for name, each in kept.items() if each}
    return [_stated(each) for each in contract] if isinstance(contract, list) else contract


def _now() -> int:
    return int(time.time() * 1000)


# ---- confluent+mock://name ----

_mocks: Final[dict[str, ConfluentMemoryRegistry]] = {}
_mocks_lock: Final = threading.Lock()


def mock_confluent_registry(uri: str) -> ConfluentMemoryRegistry:
    """Return the registry of ``confluent+mock://name`` in this process. Create it if necessary."""
    with _mocks_lock:
        return _mocks.setdefault(urlsplit(uri).netloc, ConfluentMemoryRegistry())


_NAME: Final = "([^/]+)"
_KEKS: Final = "/dek-registry/v1/keks"
_Act = Callable[..., Any]
_R = ConfluentMemoryRegistry
_ROUTES: Final[tuple[tuple[str, str, _Act], ...]] = (
    ("GET", r"/schemas/ids/(\d+)", _R._by_id),
    ("GET", r"/schemas/ids/(\d+)/versions", _R._versions_of_id),
    ("GET", "/subjects", _R._names),
    ("GET", f"/subjects/{_NAME}/versions", _R._version_numbers),
    ("GET", f"/subjects/{_NAME}/versions/{_NAME}", _R._version),
    ("GET", f"/subjects/{_NAME}/metadata", _R._with_metadata),
    ("POST", f"/subjects/{_NAME}", _R._lookup),
    ("POST", f"/subjects/{_NAME}/versions", _R._register),
    ("DELETE", f"/subjects/{_NAME}", _R._delete_subject),
    ("DELETE", f"/subjects/{_NAME}/versions/{_NAME}", _R._delete_version),
    ("POST", f"/compatibility/subjects/{_NAME}/versions/{_NAME}", _R._test),
    ("GET", "/config", _R._level),
    ("PUT", "/config", _R._set_level),
    ("GET", f"/config/{_NAME}", _R._level),
    ("PUT", f"/config/{_NAME}", _R._set_level),
    ("GET", _KEKS, _R._kek_names),
    ("POST", _KEKS, _R._add_kek),
    ("GET", f"{_KEKS}/{_NAME}", _R._kek),
    ("POST", f"{_KEKS}/{_NAME}/deks", _R._add_dek),
    ("POST", f"{_KEKS}/{_NAME}/deks/{_NAME}", _R._add_dek),
    ("GET", f"{_KEKS}/{_NAME}/deks/{_NAME}/versions/(-?[^/]+)", _R._dek),
    ("GET", "/registry/v3/search/versions", _R._found_versions),
)
