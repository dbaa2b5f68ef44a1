"""Settings of the registry's serializers, with the meanings and defaults of Java's ``SerializerConfig``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

from pravega_serde.errors import SerdeError
from pravega_serde.registry.codecs import CODEC_GZIP, CODEC_NONE, CODEC_SNAPPY, Codec, codec_named
from pravega_serde.registry.contract import GroupProperties
from pravega_serde.registry.formats import CustomFormats
from pravega_serde.registry.registry_config import RegistryConfig

if TYPE_CHECKING:
    from pravega_serde.encryption.keys import KeyService

#: Handling of events with an encoding id that the registry does not have, or with another schema than the reader's.
Leniency = Literal["fail", "corrupt"]
Evolution = Literal["resolve", "corrupt"]
#: Version of a schema to read as: the writer's, the latest one, or the latest one with properties of its metadata.
Version = Literal["writer", "latest"] | Mapping[str, str]
#: Names of subjects: Confluent's TopicNameStrategy, RecordNameStrategy and TopicRecordNameStrategy.
SubjectStrategy = Literal["topic", "record", "topic_record"]
_STRATEGIES: Final = ("topic", "record", "topic_record")


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

    ``key_service`` unwraps the keys of fields that rules of a Confluent registry encrypt: a
    :class:`~pravega_serde.encryption.KeyService`, or the name ``package.module:name`` of one. By default,
    :class:`~pravega_serde.encryption.ConfluentKeys`.

    ``subject_strategy`` names the subjects of a Confluent or Apicurio registry. With ``topic``, it is the group. With
    ``record``, it is the name of the schema's type. With ``topic_record``, it is the group, ``-`` and that name.
    ``normalize`` lets such a registry normalize schemas before it compares them.
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
    key_service: KeyService | str | None = field(default=None, repr=False)
    subject_strategy: SubjectStrategy = "topic"
    normalize: bool = False

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
    key_service: KeyService | str | None
    subject_strategy: SubjectStrategy


class WriterSettings(ReaderSettings, total=False):
    """Settings of writers."""

    register_schema: bool
    register_codec: bool
    codec: Codec | str | None
    typed_java_readers: bool
    allow_incompatible: bool
    normalize: bool


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
    strategy = given.get("subject_strategy", "topic")
    if strategy not in _STRATEGIES:
        raise SerdeError(f"invalid subject_strategy {strategy!r:.80}; known: {', '.join(_STRATEGIES)}")
    if registry.kind == "pravega" and (strategy != "topic" or given.get("normalize")):
        raise SerdeError("Pravega's registry has groups instead of subjects: omit subject_strategy and normalize")
    given["codec"] = codec_named(given.get("codec"))
    given["codecs"] = tuple(map(codec_named, given.get("codecs", ())))
    return SerializerConfig(registry=registry, group=group, **given)
