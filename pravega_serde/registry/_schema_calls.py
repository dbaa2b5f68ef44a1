"""The registry's REST interface (version 1): schemas, each operation as a :class:`Call`."""

from __future__ import annotations

from pravega_serde.registry import _parsing as parse
from pravega_serde.registry._calls import Call, about, in_path
from pravega_serde.registry._groups import Compatibility, GroupHistoryRecord
from pravega_serde.registry._models import SchemaInfo, SchemaWithVersion, VersionInfo

__all__ = [
    "add_schema",
    "can_read",
    "delete_schema",
    "delete_schema_version",
    "find_version",
    "history",
    "latest_schemas",
    "schema_for_id",
    "schema_for_version",
    "schema_references",
    "schema_versions",
    "validate",
]


def latest_schemas(group: str) -> Call[list[SchemaWithVersion]]:
    """The last schema of each format and type. Raises RegistryNotFoundError."""
    return about(group, "read the schemas of", "GET", "/schemas", answers={200: _read_schemas})


def schema_versions(group: str, schema_type: str | None = None) -> Call[list[SchemaWithVersion]]:
    """All schemas, or those of one type, without deleted ones. Raises RegistryNotFoundError."""
    query = {} if schema_type is None else {"type": schema_type}
    return about(group, "read the schemas of", "GET", "/schemas/versions", query=query, answers={200: _read_schemas})


def history(group: str) -> Call[list[GroupHistoryRecord]]:
    """All schemas in the order of their adding, without deleted ones. Raises RegistryNotFoundError."""
    return about(
        group,
        "read the history of",
        "GET",
        "/history",
        answers={200: lambda body: parse.items(body, "history", GroupHistoryRecord.from_json)},
    )


def add_schema(group: str, schema: SchemaInfo) -> Call[VersionInfo]:
    """Add a schema, or find it if the group has it already: its version, either way. Durable on return.

    Raises RegistryNotFoundError, RegistryConflictError (not compatible, of another type in a group of one type, of
    another format), RegistryRequestError (a schema that the server cannot parse).
    """
    return about(
        group,
        f"add a schema of type {schema.type!r} to",
        "POST",
        "/schemas",
        body=schema.to_json(),
        answers={201: VersionInfo.from_json},
        changes=True,
        refusals={
            400: "the schema is malformed or does not describe that type",
            404: "there is no such group",
            409: "the schema is not compatible with those of the group, or of another type where one only is allowed",
            417: f"the group does not take the format {schema.format.full_type_name}",
        },
    )


def find_version(group: str, schema: SchemaInfo) -> Call[VersionInfo]:
    """The version of a schema that the group has; RegistryNotFoundError where it has not."""
    return about(
        group,
        f"find the schema of type {schema.type!r} in",
        "POST",
        "/schemas/versions/find",
        body=schema.to_json(),
        answers={200: VersionInfo.from_json},
        refusals={404: "there is no such group, or it does not have this schema"},
    )


def schema_for_id(group: str, schema_id: int) -> Call[SchemaInfo]:
    """A schema by its id, even if it was deleted. Raises RegistryNotFoundError."""
    return about(
        group,
        f"read the schema with id {schema_id} of",
        "GET",
        f"/schemas/schema/{schema_id:d}",
        answers={200: SchemaInfo.from_json},
    )


def delete_schema(group: str, schema_id: int) -> Call[None]:
    """Delete a schema by its id; what was written with it stays readable. Raises RegistryNotFoundError."""
    return about(
        group,
        f"delete the schema with id {schema_id} of",
        "DELETE",
        f"/schemas/schema/{schema_id:d}",
        answers={204: lambda _: None},
        changes=True,
    )


def schema_for_version(group: str, format_name: str, schema_type: str, version: int) -> Call[SchemaInfo]:
    """A schema by format, type and version, even if it was deleted. Raises RegistryNotFoundError."""
    return about(
        group,
        f"read version {version} of {format_name} type {schema_type!r} of",
        "GET",
        _version_path(format_name, schema_type, version),
        answers={200: SchemaInfo.from_json},
    )


def delete_schema_version(group: str, format_name: str, schema_type: str, version: int) -> Call[None]:
    """As :func:`delete_schema`, by format, type and version."""
    return about(
        group,
        f"delete version {version} of {format_name} type {schema_type!r} of",
        "DELETE",
        _version_path(format_name, schema_type, version),
        answers={204: lambda _: None},
        changes=True,
    )


def validate(group: str, schema: SchemaInfo, compatibility: Compatibility) -> Call[bool]:
    """Whether a policy would let the schema in."""
    return about(
        group,
        f"validate a schema of type {schema.type!r} against",
        "POST",
        "/schemas/versions/validate",
        # The server fails without a policy, and the Java client sends none.
        body={"schemaInfo": schema.to_json(), "compatibility": compatibility.to_json()},
        answers={200: lambda body: parse.boolean(body, "valid")},
    )


def can_read(group: str, schema: SchemaInfo) -> Call[bool]:
    """Whether the schema reads all that the group's policy lets writers write. Raises RegistryNotFoundError."""
    return about(
        group,
        f"check a reader's schema of type {schema.type!r} against",
        "POST",
        "/schemas/versions/canRead",
        body=schema.to_json(),
        answers={200: lambda body: parse.boolean(body, "compatible")},
    )


def schema_references(schema: SchemaInfo) -> Call[dict[str, VersionInfo]]:
    """The groups that have the schema, and its version in each."""
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
