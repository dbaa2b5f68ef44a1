"""Registries as the serializers use them: a writer's schema for the id in an event, and a header for a schema.

Everything after that is the same for all registries: codecs, columns and schema resolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pravega_serde.errors import RegistryNotFoundError, SchemaError
from pravega_serde.registry.confluent_store import ApicurioStore, ConfluentStore
from pravega_serde.registry.contract import EncodingInfo, SchemaInfo, SchemaWithVersion, SerializationFormat
from pravega_serde.registry.header import Framing
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.message_prefix import MessagePrefix
from pravega_serde.registry.pravega_store import PravegaStore
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.settings import SerializerConfig, serializer_config

if TYPE_CHECKING:
    from pravega_serde.registry.migrations import PayloadMigration
    from pravega_serde.registry.payload_rules import PayloadRules


class SchemaStore(Protocol):
    """Registry, and the group in it. Every method may raise a RegistryError."""

    framings: tuple[Framing, ...]
    """Framings of the registry's events. The first one is written."""
    all_files: bool
    """True if a Protobuf schema is registered with all files that it imports."""

    # Reading

    def writer(self, framing: Framing, encoding_id: int, prefix: bytes = b"") -> EncodingInfo:
        """Return the schema and the codec of an id. ``prefix`` selects a message type of the schema.

        Raises RegistryNotFoundError for an unknown id.
        """

    def prefix_of(self, format: SerializationFormat) -> MessagePrefix | None:
        """Return the kind of prefix that payloads of a format have, or None."""

    def title(self, encoding: EncodingInfo) -> str:
        """Return a name of an encoding for errors."""

    def check_group(self) -> None:
        """Raise RegistryNotFoundError if the group does not exist."""

    def latest(self, type: str | None = None, metadata: Mapping[str, str] | None = None) -> list[SchemaWithVersion]:
        """Return the latest schemas of the group, or of one type. Raises RegistryNotFoundError.

        With ``metadata``, they are the latest ones that have these properties.
        """

    def schema(self, schema_id: int, type: str | None = None) -> SchemaInfo:
        """Return the schema of an id that :meth:`latest` returned for the type."""

    def ids(self, framing: Framing, readers: Sequence[SchemaInfo]) -> Iterator[int]:
        """Yield the ids that events of the group have now, with one request for each, in the order of their creation.

        In a registry of subjects, they are the ids of the readers' subjects.
        """

    def prepare_reader(self, default: SerializationFormat) -> None:
        """Do what the settings require before the first read. Raises :class:`SerdeError`."""

    def check_readable(self, reader: SchemaInfo) -> None:
        """Raise :class:`SchemaError` if the registry says that a schema cannot read the group's events."""

    def rules_to_read(self, framing: Framing, encoding: EncodingInfo) -> PayloadRules | None:
        """Return the rules of the events of an encoding; None if there are none.

        Raises :class:`UnsupportedRuleError` for a rule that cannot be run.
        """

    def migration(self, framing: Framing, encoding: EncodingInfo, reader: EventType) -> PayloadMigration | None:
        """Return the rules that change events of an encoding into those of a reader's version; None if there are none.

        Raises :class:`UnsupportedRuleError` for a rule that cannot be run, and RegistryNotFoundError for a version that
        was deleted permanently.
        """

    # Writing

    def check_accepts(self, schema: SchemaInfo) -> None:
        """Raise :class:`SchemaError` for a schema that this kind of registry does not have."""

    def prepare_writer(self, default: SerializationFormat) -> None:
        """Do what the settings require before the first write. Raises :class:`SerdeError`."""

    def prepared(self, type: EventType) -> tuple[bytes, PayloadRules | None]:
        """Return the bytes before each payload of a type, and its rules. The schema is added or found first.

        Raises :class:`UnsupportedRuleError` for a rule that cannot be run.
        """


def store_of(config: SerializerConfig) -> SchemaStore:
    """Return the registry and the group of a configuration. Its client is shared by the process."""
    if config.registry.kind == "pravega":
        return PravegaStore(config)
    return (ApicurioStore if config.registry.kind == "apicurio" else ConfluentStore)(config)


def latest_or_none(config: SerializerConfig, type: str) -> SchemaInfo | None:
    """Return the latest schema of a type in the group of a configuration, or None if there is none."""
    try:
        return next((each.schema for each in store_of(config).latest(type) if each.schema.type == type), None)
    except RegistryNotFoundError:
        return None


def latest_schema(
    registry: str | RegistryConfig,
    *,
    group: str,
    type: str | None = None,
    namespace: str | None = None,
) -> SchemaInfo:
    """Return the latest schema of a group, for example for :func:`~pravega_serde.generate`.

    ``registry`` is a URI, as for :func:`deserializer`, or a RegistryConfig. ``type`` selects one of several types.
    Raises :class:`SchemaError` if there are several without it, RegistryNotFoundError, and other RegistryErrors.
    """
    return latest_of(serializer_config(registry, group, {"namespace": namespace}), type)


def latest_of(config: SerializerConfig, type: str | None) -> SchemaInfo:
    """Return the latest schema of the group of a configuration; see :func:`latest_schema`."""
    store, group = store_of(config), config.group
    store.check_group()
    found = [each.schema for each in store.latest(type)]
    if not found:
        wanted = "schema" if type is None else f"schema of the type {type!r}"
        raise RegistryNotFoundError(f"the group {group!r} has no {wanted}")
    if len(found) > 1:
        names = ", ".join(sorted(each.type for each in found))
        raise SchemaError(f"the group {group!r} has schemas of {len(found)} types; set the type: {names[:500]}")
    return found[0]
