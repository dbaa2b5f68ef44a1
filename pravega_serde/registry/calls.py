"""Operations of the registry's REST interface (version 1). Each is a :class:`Call`: a request and its answers.

Nothing here does I/O. The clients with and without asyncio send the same calls, so both return the same results and
raise the same errors. Paths, bodies and statuses follow io.pravega.schemaregistry.contract.v1.ApiV1 and the measured
answers of server 0.6.0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from pravega_serde.errors import (
    RegistryAuthenticationError,
    RegistryConflictError,
    RegistryError,
    RegistryNotFoundError,
    RegistryPermissionError,
    RegistryProtocolError,
    RegistryRequestError,
)
from pravega_serde.registry import answers as parse
from pravega_serde.registry.contract import (
    CodecType,
    Compatibility,
    EncodingInfo,
    GroupHistoryRecord,
    GroupProperties,
    SchemaInfo,
    SchemaWithVersion,
    VersionInfo,
)

T = TypeVar("T")

_EXCERPT: Final = 200
#: Bytes of a quoted name: servers limit the first line of a request to 8 KiB.
_LONGEST_NAME: Final = 4096
# Start of a NullPointerException's message since JEP 358: the server's code failed, and a retry would fail too.
_NULL_POINTER: Final = "Cannot invoke "
_TOO_MANY_REQUESTS: Final = 429
_NO_GROUP: Final = (
    "the group does not exist: create it with 'pravega-serde registry create', or set create_group in the writer"
)
# For a call that names an item of the group.
_NOT_IN_GROUP: Final = {404: "the group, or an item of it, does not exist"}
_REFUSALS: Final[Mapping[int, tuple[type[RegistryError], str]]] = {
    400: (RegistryRequestError, "the server rejected the request as malformed"),
    401: (RegistryAuthenticationError, "missing or invalid credentials: check username and password, or the token"),
    403: (RegistryPermissionError, "the user is not permitted to do this: ask for the permission, or use another user"),
    404: (RegistryNotFoundError, "it does not exist"),
    409: (RegistryConflictError, "it conflicts with what exists already"),
    412: (RegistryConflictError, "a part that it requires does not exist"),
    417: (RegistryConflictError, "the group has another format"),
    422: (RegistryRequestError, "the server rejected the schema"),
}


class TransientError(Exception):
    """Failure of an attempt that a retry may not have. Never reaches the user.

    ``sent`` is false if the server cannot have received the request. ``late`` is true if the server may still be
    working on it.
    """

    def __init__(self, reason: str, *, sent: bool = True, late: bool = False, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.sent, self.late, self.status = reason, sent, late, status


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """Request to the registry, and the parsers of its answers.

    ``purpose`` completes "cannot …". ``path`` is relative to the interface's base. ``answers`` maps each successful
    status to a parser. ``changes`` is true if the call may change the server's state, of ``group`` if it is set. Such a
    call may be sent again after a failure, unless ``once`` is set. ``refusals`` maps a status to its meaning for this
    call.
    """

    purpose: str
    method: str
    path: str
    answers: Mapping[int, Callable[[Any], T]]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    group: str | None = None
    changes: bool = False
    once: bool = False
    refusals: Mapping[int, str] = field(default_factory=dict)

    def content(self) -> bytes | None:
        """Return the body of the request."""
        return None if self.body is None else json.dumps(self.body).encode()

    def result(self, status: int, content: bytes, *, server: str) -> T:
        """Parse an answer of ``server``, which is an address.

        Raises TransientError if a retry may help, otherwise a RegistryError.
        """
        read = self.answers.get(status)
        if read is None:
            raise self._refusal(status, _excerpt(content), server)
        try:
            return read(json.loads(content) if content else None)
        except (RegistryProtocolError, ValueError, RecursionError) as error:
            reason = error.message if isinstance(error, RegistryProtocolError) else "the answer is not JSON"
            said = _excerpt(content) or "nothing"
            raise RegistryProtocolError(
                f"cannot {self.purpose}: {reason} (answer: {said}); check that {server} is a schema registry",
                status=status,
            ) from error

    def _refusal(self, status: int, said: str, server: str) -> Exception:
        detail = f" (status {status}{f': {said}' if said else ''})"
        if status in _REFUSALS:
            kind, usual = _REFUSALS[status]
            return kind(f"cannot {self.purpose}: {self.refusals.get(status, usual)}{detail}", status=status)
        if status == _TOO_MANY_REQUESTS or (status >= 500 and not said.startswith(_NULL_POINTER)):
            return TransientError(
                f"the server answered with status {status}{f': {said}' if said else ''}", status=status
            )
        if status >= 500:
            return RegistryError(f"cannot {self.purpose}: the server failed on this request{detail}", status=status)
        return RegistryProtocolError(
            f"cannot {self.purpose}: unexpected answer{detail}; check that {server} is a schema registry", status=status
        )


def _about(group: str, purpose: str, method: str, rest: str = "", **more: Any) -> Call[Any]:
    refusals = {404: _NO_GROUP} | more.pop("refusals", {})
    return Call(
        purpose=f"{purpose} group {group!r}",
        method=method,
        path=f"/groups/{in_path(group)}{rest}",
        group=group,
        refusals=refusals,
        **more,
    )


def in_path(text: str) -> str:
    """Quote a name as a part of a path. Raises RegistryRequestError."""
    if text in ("", ".", ".."):
        raise RegistryRequestError(f"the name {text!r} cannot be part of a request; choose another name")
    try:
        quoted = quote(text, safe="")
    except UnicodeEncodeError:
        raise RegistryRequestError(f"the name {text!r:.100} has an unpaired surrogate; choose another name") from None
    if len(quoted) > _LONGEST_NAME:
        raise RegistryRequestError(
            f"a name of {len(text)} characters, {text!r:.100}, is too long for a request; choose another name"
        )
    return quoted


def _excerpt(content: bytes) -> str:
    return " ".join(content[: 4 * _EXCERPT].decode(errors="replace").split())[:_EXCERPT]


# ---- groups, codecs, encodings ----

# Page size of the Java client.
_PAGE: Final = 100


def groups_page(token: str | None, namespace: str | None) -> Call[tuple[dict[str, GroupProperties], str | None]]:
    """Return a page of groups by name, and the token of the next page.

    The last page is empty, and its token has no meaning.
    """
    query = {"limit": str(_PAGE)}
    if token is not None:
        query["continuationToken"] = token
    if namespace is not None:
        query["namespace"] = namespace
    return Call(purpose="list the groups", method="GET", path="/groups", query=query, answers={200: _read_page})


def add_group(group: str, properties: GroupProperties) -> Call[bool]:
    """Add a group. Return False if the group exists; its properties do not change.

    The result is also False if an earlier attempt of the same call added the group and its answer was lost. Raises
    RegistryRequestError for a policy that the format does not support. Formats other than Avro support only ALLOW_ANY
    and DENY_ALL.
    """
    return Call(
        purpose=f"add group {in_path(group)!r}",
        method="POST",
        path="/groups",
        body={"groupName": group, "groupProperties": properties.to_json()},
        answers={201: lambda _: True, 409: lambda _: False},
        group=group,
        changes=True,
    )


def remove_group(group: str) -> Call[None]:
    """Remove a group and everything in it. A missing group is not an error."""
    return _about(group, "remove", "DELETE", answers={204: lambda _: None}, changes=True)


def group_properties(group: str) -> Call[GroupProperties]:
    """Return the properties of a group, with its current policy. Raises RegistryNotFoundError."""
    return _about(group, "read the properties of", "GET", answers={200: GroupProperties.from_json})


def update_compatibility(group: str, compatibility: Compatibility, previous: Compatibility | None = None) -> Call[None]:
    """Set the policy of a group.

    With ``previous``, raises RegistryConflictError if that is not the current policy. Such a call is not repeated once
    the server may have received it.
    """
    body = {"compatibility": compatibility.to_json()}
    if previous is not None:
        body["previousCompatibility"] = previous.to_json()
    return _about(
        group,
        "set the compatibility of",
        "PUT",
        "/compatibility",
        body=body,
        answers={200: lambda _: None},
        changes=True,
        once=previous is not None,
        refusals={409: "the group's policy is not the expected one"},
    )


def codecs(group: str) -> Call[list[CodecType]]:
    """Return the codecs of a group. Raises RegistryNotFoundError.

    CodecType.NONE, which every group has, is not in the list.
    """
    return _about(
        group,
        "read the codecs of",
        "GET",
        "/codecTypes",
        answers={200: lambda body: parse.items(body, "codecTypes", CodecType.from_json)},
    )


def add_codec(group: str, codec: CodecType) -> Call[None]:
    """Add a codec, unless the group has one with the same name. Raises RegistryNotFoundError."""
    return _about(
        group,
        f"add codec {codec.name!r} to",
        "POST",
        "/codecTypes",
        body=codec.to_json(),
        answers={201: lambda _: None},
        changes=True,
    )


def encoding_id(group: str, version: VersionInfo, codec: str) -> Call[int]:
    """Return the encoding id of events with a schema and a codec. The first call creates it. Durable on return.

    Raises RegistryNotFoundError if the group or schema does not exist or was deleted. Raises RegistryConflictError if
    the group does not have the codec.
    """
    return _about(
        group,
        f"get the encoding id of version {version.version} of type {version.type!r} in",
        "PUT",
        "/encodings",
        body={"versionInfo": version.to_json(), "codecType": codec},
        answers={200: lambda body: parse.integer(body, "encodingId")},
        changes=True,
        refusals={404: "the group or the schema does not exist", 412: f"the group does not have the codec {codec!r}"},
    )


def encoding_info(group: str, encoding: int) -> Call[EncodingInfo]:
    """Return the schema, version and codec of an encoding id. Raises RegistryNotFoundError."""
    return _about(
        group,
        f"look up encoding id {encoding} in",
        "GET",
        f"/encodings/{encoding:d}",
        answers={200: EncodingInfo.from_json},
        refusals={404: "the group does not exist, or it never assigned this encoding id"},
    )


def _read_page(body: object) -> tuple[dict[str, GroupProperties], str | None]:
    groups = parse.member(body, "groups", dict)
    read = {name: GroupProperties.from_json(groups[name]) for name in groups}
    return read, parse.text(body, "continuationToken") if read else None


# ---- schemas ----


def latest_schemas(group: str) -> Call[list[SchemaWithVersion]]:
    """Return the latest schema of each format and type. Raises RegistryNotFoundError."""
    return _about(group, "read the schemas of", "GET", "/schemas", answers={200: _read_schemas})


def schema_versions(group: str, schema_type: str | None = None) -> Call[list[SchemaWithVersion]]:
    """Return all schemas, or those of one type, without deleted ones. Raises RegistryNotFoundError."""
    query = {} if schema_type is None else {"type": schema_type}
    return _about(group, "read the schemas of", "GET", "/schemas/versions", query=query, answers={200: _read_schemas})


def history(group: str) -> Call[list[GroupHistoryRecord]]:
    """Return all schemas in the order in which they were added, without deleted ones. Raises RegistryNotFoundError."""
    return _about(
        group,
        "read the history of",
        "GET",
        "/history",
        answers={200: lambda body: parse.items(body, "history", GroupHistoryRecord.from_json)},
    )


def add_schema(group: str, schema: SchemaInfo) -> Call[VersionInfo]:
    """Add a schema unless the group has it. Return its version in both cases. Durable on return.

    Raises RegistryNotFoundError. Raises RegistryConflictError if the schema is not compatible, has another format, or
    has another type in a group of one type. Raises RegistryRequestError if the server cannot parse the schema.
    """
    return _about(
        group,
        f"add a schema of type {schema.type!r} to",
        "POST",
        "/schemas",
        body=schema.to_json(),
        answers={201: VersionInfo.from_json},
        changes=True,
        refusals={
            400: "the schema is malformed, or it does not describe that type",
            409: "the schema is incompatible with the schemas of the group, or has another type although only one is "
            "allowed; pravega-serde registry check shows the reason",
            417: f"the group does not accept the format {schema.format.full_type_name}",
        },
    )


def find_version(group: str, schema: SchemaInfo) -> Call[VersionInfo]:
    """Return the version of a schema. Raises RegistryNotFoundError if the group does not have it."""
    return _about(
        group,
        f"find the schema of type {schema.type!r} in",
        "POST",
        "/schemas/versions/find",
        body=schema.to_json(),
        answers={200: VersionInfo.from_json},
        refusals={404: "the group does not exist, or it does not have this schema"},
    )


def schema_for_id(group: str, schema_id: int) -> Call[SchemaInfo]:
    """Return a schema by its id, even if it was deleted. Raises RegistryNotFoundError."""
    return _about(
        group,
        f"read the schema with id {schema_id} of",
        "GET",
        f"/schemas/schema/{schema_id:d}",
        answers={200: SchemaInfo.from_json},
        refusals=_NOT_IN_GROUP,
    )


def delete_schema(group: str, schema_id: int) -> Call[None]:
    """Delete a schema by its id. Events written with it stay readable. Raises RegistryNotFoundError."""
    return _about(
        group,
        f"delete the schema with id {schema_id} of",
        "DELETE",
        f"/schemas/schema/{schema_id:d}",
        answers={204: lambda _: None},
        changes=True,
        refusals=_NOT_IN_GROUP,
    )


def schema_for_version(group: str, format_name: str, schema_type: str, version: int) -> Call[SchemaInfo]:
    """Return a schema by format, type and version, even if it was deleted. Raises RegistryNotFoundError."""
    return _about(
        group,
        f"read version {version} of {format_name} type {schema_type!r} of",
        "GET",
        _version_path(format_name, schema_type, version),
        answers={200: SchemaInfo.from_json},
        refusals=_NOT_IN_GROUP,
    )


def delete_schema_version(group: str, format_name: str, schema_type: str, version: int) -> Call[None]:
    """Delete a schema by format, type and version, like :func:`delete_schema`."""
    return _about(
        group,
        f"delete version {version} of {format_name} type {schema_type!r} of",
        "DELETE",
        _version_path(format_name, schema_type, version),
        answers={204: lambda _: None},
        changes=True,
        refusals=_NOT_IN_GROUP,
    )


def validate(group: str, schema: SchemaInfo, compatibility: Compatibility) -> Call[bool]:
    """Return True if a policy allows the schema."""
    return _about(
        group,
        f"validate a schema of type {schema.type!r} against",
        "POST",
        "/schemas/versions/validate",
        # The server fails without a policy, and the Java client sends none.
        body={"schemaInfo": schema.to_json(), "compatibility": compatibility.to_json()},
        answers={200: lambda body: parse.boolean(body, "valid")},
    )


def can_read(group: str, schema: SchemaInfo) -> Call[bool]:
    """Return True if the schema can read all events that the group's policy lets writers write.

    Raises RegistryNotFoundError.
    """
    return _about(
        group,
        f"check a reader's schema of type {schema.type!r} against",
        "POST",
        "/schemas/versions/canRead",
        body=schema.to_json(),
        answers={200: lambda body: parse.boolean(body, "compatible")},
    )


def schema_references(schema: SchemaInfo) -> Call[dict[str, VersionInfo]]:
    """Return the groups that have the schema, and its version in each."""
    return Call(
        purpose=f"find the groups with a schema of type {schema.type!r}",
        method="POST",
        path="/schemas/addedTo",
        body=schema.to_json(),
        answers={200: _read_references},
    )


def _version_path(format_name: str, schema_type: str, version: int) -> str:
    return f"/schemas/format/{in_path(format_name)}/type/{in_path(schema_type)}/versions/{version:d}"


def _read_schemas(body: object) -> list[SchemaWithVersion]:
    return parse.items(body, "schemas", SchemaWithVersion.from_json)


def _read_references(body: object) -> dict[str, VersionInfo]:
    groups = parse.member(body, "groups", dict)
    return {name: VersionInfo.from_json(groups[name]) for name in groups}
