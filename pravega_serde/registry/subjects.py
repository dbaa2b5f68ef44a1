"""Management of the subjects of a Confluent-compatible registry or of Apicurio: names, versions, policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pravega_serde.errors import SchemaError, SerdeError, UnsupportedRuleError
from pravega_serde.registry import confluent_calls as calls
from pravega_serde.registry.calls import Call
from pravega_serde.registry.confluent_calls import LEVELS, SubjectSchema
from pravega_serde.registry.confluent_store import ApicurioStore, ConfluentStore
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.interface import SchemaText
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import SerializerConfig

T = TypeVar("T")

_POLICIES: Final = {level: policy for policy, level in LEVELS.items()}


class Subjects:
    """Subjects of a registry. Policies have the names of Pravega's registry. Every method may raise a RegistryError."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config

    def _store(self, subject: str) -> ConfluentStore:
        kind = ApicurioStore if self._config.kind == "apicurio" else ConfluentStore
        return kind(SerializerConfig(registry=self._config, group=subject))

    def _run(self, call: Call[T], subject: str = "-") -> T:
        return self._store(subject).run(call)

    def names(self) -> list[str]:
        """Return the names of the subjects, sorted."""
        found = self._run(calls.subject_names())
        return sorted(found)

    def latest(self, subject: str) -> SubjectSchema:
        """Return the latest version of a subject."""
        return self._run(calls.schema_version(subject, "latest"))

    def versions(self, subject: str) -> list[SubjectSchema]:
        """Return all versions of a subject."""
        numbers = self._run(calls.version_numbers(subject))
        return [self._run(calls.schema_version(subject, number)) for number in numbers]

    def type_name(self, registered: SubjectSchema) -> str:
        """Return the name of a schema's type, as far as its text tells it."""
        part = part_of(registered.format)
        assert part is not None
        try:
            return part.from_text(SchemaText(registered.text)).type
        except SerdeError:  # it refers to other schemas, or a compiler is missing
            return ""

    def policy(self, subject: str) -> str:
        """Return the policy of a subject, or of the registry if it has none."""
        level = self._run(calls.compatibility_level(subject))
        return _POLICIES.get(level, level)

    def set_policy(self, subject: str, policy: str) -> None:
        """Set the policy of a subject. Raises :class:`SchemaError` for one that these registries do not have."""
        if policy not in LEVELS:
            raise SchemaError(f"this registry does not have the policy {policy!r}; it has {', '.join(LEVELS)}")
        self._run(calls.set_level(subject, LEVELS[policy]))

    def incompatibilities(self, subject: str, schema: SchemaInfo) -> list[str]:
        """Return the reasons why a schema may not be the next one of a subject."""
        return self._run(calls.incompatibilities(subject, self._body(subject, schema)))

    def add(self, subject: str, schema: SchemaInfo, contract: Mapping[str, Any] | None = None) -> SubjectSchema:
        """Add a schema, and return its version. ``contract`` has ``metadata`` and ``ruleSet``, as in the interface.

        Raises :class:`UnsupportedRuleError` if the registry has added the schema without them, as Apicurio does.
        """
        body = self._body(subject, schema) | dict(contract or {})
        self._run(calls.add_schema(subject, body))
        added = self._run(calls.find_schema(subject, body))
        if contract:
            stored = self._run(calls.schema_version(subject, added.version)).contract
            if ignored := [name for name in contract if name not in stored]:
                raise UnsupportedRuleError(
                    f"the registry has ignored {' and '.join(ignored)} of the schema: version {added.version} of "
                    f"subject {subject!r} has none; delete this version, and use a registry that stores rules"
                )
        return added

    def delete(self, subject: str) -> None:
        """Delete a subject with all its versions."""
        self._run(calls.delete_subject(subject))

    def delete_version(self, subject: str, version: int) -> None:
        """Delete a version of a subject."""
        self._run(calls.delete_version(subject, version))

    def _body(self, subject: str, schema: SchemaInfo) -> dict[str, Any]:
        return self._store(subject).body_of(schema)
