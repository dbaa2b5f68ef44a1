"""Pravega's registry as the serializers use it: groups, codecs and encoding ids, with Java's order of calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pravega_serde.errors import (
    RegistryConflictError,
    RegistryNotFoundError,
    SchemaError,
    SerdeError,
    UnsupportedCodecError,
)
from pravega_serde.registry.clients import SchemaRegistryClient, shared_client
from pravega_serde.registry.contract import (
    Compatibility,
    EncodingInfo,
    GroupProperties,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
)
from pravega_serde.registry.evolution import check_compatibility
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.header import PRAVEGA, Framing
from pravega_serde.registry.interface import EventType
from pravega_serde.registry.message_prefix import MessagePrefix
from pravega_serde.registry.settings import SerializerConfig

#: Policies of groups with schemas that the server does not compare.
_PLAIN_POLICIES: Final = frozenset({"AllowAny", "DenyAll"})


class PravegaStore:
    """Group of a Pravega registry, a :class:`SchemaStore`."""

    framings: tuple[Framing, ...] = (PRAVEGA,)
    all_files = False

    def __init__(self, config: SerializerConfig) -> None:
        self._config, self._group = config, config.group

    @property
    def _client(self) -> SchemaRegistryClient:
        return shared_client(self._config.registry)

    # Reading

    def writer(self, framing: Framing, encoding_id: int, prefix: bytes = b"") -> EncodingInfo:
        """Return the schema and the codec of an encoding id."""
        return self._client.encoding_info(self._group, encoding_id)

    def prefix_of(self, format: SerializationFormat) -> MessagePrefix | None:
        """Return None: an encoding id identifies the type."""
        return None

    def title(self, encoding: EncodingInfo) -> str:
        """Return the version and the type of an encoding."""
        return f"version {encoding.version.version} of {encoding.schema.type!r}"

    def check_group(self) -> None:
        """Raise RegistryNotFoundError if the group does not exist."""
        self._client.group_properties(self._group)

    def latest(self, type: str | None = None, metadata: Mapping[str, str] | None = None) -> list[SchemaWithVersion]:
        """Return the latest schema of each type, or of one. Schemas have no metadata here."""
        return self._client.latest_schemas(self._group, type)

    def schema(self, schema_id: int, type: str | None = None) -> SchemaInfo:
        """Return the schema of an id."""
        return self._client.schema_for_id(self._group, schema_id)

    def ids(self, framing: Framing, readers: Sequence[SchemaInfo]) -> Iterator[int]:
        """Yield the encoding ids of the group, which a registry counts from 0."""
        for encoding_id in itertools.count():
            try:
                self._client.encoding_info(self._group, encoding_id)
            except RegistryNotFoundError:
                return
            yield encoding_id

    def prepare_reader(self, default: SerializationFormat) -> None:
        """Create the group if the settings require it.

        Raises :class:`UnsupportedCodecError` if the group has a codec that is not known here.
        """
        self._prepare_group(default)
        if not self._config.fail_on_codec_mismatch:
            return
        known = self._config.known_codecs()
        missing = [each.name for each in self._client.codecs(self._group) if each.name not in known]
        if missing:
            raise UnsupportedCodecError(
                f"the group {self._group!r} has the codecs {', '.join(missing)}, which this reader does not have: "
                "name them in codecs, or set fail_on_codec_mismatch to false"
            )

    def check_readable(self, reader: SchemaInfo) -> None:
        """Raise :class:`SchemaError` if the policy of the group allows events that a schema cannot read."""
        if reader.type and not self._client.can_read(self._group, reader):
            raise SchemaError(
                f"the compatibility policy of the group {self._group!r} allows events that the schema for "
                f"{reader.type!r} cannot read"
            )

    # Writing

    def check_accepts(self, schema: SchemaInfo) -> None:
        """Raise :class:`SchemaError` for a schema that the server does not accept."""
        check_accepted(schema)

    def prepare_writer(self, default: SerializationFormat) -> None:
        """Create the group and add the codec if the settings require it."""
        self._prepare_group(default)
        if self._config.register_codec and self._config.codec.name:
            self._client.add_codec(self._group, self._config.codec.type)

    def rules_to_read(self, framing: Framing, encoding: EncodingInfo) -> None:
        """Do nothing: this registry has no rules."""

    def migration(self, framing: Framing, encoding: EncodingInfo, reader: EventType) -> None:
        """Return None: this registry has no rules."""

    def prepared(self, type: EventType) -> tuple[bytes, None]:
        """Return the header of events of a schema, which is empty without encoding header.

        Adds or finds the schema, with Java's order of calls. Raises RegistryNotFoundError and RegistryConflictError,
        which name what to register.
        """
        client, group, schema = self._client, self._group, type.info
        check_accepted(schema)
        if self._config.register_schema:
            self._check_evolution(schema)
            version = client.add_schema(group, schema)
        else:
            try:
                version = client.find_version(group, schema)
            except RegistryNotFoundError as error:
                raise RegistryNotFoundError(
                    f"{error.message}; register the schema of {schema.type!r} first, or set "
                    "register_schema in the writer, and create_group if the group does not exist",
                    status=error.status,
                ) from error
        if not self._config.write_encoding_header:
            return b"", None
        codec = self._config.codec.name
        try:
            return PRAVEGA.header(client.encoding_id(group, version, codec)), None
        except RegistryConflictError as error:
            raise RegistryConflictError(
                f"{error.message}; register the codec {codec!r} first, or set register_codec in the writer",
                status=error.status,
            ) from error

    def _prepare_group(self, default: SerializationFormat) -> None:
        """Create the group if the settings require it. ``default`` is then its format.

        Raises :class:`SerdeError` for a policy that the registry rejects for the format.
        """
        properties = self._config.create_group
        if not properties:
            return
        if properties is True:
            properties = new_group(default)
        check_policy(properties.format, properties.compatibility)
        self._client.add_group(self._group, properties)

    def _check_evolution(self, schema: SchemaInfo) -> None:
        """Raise :class:`SchemaError` for a schema that breaks readers of the type's latest one.

        The server checks Avro schemas with the group's policy and accepts all others. Custom formats cannot be checked.
        """
        part = part_of(schema.format)
        if self._config.allow_incompatible or part is None or part.compared_by_server:
            return
        try:
            latest = self.latest()
        except RegistryNotFoundError:  # the group does not exist; adding the schema raises the error
            return
        same = [each for each in latest if (each.schema.type, each.schema.format) == (schema.type, schema.format)]
        reasons = check_compatibility(same, schema, Compatibility.FULL) if same and same[0].schema != schema else []
        if reasons and not self._is_known(schema):
            raise SchemaError(
                f"the schema of {schema.type!r} is incompatible with the latest schema of the group {self._group!r}: "
                f"{'; '.join(reasons)}; set allow_incompatible in the writer if every reader supports it"
            )

    def _is_known(self, schema: SchemaInfo) -> bool:
        """Return True if the group already has the schema, for example as an earlier version."""
        try:
            self._client.find_version(self._group, schema)
        except RegistryNotFoundError:
            return False
        return True


def check_accepted(schema: SchemaInfo) -> None:
    """Raise :class:`SchemaError` for a schema that the server does not accept.

    That is a Protobuf message inside another, or an Avro union: a schema has the name of its events' only type.
    """
    part = part_of(schema.format)
    if part is not None and part.is_union(schema):
        raise SchemaError("an Avro union has no name; register the schema of one of its branches")
    try:
        indexes = () if part is None else part.indexes(schema)
    except SchemaError:
        return  # The server reports an invalid schema.
    if len(indexes) > 1:
        raise SchemaError(
            f"the registry accepts only messages at the top level of their file; {schema.type} is inside "
            f"{schema.type.rpartition('.')[0]}"
        )


def new_group(format: SerializationFormat) -> GroupProperties:
    """Return the usual properties of a new group: several types, and the strictest policy that the server can check."""
    policy = Compatibility.FULL_TRANSITIVE if _is_compared(format) else Compatibility.ALLOW_ANY
    return GroupProperties(format, policy, allow_multiple_types=True)


def check_policy(format: SerializationFormat, policy: Compatibility) -> None:
    """Raise :class:`SerdeError` for a policy that the registry rejects for groups of a format."""
    if not _is_compared(format) and policy.policy not in _PLAIN_POLICIES:
        raise SerdeError(
            f"the registry accepts only AllowAny and DenyAll for groups of format {format.name}, not {policy.policy}"
        )


def _is_compared(format: SerializationFormat) -> bool:
    """Return True if the server compares schemas of the format with the group's policy."""
    part = part_of(format)
    return part is not None and part.compared_by_server
