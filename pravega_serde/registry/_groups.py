"""Groups of schemas and their policies, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from pravega_serde.registry import _parsing as parse
from pravega_serde.registry._models import Json, SchemaInfo, SerializationFormat, VersionInfo

__all__ = ["Compatibility", "CompatibilityRule", "GroupHistoryRecord", "GroupProperties"]

_ADVANCED: Final = "Advanced"


@dataclass(frozen=True, slots=True)
class CompatibilityRule:
    """One direction of an advanced policy.

    It minds the last schema, all of them (``BackwardTransitive``), or all since ``version`` (``BackwardTill``).
    """

    name: str
    version: VersionInfo | None = None

    def to_json(self) -> Json:
        """The REST body."""
        return {"name": self.name, **({"versionInfo": self.version.to_json()} if self.version else {})}

    @classmethod
    def from_json(cls, body: object) -> CompatibilityRule:
        """From a REST body."""
        return cls(parse.text(body, "name"), parse.optional(body, "versionInfo", VersionInfo.from_json))


@dataclass(frozen=True, slots=True)
class Compatibility:
    """Which schemas a group takes beside those that it has: one of the constants, or :meth:`advanced`."""

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
        """Each direction with a rule of its own; one may be left out."""
        return cls(_ADVANCED, backward, forward)

    def to_json(self) -> Json:
        """The REST body."""
        if self.policy != _ADVANCED:
            return {"policy": self.policy}
        rules = {"backwardPolicy": self.backward, "forwardPolicy": self.forward}
        advanced = {name: {name: rule.to_json()} for name, rule in rules.items() if rule is not None}
        return {"policy": self.policy, "advanced": advanced}

    @classmethod
    def from_json(cls, body: object) -> Compatibility:
        """From a REST body."""
        advanced = parse.optional(body, "advanced", lambda value: value) or {}
        return cls(parse.text(body, "policy"), _rule(advanced, "backwardPolicy"), _rule(advanced, "forwardPolicy"))


def _rule(advanced: object, name: str) -> CompatibilityRule | None:
    # Wrapped once more in an object of the same name, as a generator of interfaces made it.
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
    """How a group was made. Only Avro groups take policies beside ALLOW_ANY and DENY_ALL."""

    format: SerializationFormat
    compatibility: Compatibility
    allow_multiple_types: bool = False
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    def to_json(self) -> Json:
        """The REST body."""
        return {
            "serializationFormat": self.format.to_json(),
            "compatibility": self.compatibility.to_json(),
            "allowMultipleTypes": self.allow_multiple_types,
            "properties": dict(self.properties),
        }

    @classmethod
    def from_json(cls, body: object) -> GroupProperties:
        """From a REST body."""
        return cls(
            format=SerializationFormat.from_json(parse.member(body, "serializationFormat", dict)),
            compatibility=Compatibility.from_json(parse.member(body, "compatibility", dict)),
            allow_multiple_types=parse.boolean(body, "allowMultipleTypes"),
            properties=parse.properties(body),
        )


@dataclass(frozen=True, slots=True)
class GroupHistoryRecord:
    """A schema that was added to a group: under which policy, when (Unix time in ms), and as text."""

    schema: SchemaInfo
    version: VersionInfo
    compatibility: Compatibility
    timestamp: int
    schema_string: str

    @classmethod
    def from_json(cls, body: object) -> GroupHistoryRecord:
        """From a REST body."""
        return cls(
            SchemaInfo.from_json(parse.member(body, "schemaInfo", dict)),
            VersionInfo.from_json(parse.member(body, "versionInfo", dict)),
            Compatibility.from_json(parse.member(body, "compatibility", dict)),
            parse.integer(body, "timestamp"),
            parse.text(body, "schemaString"),
        )
