"""Operations of Confluent's REST interface that the serializers need, and two of Apicurio's own.

Each is a :class:`Call`, as in ``calls``. Karapace, Redpanda and Apicurio Registry have the same interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from pravega_serde.errors import RegistryNotFoundError, RegistryProtocolError
from pravega_serde.registry import answers as parse
from pravega_serde.registry.calls import Call, in_path
from pravega_serde.registry.contract import SerializationFormat

T = TypeVar("T")

_NO_SUBJECT: Final = (
    "the subject does not exist, or it does not have this schema; register the schema first, or set "
    "register_schema in the writer"
)
_INCOMPATIBLE: Final = "the schema is incompatible with those of the subject"
#: Name of a policy in Pravega's registry -> compatibility level.
LEVELS: Final[Mapping[str, str]] = {
    "AllowAny": "NONE",
    "Backward": "BACKWARD",
    "BackwardTransitive": "BACKWARD_TRANSITIVE",
    "Forward": "FORWARD",
    "ForwardTransitive": "FORWARD_TRANSITIVE",
    "Full": "FULL",
    "FullTransitive": "FULL_TRANSITIVE",
}
#: Name in the interface -> format. A missing name is Avro.
_FORMATS: Final[Mapping[str, SerializationFormat]] = {
    "AVRO": SerializationFormat.AVRO,
    "JSON": SerializationFormat.JSON,
    "PROTOBUF": SerializationFormat.PROTOBUF,
}


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference of a schema to a version of a subject, by a name that the schema uses."""

    name: str
    subject: str
    version: int

    def to_json(self) -> dict[str, Any]:
        """Return the REST body."""
        return {"name": self.name, "subject": self.subject, "version": self.version}

    @classmethod
    def from_json(cls, body: object) -> Reference:
        """Parse a REST body."""
        return cls(parse.text(body, "name"), parse.text(body, "subject"), parse.integer(body, "version"))


@dataclass(frozen=True, slots=True)
class SubjectSchema:
    """Schema as the interface returns it. ``id`` and ``version`` are 0 if the answer does not have them."""

    id: int
    version: int
    format: SerializationFormat
    text: str
    references: tuple[Reference, ...]
    contract: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Members ``metadata`` and ``ruleSet`` of the answer."""

    @classmethod
    def from_json(cls, body: object) -> SubjectSchema:
        """Parse a REST body."""
        text = parse.text(body, "schema")
        assert isinstance(body, Mapping)  # or parse.text has raised an error
        name = body.get("schemaType") or "AVRO"
        if name not in _FORMATS:
            raise RegistryProtocolError(f"the registry's answer has a schema of the unknown type {name!r:.80}")
        references = parse.items(body, "references", Reference.from_json) if body.get("references") else []
        contract = {name: body[name] for name in ("metadata", "ruleSet") if body.get(name)}
        return cls(_number(body, "id"), _number(body, "version"), _FORMATS[name], text, tuple(references), contract)


def _number(body: Mapping[str, Any], name: str) -> int:
    return 0 if body.get(name) is None else parse.integer(body, name)


def schema_by_id(schema_id: int, form: str | None = None) -> Call[SubjectSchema]:
    """Return the schema of an id. ``form`` is how to print it. Raises RegistryNotFoundError."""
    return Call(
        purpose=f"read the schema with id {schema_id}",
        method="GET",
        path=f"/schemas/ids/{schema_id}",
        query={} if form is None else {"format": form},
        answers={200: SubjectSchema.from_json},
        refusals={404: "the registry does not have it"},
    )


def schema_version(subject: str, version: int | str, form: str | None = None) -> Call[SubjectSchema]:
    """Return a version of a subject: its number, or ``latest``. Raises RegistryNotFoundError."""
    return Call(
        purpose=f"read the version {version} of subject {subject!r}",
        method="GET",
        path=f"/subjects/{in_path(subject)}/versions/{version}",
        query={} if form is None else {"format": form},
        answers={200: SubjectSchema.from_json},
        refusals={404: _NO_SUBJECT},
    )


def any_version(subject: str, version: int) -> Call[SubjectSchema]:
    """Return a version of a subject, also if it was deleted, but not permanently. Raises RegistryNotFoundError."""
    return replace(schema_version(subject, version), query={"deleted": "true"})


def versions_of(schema_id: int) -> Call[list[tuple[str, int]]]:
    """Return the subjects and versions with a schema, also deleted ones. Raises RegistryNotFoundError."""
    return Call(
        purpose=f"list the versions of the schema with id {schema_id}",
        method="GET",
        path=f"/schemas/ids/{schema_id}/versions",
        query={"deleted": "true"},
        answers={200: _places},
    )


def find_schema(subject: str, body: Mapping[str, Any], *, normalize: bool = False) -> Call[SubjectSchema]:
    """Return the version of a subject that has a schema. Raises RegistryNotFoundError."""
    return Call(
        purpose=f"find the schema in subject {subject!r}",
        method="POST",
        path=f"/subjects/{in_path(subject)}",
        query={"normalize": "true"} if normalize else {},
        body=body,
        answers={200: SubjectSchema.from_json},
        refusals={404: _NO_SUBJECT},
    )


def add_schema(subject: str, body: Mapping[str, Any], *, normalize: bool = False) -> Call[int]:
    """Add a schema to a subject, and return its id. Raises RegistryConflictError if it is incompatible."""
    return Call(
        purpose=f"add the schema to subject {subject!r}",
        method="POST",
        path=f"/subjects/{in_path(subject)}/versions",
        query={"normalize": "true"} if normalize else {},
        body=body,
        answers={200: lambda answer: parse.integer(answer, "id")},
        group=subject,
        changes=True,
        refusals={409: _INCOMPATIBLE},
    )


# ---- management of subjects ----


def _about(subject: str, purpose: str, method: str, path: str, read: Callable[[Any], T], **more: Any) -> Call[T]:
    return Call(
        purpose=f"{purpose} subject {subject!r}",
        method=method,
        path=path,
        answers={200: read},
        group=subject,
        changes=method in ("DELETE", "PUT"),
        **more,
    )


def subject_names() -> Call[list[str]]:
    """Return the names of all subjects."""
    return Call(purpose="list the subjects", method="GET", path="/subjects", answers={200: _strings})


def version_numbers(subject: str, *, deleted: bool = False) -> Call[list[int]]:
    """Return the versions of a subject, with those that were deleted if wanted. Raises RegistryNotFoundError."""
    path = f"/subjects/{in_path(subject)}/versions"
    query = {"deleted": "true"} if deleted else {}
    return _about(subject, "list the versions of", "GET", path, _integers, refusals={404: _NO_SUBJECT}, query=query)


def compatibility_level(subject: str) -> Call[str]:
    """Return the compatibility level of a subject, or of the registry if it has none."""
    query = {"defaultToGlobal": "true"}
    return _about(subject, "read the compatibility of", "GET", f"/config/{in_path(subject)}", _level, query=query)


def set_level(subject: str, level: str) -> Call[None]:
    """Set the compatibility level of a subject."""
    path, body = f"/config/{in_path(subject)}", {"compatibility": level}
    return _about(subject, "set the compatibility of", "PUT", path, lambda _: None, body=body)


def incompatibilities(subject: str, body: Mapping[str, Any]) -> Call[list[str]]:
    """Return the reasons why a schema is incompatible with the latest one of a subject; empty if it is compatible."""

    def read(answer: Any) -> list[str]:
        if parse.boolean(answer, "is_compatible"):
            return []
        given = answer.get("messages") if isinstance(answer, Mapping) else None
        return [str(each) for each in given or ["the registry refuses the schema"]]

    path = f"/compatibility/subjects/{in_path(subject)}/versions/latest"
    return _about(subject, "check the schema with", "POST", path, read, body=body, query={"verbose": "true"})


def delete_subject(subject: str) -> Call[None]:
    """Delete a subject with all its versions. Raises RegistryNotFoundError."""
    path = f"/subjects/{in_path(subject)}"
    return _about(subject, "delete", "DELETE", path, lambda _: None, refusals={404: _NO_SUBJECT})


def delete_version(subject: str, version: int) -> Call[None]:
    """Delete a version of a subject. Raises RegistryNotFoundError."""
    path = f"/subjects/{in_path(subject)}/versions/{version}"
    return _about(subject, "delete a version of", "DELETE", path, lambda _: None)


def _strings(answer: Any) -> list[str]:
    if not isinstance(answer, list):
        raise RegistryProtocolError("the registry's answer is not a list")
    return [str(each) for each in answer]


def _integers(answer: Any) -> list[int]:
    return [int(each) for each in _strings(answer)]


def _places(answer: Any) -> list[tuple[str, int]]:
    def read(each: Any) -> tuple[str, int]:
        return parse.text(each, "subject"), parse.integer(each, "version")

    return parse.items({"versions": answer}, "versions", read)


def _level(answer: Any) -> str:
    return parse.text(answer, "compatibilityLevel")


def schema_body(format: SerializationFormat, text: str, references: tuple[Reference, ...]) -> dict[str, Any]:
    """Return the REST body of a schema."""
    body: dict[str, Any] = {"schema": text, "schemaType": format.name.upper()}
    return body | ({"references": [each.to_json() for each in references]} if references else {})


def artifact_ids(artifact: str) -> Call[list[tuple[int, int]]]:
    """Return the global id and the content id of each version of an artifact of Apicurio's own interface."""

    def read(body: object) -> list[tuple[int, int]]:
        return parse.items(
            body, "versions", lambda each: (parse.integer(each, "globalId"), parse.integer(each, "contentId"))
        )

    return Call(
        purpose=f"list the ids of artifact {artifact!r}",
        method="GET",
        path="/registry/v3/search/versions",
        query={"artifactId": artifact, "orderby": "globalId", "order": "asc", "limit": "1000"},
        answers={200: read},
    )


def content_id(global_id: int) -> Call[int]:
    """Return the content id of a global id of Apicurio, whose own interface has it. Raises RegistryNotFoundError."""

    def read(body: object) -> int:
        found = parse.items(body, "versions", lambda each: parse.integer(each, "contentId"))
        if not found:
            raise RegistryNotFoundError(f"the registry does not have the global id {global_id}")
        return found[0]

    return Call(
        purpose=f"find the version with global id {global_id}",
        method="GET",
        path="/registry/v3/search/versions",
        query={"globalId": str(global_id), "limit": "1"},
        answers={200: read},
    )
