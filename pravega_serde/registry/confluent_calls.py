"""Operations of Confluent's REST interface that the serializers need, and two of Apicurio's own.

Each is a :class:`Call`, as in ``calls``. Karapace, Redpanda and Apicurio Registry have the same interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pravega_serde.errors import RegistryNotFoundError, RegistryProtocolError
from pravega_serde.registry import answers as parse
from pravega_serde.registry.calls import Call, in_path
from pravega_serde.registry.contract import SerializationFormat

_NO_SUBJECT: Final = (
    "the subject does not exist, or it does not have this schema; register the schema first, or set "
    "register_schema in the writer"
)
_INCOMPATIBLE: Final = "the schema is incompatible with those of the subject"
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


def find_schema(subject: str, body: Mapping[str, Any]) -> Call[SubjectSchema]:
    """Return the version of a subject that has a schema. Raises RegistryNotFoundError."""
    return Call(
        purpose=f"find the schema in subject {subject!r}",
        method="POST",
        path=f"/subjects/{in_path(subject)}",
        body=body,
        answers={200: SubjectSchema.from_json},
        refusals={404: _NO_SUBJECT},
    )


def add_schema(subject: str, body: Mapping[str, Any]) -> Call[int]:
    """Add a schema to a subject, and return its id. Raises RegistryConflictError if it is incompatible."""
    return Call(
        purpose=f"add the schema to subject {subject!r}",
        method="POST",
        path=f"/subjects/{in_path(subject)}/versions",
        body=body,
        answers={200: lambda answer: parse.integer(answer, "id")},
        group=subject,
        changes=True,
        refusals={409: _INCOMPATIBLE},
    )


def schema_body(format: SerializationFormat, text: str, references: tuple[Reference, ...]) -> dict[str, Any]:
    """Return the REST body of a schema."""
    body: dict[str, Any] = {"schema": text, "schemaType": format.name.upper()}
    return body | ({"references": [each.to_json() for each in references]} if references else {})


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
