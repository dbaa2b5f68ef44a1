"""The recorded REST session, each request as the call that this project's client makes for it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pravega_serde.errors import RegistryError
from pravega_serde.registry import CodecType, Compatibility, GroupProperties, SchemaInfo, VersionInfo, calls
from pravega_serde.registry.calls import Call, TransientError

RECORDED = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "vectors" / "rest_session_inmemory.jsonl").read_text().splitlines()
]

# Different from every call of the client: sent as recorded, to see what becomes of the answers.
_RAW = {6: "no properties", 7: "no JSON", 8: "two groups a page", 34: "no policy", 93: "no such path", 94: "no number"}
_RAW |= {95: "no such method"}


class RawCall(Call[Any]):
    """A request with a body of any text."""

    def content(self) -> bytes | None:
        body = self.body["raw"]
        return None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()


@dataclass(frozen=True)
class Step:
    """One recorded pair: the call, its recorded request and answer."""

    number: int
    call: Call[Any]
    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    response: Any

    def recorded(self) -> object:
        """Result of the client for the recorded answer."""
        text = self.response if isinstance(self.response, str) else json.dumps(self.response)
        return outcome(lambda: self.call.result(self.status, text.encode(), server="recorded"))


def steps() -> list[Step]:
    return [_step(number, pair) for number, pair in enumerate(RECORDED, 1)]


def outcome(ask: Callable[[], Any]) -> object:
    """A result that can be compared: without times, and for an error its class and status."""
    try:
        found = ask()
    except (RegistryError, TransientError) as error:
        return type(error), error.status
    return comparable(found)


def comparable(found: Any) -> Any:
    """Without times and page tokens, which vary."""
    if isinstance(found, list) and found and hasattr(found[0], "timestamp"):
        return [(r.schema, r.version, r.compatibility, r.schema_string) for r in found]
    if isinstance(found, tuple):
        return found[0]
    return found


def _step(number: int, pair: dict[str, Any]) -> Step:
    parts = urlsplit(pair["path"])
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = parts.path.removeprefix("/v1")
    # The other form of the same request; the client always uses this one.
    match = re.fullmatch(r"/namespace/([^/]+)(/.*)", path)
    if match:
        query["namespace"], path = match[1], match[2]
    method, body = pair["method"], pair["body"]
    if number in _RAW:
        call: Call[Any] = RawCall(
            purpose=_RAW[number],
            method=method,
            path=path,
            query=query,
            body={"raw": body},
            answers=calls.groups_page(None, None).answers,
        )
    else:
        call = _call(method, path, query, body)
    return Step(number, call, method, path, query, body, pair["status"], pair["response"])


def _call(method: str, path: str, query: dict[str, str], body: Any) -> Call[Any]:
    if path == "/groups" and method == "GET":
        return calls.groups_page(None, query.get("namespace"))
    if path == "/groups":
        return calls.add_group(body["groupName"], GroupProperties.from_json(body["groupProperties"]))
    if path == "/schemas/addedTo":
        return calls.schema_references(SchemaInfo.from_json(body))
    match = re.fullmatch(r"/groups/([^/]+)(/.*)?", path)
    assert match
    group, rest = unquote(match[1]), match[2] or ""
    return _of_group(group, f"{method} {rest}", query, body)


def _of_group(group: str, what: str, query: dict[str, str], body: Any) -> Call[Any]:
    for pattern, make in _TABLE.items():
        match = re.fullmatch(pattern, what)
        if match:
            return make(group, query, body, *match.groups())
    raise AssertionError(what)


_TABLE: dict[str, Callable[..., Call[Any]]] = {
    r"GET ": lambda g, q, b: calls.group_properties(g),
    r"DELETE ": lambda g, q, b: calls.remove_group(g),
    r"PUT /compatibility": lambda g, q, b: calls.update_compatibility(
        g,
        Compatibility.from_json(b["compatibility"]),
        Compatibility.from_json(b["previousCompatibility"]) if "previousCompatibility" in b else None,
    ),
    r"GET /history": lambda g, q, b: calls.history(g),
    r"GET /schemas": lambda g, q, b: calls.latest_schemas(g),
    r"POST /schemas": lambda g, q, b: calls.add_schema(g, SchemaInfo.from_json(b)),
    r"GET /schemas/versions": lambda g, q, b: calls.schema_versions(g, q.get("type")),
    r"POST /schemas/versions/find": lambda g, q, b: calls.find_version(g, SchemaInfo.from_json(b)),
    r"POST /schemas/versions/validate": lambda g, q, b: calls.validate(
        g, SchemaInfo.from_json(b["schemaInfo"]), Compatibility.from_json(b["compatibility"])
    ),
    r"POST /schemas/versions/canRead": lambda g, q, b: calls.can_read(g, SchemaInfo.from_json(b)),
    r"GET /schemas/schema/(\d+)": lambda g, q, b, i: calls.schema_for_id(g, int(i)),
    r"DELETE /schemas/schema/(\d+)": lambda g, q, b, i: calls.delete_schema(g, int(i)),
    r"GET /schemas/format/(.*)/type/(.*)/versions/(\d+)": lambda g, q, b, f, t, v: calls.schema_for_version(
        g, f, t, int(v)
    ),
    r"DELETE /schemas/format/(.*)/type/(.*)/versions/(\d+)": lambda g, q, b, f, t, v: calls.delete_schema_version(
        g, f, t, int(v)
    ),
    r"PUT /encodings": lambda g, q, b: calls.encoding_id(g, VersionInfo.from_json(b["versionInfo"]), b["codecType"]),
    r"GET /encodings/(\d+)": lambda g, q, b, i: calls.encoding_info(g, int(i)),
    r"GET /codecTypes": lambda g, q, b: calls.codecs(g),
    r"POST /codecTypes": lambda g, q, b: calls.add_codec(g, CodecType.from_json(b)),
}


def plain(body: Any) -> Any:
    """A request's body without what may be left out: empty properties, and the name of a standard format again."""
    if not isinstance(body, dict):
        return body
    if body.get("serializationFormat") == body.get("fullTypeName"):
        body = {name: value for name, value in body.items() if name != "fullTypeName"}
    return {
        name: base64.b64decode(value) if name == "schemaData" else plain(value)
        for name, value in body.items()
        if not (name == "properties" and value == {})
    }
