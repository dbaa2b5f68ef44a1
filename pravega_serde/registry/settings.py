"""Settings of the registry's serializers, with the meanings and defaults of Java's ``SerializerConfig``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypedDict

from pravega_serde.errors import (
    RegistryConflictError,
    RegistryNotFoundError,
    SchemaError,
    SerdeError,
    UnsupportedCodecError,
)
from pravega_serde.registry.clients import SchemaRegistryClient, shared_client
from pravega_serde.registry.codecs import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, Codec, codec_named
from pravega_serde.registry.contract import Compatibility, GroupProperties, SchemaInfo, SerializationFormat
from pravega_serde.registry.evolution import check_compatibility
from pravega_serde.registry.formats import CustomFormats, part_of
from pravega_serde.registry.registry_config import RegistryConfig

#: Handling of events with an encoding id that the registry does not have, or with another schema than the reader's.
Leniency = Literal["fail", "corrupt"]
Evolution = Literal["resolve", "corrupt"]

#: Policies of groups with schemas that the server does not compare.
_PLAIN_POLICIES: Final = frozenset({"AllowAny", "DenyAll"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SerializerConfig:
    """Settings of a registry serializer or deserializer. They can be pickled if the codecs' functions can.

    ``create_group`` creates the group if it does not exist, with the given properties. If it is True, the group has the
    serializer's format and several types. Its policy is then ``FULL_TRANSITIVE`` for Avro and ``ALLOW_ANY`` for the
    others. For those, the registry accepts only ``ALLOW_ANY`` and ``DENY_ALL`` (Java's default, ``fullTransitive``,
    always fails).

    ``register_schema`` and ``register_codec`` add a missing schema or codec; without them it is an error. ``codec``
    encodes written events: none, gzip, snappy or a :class:`Codec`. ``codecs`` are further ones to read.
    ``fail_on_codec_mismatch`` raises an error at the start if the group has a codec that is not known here.

    ``write_encoding_header=False`` leaves the header out. Java allows that for one type of JSON, Protobuf or a custom
    format without codec.

    ``typed_java_readers=False`` declares that no typed Java reader of a single JSON or Protobuf type will read the
    stream. Those do not decode codecs, so a codec is rejected otherwise.

    ``allow_incompatible`` lets ``register_schema`` add a JSON or Protobuf schema that breaks readers of the type's
    latest one. The server compares only Avro schemas.
    """

    registry: RegistryConfig
    group: str
    create_group: GroupProperties | bool | None = None
    register_schema: bool = False
    register_codec: bool = False
    codec: Codec = CODEC_NONE
    codecs: tuple[Codec, ...] = ()
    fail_on_codec_mismatch: bool = True
    write_encoding_header: bool = True
    typed_java_readers: bool = True
    allow_incompatible: bool = False
    custom_formats: CustomFormats = field(default_factory=dict)

    @property
    def client(self) -> SchemaRegistryClient:
        """Client of the registry, shared by the process."""
        return shared_client(self.registry)

    def known_codecs(self) -> dict[str, Codec]:
        """Return every codec that can be read, by its name."""
        own = (CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, self.codec, *self.codecs)
        return {codec.name: codec for codec in own}


class ReaderSettings(TypedDict, total=False):
    """Settings of readers and writers alike; see :class:`SerializerConfig`."""

    namespace: str | None
    create_group: GroupProperties | bool | None
    codecs: Sequence[Codec | str]
    fail_on_codec_mismatch: bool
    write_encoding_header: bool
    custom_formats: CustomFormats


class WriterSettings(ReaderSettings, total=False):
    """Settings of writers."""

    register_schema: bool
    register_codec: bool
    codec: Codec | str | None
    typed_java_readers: bool
    allow_incompatible: bool


def serializer_config(registry: str | RegistryConfig, group: str, settings: Mapping[str, Any]) -> SerializerConfig:
    """Return the settings as one value. Raises :class:`SerdeError` for invalid ones."""
    given = dict(settings)
    namespace = given.pop("namespace", None)
    if isinstance(registry, str):
        registry = RegistryConfig(uri=registry, namespace=namespace)
    elif not isinstance(registry, RegistryConfig):
        raise SerdeError(
            f"a registry serializer requires the registry's URI or a RegistryConfig, not a {type(registry).__name__}; "
            "for a client, pass client.config"
        )
    elif registry.namespace is None:
        registry = replace(registry, namespace=namespace)
    elif namespace not in (None, registry.namespace):
        raise SerdeError(
            f"the namespace is {registry.namespace!r} in the registry's configuration, but {namespace!r} "
            "in the argument: set only one"
        )
    if not group:
        raise SerdeError("a registry serializer requires the name of a group")
    unknown = sorted(given.keys() - SerializerConfig.__dataclass_fields__.keys())
    if unknown:
        raise SerdeError(f"a registry serializer has no setting {unknown[0]!r}")
    given["codec"] = codec_named(given.get("codec"))
    given["codecs"] = tuple(map(codec_named, given.get("codecs", ())))
    return SerializerConfig(registry=registry, group=group, **given)


def prepare_group(config: SerializerConfig, default: SerializationFormat) -> None:
    """Create the group if the settings require it. ``default`` is then its format.

    Raises :class:`SerdeError` for a policy that the registry rejects for the format.
    """
    properties = config.create_group
    if not properties:
        return
    if properties is True:
        policy = Compatibility.FULL_TRANSITIVE if _is_compared(default) else Compatibility.ALLOW_ANY
        properties = GroupProperties(default, policy, allow_multiple_types=True)
    if not _is_compared(properties.format) and properties.compatibility.policy not in _PLAIN_POLICIES:
        raise SerdeError(
            f"the registry accepts only AllowAny and DenyAll for groups of format {properties.format.name}, not "
            f"{properties.compatibility.policy}"
        )
    config.client.add_group(config.group, properties)


def _is_compared(format: SerializationFormat) -> bool:  # noqa: A002
    """Return True if the server compares schemas of the format with the group's policy."""
    part = part_of(format)
    return part is not None and part.compared_by_server


def prepare_codec(config: SerializerConfig) -> None:
    """Add the codec to the group if the settings require it."""
    if config.register_codec and config.codec.name:
        config.client.add_codec(config.group, config.codec.type)


def check_codecs(config: SerializerConfig) -> None:
    """Raise :class:`UnsupportedCodecError` if the group has a codec that is not known here."""
    if not config.fail_on_codec_mismatch:
        return
    missing = [each.name for each in config.client.codecs(config.group) if each.name not in config.known_codecs()]
    if missing:
        raise UnsupportedCodecError(
            f"the group {config.group!r} has the codecs {', '.join(missing)}, which this reader does not have; pass "
            "them as codecs, or set fail_on_codec_mismatch=False"
        )


def _check_evolution(config: SerializerConfig, schema: SchemaInfo) -> None:
    """Raise :class:`SchemaError` for a schema that breaks readers of the type's latest one.

    The server checks Avro schemas with the group's policy and accepts all others. Custom formats cannot be checked.
    """
    part = part_of(schema.format)
    if config.allow_incompatible or part is None or part.compared_by_server:
        return
    try:
        latest = config.client.latest_schemas(config.group)
    except RegistryNotFoundError:  # the group does not exist; adding the schema raises the error
        return
    same = [each for each in latest if (each.schema.type, each.schema.format) == (schema.type, schema.format)]
    reasons = check_compatibility(same, schema, Compatibility.FULL) if same and same[0].schema != schema else []
    if reasons and not _is_known(config, schema):
        raise SchemaError(
            f"the schema of {schema.type!r} is incompatible with the latest schema of the group {config.group!r}: "
            f"{'; '.join(reasons)}; write with allow_incompatible=True if every reader supports it"
        )


def _is_known(config: SerializerConfig, schema: SchemaInfo) -> bool:
    """Return True if the group already has the schema, for example as an earlier version."""
    try:
        config.client.find_version(config.group, schema)
    except RegistryNotFoundError:
        return False
    return True


def encoding_of(config: SerializerConfig, schema: SchemaInfo) -> int | None:
    """Return the encoding id for events of a schema, or None if they have no header.

    Adds or finds the schema, with Java's order of calls. Raises RegistryNotFoundError and RegistryConflictError, which
    name what to register.
    """
    client, group = config.client, config.group
    if config.register_schema:
        _check_evolution(config, schema)
        version = client.add_schema(group, schema)
    else:
        try:
            version = client.find_version(group, schema)
        except RegistryNotFoundError as error:
            raise RegistryNotFoundError(
                f"{error.message}; register the schema of {schema.type!r} first, or write with register_schema=True, "
                "and with create_group=True if the group does not exist",
                status=error.status,
            ) from error
    if not config.write_encoding_header:
        return None
    try:
        return client.encoding_id(group, version, config.codec.name)
    except RegistryConflictError as error:
        raise RegistryConflictError(
            f"{error.message}; register the codec {config.codec.name!r} first, or write with register_codec=True",
            status=error.status,
        ) from error
