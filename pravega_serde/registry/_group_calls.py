"""The registry's REST interface (version 1): groups, codecs and encodings, each operation as a :class:`Call`.

Paths, bodies and statuses: io.pravega.schemaregistry.contract.v1.ApiV1 and the measured answers of server 0.6.0.
"""

from __future__ import annotations

from typing import Final

from pravega_serde.registry import _parsing as parse
from pravega_serde.registry._calls import Call, about, in_path
from pravega_serde.registry._groups import Compatibility, GroupProperties
from pravega_serde.registry._models import CodecType, EncodingInfo, VersionInfo

__all__ = [
    "add_codec",
    "add_group",
    "codecs",
    "encoding_id",
    "encoding_info",
    "group_properties",
    "groups_page",
    "remove_group",
    "update_compatibility",
]

# As the Java client asks.
_PAGE: Final = 100


def groups_page(token: str | None, namespace: str | None) -> Call[tuple[dict[str, GroupProperties], str | None]]:
    """Some groups by name, and where the next ones begin. The last page is empty; its token means nothing."""
    query = {"limit": str(_PAGE)}
    if token is not None:
        query["continuationToken"] = token
    if namespace is not None:
        query["namespace"] = namespace
    return Call(purpose="list the groups", method="GET", path="/groups", query=query, answers={200: _read_page})


def add_group(group: str, properties: GroupProperties) -> Call[bool]:
    """Add a group; false if there is one of that name, whose properties stay as they are.

    An earlier try of the same call, whose answer was lost, may have added it. Raises RegistryRequestError for a policy
    that the format does not have: formats beside Avro know ALLOW_ANY and DENY_ALL only.
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
    """Remove a group with all that it holds; nothing happens if there is none."""
    return about(group, "remove", "DELETE", answers={204: lambda _: None}, changes=True)


def group_properties(group: str) -> Call[GroupProperties]:
    """How the group was made, with its policy of now. Raises RegistryNotFoundError."""
    return about(group, "read the properties of", "GET", answers={200: GroupProperties.from_json})


def update_compatibility(group: str, compatibility: Compatibility, previous: Compatibility | None = None) -> Call[None]:
    """Set the group's policy; with ``previous`` only if that is the policy of now, else RegistryConflictError.

    With ``previous`` the call is not repeated once the server may have seen it.
    """
    body = {"compatibility": compatibility.to_json()}
    if previous is not None:
        body["previousCompatibility"] = previous.to_json()
    return about(
        group,
        "set the compatibility of",
        "PUT",
        "/compatibility",
        body=body,
        answers={200: lambda _: None},
        changes=True,
        once=previous is not None,
        refusals={409: "its policy is not the one that was expected"},
    )


def codecs(group: str) -> Call[list[CodecType]]:
    """The codecs of a group; CodecType.NONE, which every group has, is not among them. Raises RegistryNotFoundError."""
    return about(
        group,
        "read the codecs of",
        "GET",
        "/codecTypes",
        answers={200: lambda body: parse.items(body, "codecTypes", CodecType.from_json)},
    )


def add_codec(group: str, codec: CodecType) -> Call[None]:
    """Add a codec; nothing happens if the group has one of that name. Raises RegistryNotFoundError."""
    return about(
        group,
        f"add codec {codec.name!r} to",
        "POST",
        "/codecTypes",
        body=codec.to_json(),
        answers={201: lambda _: None},
        changes=True,
    )


def encoding_id(group: str, version: VersionInfo, codec: str) -> Call[int]:
    """The id for events of a schema and a codec's name, made now if there is none yet. Durable on return.

    Raises RegistryNotFoundError (no such group or schema, or a deleted one), RegistryConflictError (the group does not
    have the codec).
    """
    return about(
        group,
        f"get the encoding id of version {version.version} of type {version.type!r} in",
        "PUT",
        "/encodings",
        body={"versionInfo": version.to_json(), "codecType": codec},
        answers={200: lambda body: parse.integer(body, "encodingId")},
        changes=True,
        refusals={404: "there is no such group or schema", 412: f"the group does not have the codec {codec!r}"},
    )


def encoding_info(group: str, encoding: int) -> Call[EncodingInfo]:
    """What an encoding id stands for. Raises RegistryNotFoundError."""
    return about(
        group,
        f"look up encoding id {encoding} in",
        "GET",
        f"/encodings/{encoding:d}",
        answers={200: EncodingInfo.from_json},
        refusals={404: "there is no such group, or it never gave this encoding id"},
    )


def _read_page(body: object) -> tuple[dict[str, GroupProperties], str | None]:
    groups = parse.member(body, "groups", dict)
    read = {name: GroupProperties.from_json(groups[name]) for name in groups}
    return read, parse.text(body, "continuationToken") if read else None
