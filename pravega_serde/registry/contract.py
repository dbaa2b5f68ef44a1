"""Values of the registry: schemas, versions, encodings, groups and their policies.

``to_json`` and ``from_json`` convert the bodies of the REST interface. Names and meanings are those of the Java client
(io.pravega.schemaregistry.contract.data). Unknown members of an answer are ignored. For any other unexpected answer,
``from_json`` raises RegistryProtocolError.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from pravega_serde.registry import answers as parse

Json = dict[str, Any]
_CUSTOM: Final = "Custom"
_ADVANCED: Final = "Advanced"


@dataclass(frozen=True, slots=True)
class SerializationFormat:
    """Format of events: one of the constants, or :meth:`custom`. ``full_type_name`` identifies custom formats."""

    name: str
    full_type_name: str

    AVRO: ClassVar[SerializationFormat]
    PROTOBUF: ClassVar[SerializationFormat]
    JSON: ClassVar[SerializationFormat]
    #: Only for a group: it accepts schemas of every format.
    ANY: ClassVar[SerializationFormat]

    @classmethod
    def custom(cls, full_type_name: str) -> SerializationFormat:
        """Return a custom format with any name."""
        return cls(_CUSTOM, full_type_name)

    def to_json(self) -> Json:
        """Return the REST body."""
        return {"serializationFormat": self.name, "fullTypeName": self.full_type_name}

    @classmethod
    def from_json(cls, body: object) -> SerializationFormat:
        """Parse a REST body."""
        name = parse.text(body, "serializationFormat")
        # The server echoes the full name that was sent with a standard format; it has no meaning.
        return cls(name, parse.text(body, "fullTypeName") if name == _CUSTOM else name)


SerializationFormat.AVRO = SerializationFormat("Avro", "Avro")
SerializationFormat.PROTOBUF = SerializationFormat("Protobuf", "Protobuf")
SerializationFormat.JSON = SerializationFormat("Json", "Json")
SerializationFormat.ANY = SerializationFormat("Any", "Any")


@dataclass(frozen=True, slots=True)
class SchemaInfo:
    """Schema.

    ``type`` is the name of the type that it describes; ``data`` is its text or bytes in the format's form.
    """

    type: str
    format: SerializationFormat
    data: bytes
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> Json:
        """Return the REST body."""
        return {
            "type": self.type,
            "serializationFormat": self.format.to_json(),
            "schemaData": base64.b64encode(self.data).decode("ascii"),
            "properties": dict(self.properties),
        }

    @classmethod
    def from_json(cls, body: object) -> SchemaInfo:
        """Parse a REST body."""
        return cls(
            type=parse.text(body, "type"),
            format=SerializationFormat.from_json(parse.member(body, "serializationFormat", dict)),
            data=parse.data(body, "schemaData"),
            properties=parse.properties(body),
        )


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """Version of a schema in its group: ``version`` counts per format and type, ``id`` over the whole group.

    Send it back exactly as the server returned it, because all members together are the key of an encoding id.
    ``format`` is the full type name.
    """

    type: str
    format: str
    version: int
    id: int

    def to_json(self) -> Json:
        """Return the REST body."""
        return {"type": self.type, "serializationFormat": self.format, "version": self.version, "id": self.id}

    @classmethod
    def from_json(cls, body: object) -> VersionInfo:
        """Parse a REST body."""
        return cls(
            type=parse.text(body, "type"),
            format=parse.text(body, "serializationFormat"),
            version=parse.integer(body, "version"),
            id=parse.integer(body, "id"),
        )


@dataclass(frozen=True, slots=True)
class SchemaWithVersion:
    """Schema of a group, and its version in the group."""

    schema: SchemaInfo
    version: VersionInfo

    def to_json(self) -> Json:
        """Return the REST body."""
        return {"schemaInfo": self.schema.to_json(), "versionInfo": self.version.to_json()}

    @classmethod
    def from_json(cls, body: object) -> SchemaWithVersion:
        """Parse a REST body."""
        return cls(
            SchemaInfo.from_json(parse.member(body, "schemaInfo", dict)),
            VersionInfo.from_json(parse.member(body, "versionInfo", dict)),
        )


@dataclass(frozen=True, slots=True)
class CodecType:
    """Codec of payloads: compression or another encoding. ``properties`` are for the decoder."""

    name: str
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    #: No encoding: every group has it from the start.
    NONE: ClassVar[CodecType]

    def to_json(self) -> Json:
        """Return the REST body."""
        return {"name": self.name, "properties": dict(self.properties)}

    @classmethod
    def from_json(cls, body: object) -> CodecType:
        """Parse a REST body."""
        return cls(parse.text(body, "name"), parse.properties(body))


CodecType.NONE = CodecType("")


@dataclass(frozen=True, slots=True)
class EncodingInfo:
    """Schema, version and codec of an encoding id."""

    schema: SchemaInfo
    version: VersionInfo
    codec: CodecType

    def to_json(self) -> Json:
        """Return the REST body."""
        return {
            "schemaInfo": self.schema.to_json(),
            "versionInfo": self.version.to_json(),
            "codecType": self.codec.to_json(),
        }

    @classmethod
    def from_json(cls, body: object) -> EncodingInfo:
        """Parse a REST body."""
        return cls(
            SchemaInfo.from_json(parse.member(body, "schemaInfo", dict)),
            VersionInfo.from_json(parse.member(body, "versionInfo", dict)),
            CodecType.from_json(parse.member(body, "codecType", dict)),
        )


# ---- groups ----


@dataclass(frozen=True, slots=True)
class CompatibilityRule:
    """One direction of an advanced policy.

    It compares with the last schema, all schemas (``BackwardTransitive``), or all since ``version`` (``BackwardTill``).
    """

    name: str
    version: VersionInfo | None = None

    def to_json(self) -> Json:
        """Return the REST body."""
        return {"name": self.name, **({"versionInfo": self.version.to_json()} if self.version else {})}

    @classmethod
    def from_json(cls, body: object) -> CompatibilityRule:
        """Parse a REST body."""
        return cls(parse.text(body, "name"), parse.optional(body, "versionInfo", VersionInfo.from_json))


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Policy for the new schemas that a group accepts: a constant, or :meth:`advanced`."""

    policy: str
    backward: CompatibilityRule | None = None
    forward: CompatibilityRule | None = None

    ALLOW_ANY: ClassVar[Compatibility]
    DENY_ALL: ClassVar[Compatibility]
    #: The new schema reads what the last one wrote.
    BACKWARD: ClassVar[Compatibility]
    #: The last schema reads what the new one writes.
    FORWARD: ClassVar[Compatibility]
    BACKWARD_TRANSITIVE: ClassVar[Compatibility]
    FORWARD_TRANSITIVE: ClassVar[Compatibility]
    FULL: ClassVar[Compatibility]
    FULL_TRANSITIVE: ClassVar[Compatibility]

    @classmethod
    def advanced(
        cls, *, backward: CompatibilityRule | None = None, forward: CompatibilityRule | None = None
    ) -> Compatibility:
        """Return a policy with a separate rule for each direction. One may be left out."""
        return cls(_ADVANCED, backward, forward)

    def to_json(self) -> Json:
        """Return the REST body."""
        if self.policy != _ADVANCED:
            return {"policy": self.policy}
        rules = {"backwardPolicy": self.backward, "forwardPolicy": self.forward}
        advanced = {name: {name: rule.to_json()} for name, rule in rules.items() if rule is not None}
        return {"policy": self.policy, "advanced": advanced}

    @classmethod
    def from_json(cls, body: object) -> Compatibility:
        """Parse a REST body."""
        advanced = parse.optional(body, "advanced", lambda value: value) or {}
        return cls(parse.text(body, "policy"), _rule(advanced, "backwardPolicy"), _rule(advanced, "forwardPolicy"))


def _rule(advanced: object, name: str) -> CompatibilityRule | None:
    # An interface generator wrapped it once more in an object of the same name.
    policy = parse.optional(advanced, name, lambda value: value)
    return None if policy is None else parse.optional(policy, name, CompatibilityRule.from_json)


Compatibility.ALLOW_ANY = Compatibility("AllowAny")
Compatibility.DENY_ALL = Compatibility("DenyAll")
Compatibility.BACKWARD = Compatibility("Backward")
Compatibility.FORWARD = Compatibility("Forward")
Compatibility.BACKWARD_TRANSITIVE = Compatibility("BackwardTransitive")
Compatibility.FORWARD_TRANSITIVE = Compatibility("ForwardTransitive")
Compatibility.FULL = Compatibility("Full")
Compatibility.FULL_TRANSITIVE = Compatibility("FullTransitive")


@dataclass(frozen=True, slots=True)
class GroupProperties:
    """Properties of a group. Only Avro groups accept policies other than ALLOW_ANY and DENY_ALL."""

    format: SerializationFormat
    compatibility: Compatibility
    allow_multiple_types: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> Json:
        """Return the REST body."""
        return {
            "serializationFormat": self.format.to_json(),
            "compatibility": self.compatibility.to_json(),
            "allowMultipleTypes": self.allow_multiple_types,
            "properties": dict(self.properties),
        }

    @classmethod
    def from_json(cls, body: object) -> GroupProperties:
        """Parse a REST body."""
        return cls(
            format=SerializationFormat.from_json(parse.member(body, "serializationFormat", dict)),
            compatibility=Compatibility.from_json(parse.member(body, "compatibility", dict)),
            allow_multiple_types=parse.boolean(body, "allowMultipleTypes"),
            properties=parse.properties(body),
        )


@dataclass(frozen=True, slots=True)
class GroupHistoryRecord:
    """Schema that was added to a group: its policy at that time, the Unix time in ms, and the schema as text."""

    schema: SchemaInfo
    version: VersionInfo
    compatibility: Compatibility
    timestamp: int
    schema_string: str

    @classmethod
    def from_json(cls, body: object) -> GroupHistoryRecord:
        """Parse a REST body."""
        return cls(
            SchemaInfo.from_json(parse.member(body, "schemaInfo", dict)),
            VersionInfo.from_json(parse.member(body, "versionInfo", dict)),
            Compatibility.from_json(parse.member(body, "compatibility", dict)),
            parse.integer(body, "timestamp"),
            parse.text(body, "schemaString"),
        )
