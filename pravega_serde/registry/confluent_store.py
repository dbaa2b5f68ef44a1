"""Confluent's registry, and Apicurio's, as the serializers use them: subjects, and schema ids of the whole registry.

A subject is the group of the serializers. It exists from its first schema on. These registries have no codecs, and they
compare the schemas of every format themselves.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pravega_serde.blocking import blocking
from pravega_serde.errors import (
    DeserializationError,
    RegistryNotFoundError,
    RegistryUnavailableError,
    SchemaError,
    SerdeError,
)
from pravega_serde.per_process import PerProcess
from pravega_serde.registry import confluent_calls as calls
from pravega_serde.registry.calls import Call
from pravega_serde.registry.clients import transports
from pravega_serde.registry.confluent_calls import Reference, SubjectSchema
from pravega_serde.registry.contract import (
    CodecType,
    EncodingInfo,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
    VersionInfo,
)
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.header import APICURIO, CONFLUENT, Framing
from pravega_serde.registry.interface import EventType, RegistryFormat, SchemaText
from pravega_serde.registry.lookups import MISSING_SECONDS, Lookups
from pravega_serde.registry.message_prefix import MessageIndexes, MessagePrefix, TypeReference
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.registry.rule_set import Mode, RuleSet
from pravega_serde.registry.settings import SerializerConfig

if TYPE_CHECKING:
    from pravega_serde.registry.http import Http
    from pravega_serde.registry.memory import MockTransport
    from pravega_serde.registry.migrations import PayloadMigration
    from pravega_serde.registry.payload_rules import PayloadRules

T = TypeVar("T")
#: Schema as the interface returns it, and as readers need it.
_Registered = tuple[SubjectSchema, SchemaInfo]

#: Levels of references, names in all of them, and requests for them: two for a Protobuf file.
_MAX_LEVELS: Final = 32
_MAX_REFERENCES: Final = 1000
_MAX_REQUESTS: Final = 2 * _MAX_REFERENCES
#: Form in which Confluent's registry returns a Protobuf file as a descriptor in base64.
_SERIALIZED: Final = "serialized"


class _Connection:
    """Connections to one registry and its cached answers, shared by the process."""

    def __init__(self, config: RegistryConfig) -> None:
        self._http: Http | MockTransport = transports(config)[0](config)
        self.lookups = Lookups(config.cache_entries)

    def run(self, call: Call[T], end: float = math.inf) -> T:
        return blocking(lambda: self._http.run(call, end))

    def close(self) -> None:
        self._http.close()


_connections: PerProcess[RegistryConfig, _Connection] = PerProcess(_Connection.close)


class ConfluentStore:
    """Subject of a Confluent-compatible registry, a :class:`SchemaStore`."""

    framings: tuple[Framing, ...] = (CONFLUENT,)
    all_files = True

    #: Path of the interface under the registry's base.
    _base = ""
    _protobuf_prefix: MessagePrefix = MessageIndexes()
    #: True to register Protobuf files as source instead of descriptors.
    _as_source = False

    def __init__(self, config: SerializerConfig) -> None:
        self._config, self._subject = config, config.group
        _check(config)

    def _subject_of(self, schema: SchemaInfo) -> str:
        """Return the subject of a schema. Raises :class:`SchemaError` for one without a name that requires it."""
        if self._config.subject_strategy == "topic":
            return self._subject
        name = schema.type
        if not name and schema.format == SerializationFormat.JSON:
            name = _part(schema.format).from_text(SchemaText(schema.data.decode())).type
        if not name:
            raise SchemaError(
                f"the schema has no title, so it has no subject for the strategy {self._config.subject_strategy!r}"
            )
        return self._subject_named(name)

    def _subject_named(self, type: str | None) -> str:
        if self._config.subject_strategy == "topic":
            return self._subject
        if type is None:
            raise SchemaError(
                f"subjects of the strategy {self._config.subject_strategy!r} have one type each: pass type, or a schema"
            )
        return type if self._config.subject_strategy == "record" else f"{self._subject}-{type}"

    @property
    def _connection(self) -> _Connection:
        config = self._config.registry
        return _connections.get(config, lambda: _Connection(config))

    def run(self, call: Call[T], end: float = math.inf) -> T:
        """Return the result of a call."""
        return self._connection.run(replace(call, path=self._base + call.path), end)

    def _lookup(self) -> _Lookup:
        return _Lookup(self.run, self._subject, self._config.registry.timeout)

    def _cached(self, key: tuple[object, ...], load: Callable[[], T], seconds: float = math.inf) -> T:
        return self._connection.lookups.get(key, load, seconds=seconds, missing=MISSING_SECONDS)

    # Reading

    def writer(self, framing: Framing, encoding_id: int, prefix: bytes = b"") -> EncodingInfo:
        """Return the schema of an id."""
        info = self._registered(framing, encoding_id)[1]
        kind = self.prefix_of(info.format)
        if prefix and kind is not None:
            try:
                info = _part(info.format).selected(info, kind.place(prefix))
            except SchemaError as error:  # the schema is valid, but the event is not
                raise DeserializationError(error.message) from error
        return EncodingInfo(info, VersionInfo(info.type, info.format.name, 0, encoding_id), CodecType.NONE)

    def prefix_of(self, format: SerializationFormat) -> MessagePrefix | None:
        """Return the prefix of Protobuf messages."""
        return self._protobuf_prefix if format == SerializationFormat.PROTOBUF else None

    def title(self, encoding: EncodingInfo) -> str:
        """Return the id and the type of an encoding."""
        return f"the schema with id {encoding.version.id} of {encoding.schema.type!r}"

    def rules_to_read(self, framing: Framing, encoding: EncodingInfo) -> PayloadRules | None:
        """Return the rules of the schema with which events were written, or None."""
        registered, _ = self._registered(framing, encoding.version.id)
        return self._rules("READ", registered, encoding.schema)

    def migration(self, framing: Framing, encoding: EncodingInfo, reader: EventType) -> PayloadMigration | None:
        """Return the migration from the version of events to that of a reader, or None."""
        subject = self._subject_of(reader.info)
        written, wanted = (self._version_of(subject, each) for each in (encoding.version.id, reader.registered))
        if not written or not wanted or written == wanted:
            return None
        from pravega_serde.registry import migrations  # noqa: PLC0415 - few schemas have rules

        steps = migrations.migration_steps(
            written, wanted, subject, lambda version: self._any_version(subject, version).contract
        )
        if not steps:
            return None
        found = self._registered(framing, encoding.version.id)[0]
        return migrations.PayloadMigration(
            steps,
            (encoding.schema, RuleSet.from_json(found.contract)),
            (
                self.schema(reader.registered, reader.info.type),
                RuleSet.from_json(self._any_version(subject, wanted).contract),
            ),
            partial(self._payload_rules, "READ"),
        )

    def _version_of(self, subject: str, schema_id: int) -> int:
        """Return the version of a subject with a schema; 0 if there is none."""

        def load() -> int:
            found = [version for name, version in self.run(calls.versions_of(schema_id)) if name == subject]
            if not found:
                raise RegistryNotFoundError(f"subject {subject!r} does not have the schema with id {schema_id}")
            return max(found)

        try:
            return self._cached(("version of", subject, schema_id), load)
        except RegistryNotFoundError:
            return 0

    def _any_version(self, subject: str, version: int) -> SubjectSchema:
        return self._cached(("version", subject, version), lambda: self.run(calls.any_version(subject, version)))

    def _rules(self, mode: Mode, registered: SubjectSchema, info: SchemaInfo) -> PayloadRules | None:
        rules = RuleSet.from_json(registered.contract)
        return (self._payload_rules(mode, rules, info) or None) if rules else None

    def _payload_rules(self, mode: Mode, rules: RuleSet, info: SchemaInfo) -> PayloadRules:
        from pravega_serde.registry.payload_rules import PayloadRules  # noqa: PLC0415 - few schemas have rules

        return PayloadRules(
            rules,
            mode,
            info,
            subject=self._subject_of(info),
            requests=_Requests(self),
            key_service=self._config.key_service,
        )

    def check_group(self) -> None:
        """Raise RegistryNotFoundError if the subject does not exist."""
        if self._config.subject_strategy == "topic":
            self.run(calls.schema_version(self._subject, "latest"))

    def latest(self, type: str | None = None, metadata: Mapping[str, str] | None = None) -> list[SchemaWithVersion]:
        """Return the latest schema of the subject as the type, by default the first one in its file."""
        subject = self._subject_named(type)
        registered, info = self._latest_with(subject, metadata) if metadata else self._latest_registered(subject)
        chosen = _as_type(info, type)
        if chosen is None:
            return []
        version = VersionInfo(chosen.type, chosen.format.name, registered.version, registered.id)
        return [SchemaWithVersion(chosen, version)]

    def schema(self, schema_id: int, type: str | None = None) -> SchemaInfo:
        """Return the schema of an id as the type."""
        info = self.writer(self.framings[0], schema_id).schema
        return _as_type(info, type) or info

    def ids(self, framing: Framing, readers: Sequence[SchemaInfo]) -> Iterator[int]:
        """Yield the ids of the versions of the readers' subjects, also of deleted ones."""
        for subject in dict.fromkeys(map(self._subject_of, readers)):
            for number in self.run(calls.version_numbers(subject, deleted=True)):
                yield self._any_version(subject, number).id

    def prepare_reader(self, default: SerializationFormat) -> None:
        """Do nothing: a subject has no codecs, and is created with its first schema."""

    def check_readable(self, reader: SchemaInfo) -> None:
        """Do nothing: these registries compare only schemas that are added."""

    def _latest_registered(self, subject: str) -> _Registered:
        def load() -> _Registered:
            registered, text = self._latest_of(subject)
            return registered, _part(registered.format).from_text(text)

        return self._cached(("latest", subject), load, seconds=self._config.registry.latest_seconds)

    def _latest_with(self, subject: str, metadata: Mapping[str, str]) -> _Registered:
        """Return the latest version with properties in its metadata, also if it was deleted."""
        numbers = self.run(calls.version_numbers(subject, deleted=True))
        for number in sorted(numbers, reverse=True):
            found = self._any_version(subject, number)
            if metadata.items() <= RuleSet.from_json(found.contract).properties.items():
                return found, self._registered(self.framings[0], found.id)[1]
        shown = ", ".join(f"{name}={value}" for name, value in metadata.items())
        raise RegistryNotFoundError(
            f"no version of subject {subject!r} has {shown:.200} in the properties of its metadata"
        )

    def _registered(self, framing: Framing, schema_id: int) -> _Registered:
        return self._cached((framing, schema_id), lambda: self._by_id(framing, schema_id))

    def _by_id(self, framing: Framing, schema_id: int) -> _Registered:
        lookup = self._lookup()
        registered = lookup.read(lambda form: calls.schema_by_id(schema_id, form))
        return registered, _part(registered.format).from_text(lookup.text(registered))

    def _latest_of(self, subject: str) -> tuple[SubjectSchema, SchemaText]:
        lookup = self._lookup()
        registered = lookup.read(lambda form: calls.schema_version(subject, "latest", form))
        return registered, lookup.text(registered)

    # Writing

    def check_accepts(self, schema: SchemaInfo) -> None:
        """Do nothing: these registries have schemas without names, and messages inside others."""

    def prepare_writer(self, default: SerializationFormat) -> None:
        """Do nothing: a subject is created with its first schema."""

    def prepared(self, type: EventType) -> tuple[bytes, PayloadRules | None]:
        """Return the header of events of a schema with the prefix that selects its message type, and its rules."""
        schema = type.info
        part = _part(schema.format)
        text = part.to_text(schema, source=self._as_source) if type.text is None else type.text
        subject = self._subject_of(schema)
        found = self._find_or_add(subject, schema.format, text, add=self._config.register_schema)
        found = self._newest(subject, schema.format, text, found)
        kind = self.prefix_of(schema.format)
        prefix = b"" if kind is None else kind.of(part.indexes(schema), schema.type)
        return self.framings[0].header(found.id) + prefix, self._rules_to_write(found, schema)

    def body_of(self, schema: SchemaInfo) -> dict[str, object]:
        """Return the REST body of a schema. Schemas to which it refers are added first."""
        text = _part(schema.format).to_text(schema, source=self._as_source)
        versions: dict[str, int] = {}
        for name, each in text.all_references().items():
            versions[name] = self._find_or_add_one(name, schema.format, each, versions, add=True).version
        references = tuple(Reference(name, name, versions[name]) for name in text.references)
        return calls.schema_body(schema.format, text.text, references)

    def _newest(
        self, subject: str, format: SerializationFormat, text: SchemaText, found: SubjectSchema
    ) -> SubjectSchema:
        """Return the latest version if it has the same schema as the one that the server found, or that one.

        Rules that are added to a schema are a new version with the same text. A server may return the older version.
        """
        lookup = self._lookup()
        try:
            latest = lookup.run(calls.schema_version(subject, "latest"))
        except RegistryNotFoundError:  # deleted since
            return found
        if latest.id == found.id:
            return found
        one, other = ((_parsed(each), each.references) for each in (found, latest))
        same = one == other or (
            _part(format).is_parsed(latest.text) and _is_same(format, text, (latest, lookup.text(latest)))
        )
        return latest if same else found

    def _rules_to_write(self, found: SubjectSchema, schema: SchemaInfo) -> PayloadRules | None:
        """Return the rules of the registered schema, whose tags the writer's schema may lack.

        They are read with the id: when a server finds a schema, its answer may lack the rules.
        """
        asked = self._cached(("contract", found.id), lambda: self.run(calls.schema_by_id(found.id)))
        if not RuleSet.from_json(asked.contract):
            return None
        registered, info = self._registered(self.framings[0], found.id)
        part = _part(info.format)
        return self._rules("WRITE", registered, part.selected(info, part.indexes(schema)))

    def _find_or_add(
        self,
        subject: str,
        format: SerializationFormat,
        schema: SchemaText,
        *,
        add: bool,
    ) -> SubjectSchema:
        """Return the registered form of a schema. With ``add``, it is added if the subject does not have it.

        Files that it imports are subjects with the names of the files, as Confluent's serializers register them.
        """
        versions: dict[str, int] = {}
        for name, each in schema.all_references().items():
            versions[name] = self._find_or_add_one(name, format, each, versions, add=add).version
        return self._find_or_add_one(subject, format, schema, versions, add=add)

    def _find_or_add_one(
        self,
        subject: str,
        format: SerializationFormat,
        schema: SchemaText,
        versions: Mapping[str, int],
        *,
        add: bool,
    ) -> SubjectSchema:
        references = tuple(Reference(name, name, versions[name]) for name in schema.references)
        body = calls.schema_body(format, schema.text, references)
        try:
            return self._find(subject, body, format, schema)
        except RegistryNotFoundError:
            if not add:
                raise
        self.run(calls.add_schema(subject, body, normalize=self._config.normalize))
        self._connection.lookups.forget(("latest", subject))
        return self._find(subject, body, format, schema)

    def _find(
        self,
        subject: str,
        body: dict[str, object],
        format: SerializationFormat,
        schema: SchemaText,
    ) -> SubjectSchema:
        """Return the version of a subject with a schema. The latest one may have another text with the same meaning.

        Raises RegistryNotFoundError, also for a schema that the server finds but that has other payloads: a server may
        ignore the order of fields.
        """
        lookup = self._lookup()
        try:
            found = lookup.run(calls.find_schema(subject, body, normalize=self._config.normalize))
        except RegistryNotFoundError as error:
            try:
                latest = self._latest_of(subject)
            except RegistryNotFoundError:
                raise error from None
            if not _is_same(format, schema, latest):
                raise
            return latest[0]
        part = _part(format)
        if part.is_parsed(found.text):
            text = lookup.text(found)
            if not part.writes_alike(part.from_text(schema), part.from_text(text)):
                raise RegistryNotFoundError(f"subject {subject!r} has the schema only with another order of fields")
        return found


@dataclass(frozen=True)
class _Requests:
    """Requests for the keys of a subject's rules."""

    store: ConfluentStore

    def run(self, call: Call[T]) -> T:
        return self.store.run(call)

    def cached(self, key: tuple[object, ...], load: Callable[[], T], *, latest: bool = False) -> T:
        return self.store._cached(key, load, self.store._config.registry.latest_seconds if latest else math.inf)

    def forget(self, key: tuple[object, ...]) -> None:
        self.store._connection.lookups.forget(key)


class _Lookup:
    """Requests for one schema and all that it refers to. They share a deadline, and their number is limited.

    The references are a graph: each schema is requested once.
    """

    def __init__(self, run: Callable[[Call[Any], float], Any], subject: str, seconds: float) -> None:
        self._send, self._subject, self._seconds = run, subject, seconds
        self._end = time.monotonic() + seconds
        self._requests = 0
        self._known: dict[tuple[str, int], SchemaText] = {}
        self._names: set[str] = set()

    def run(self, call: Call[T]) -> T:
        """Return the result of a call. Raises RegistryUnavailableError at the deadline of all requests."""
        self._requests += 1
        if self._requests > _MAX_REQUESTS:
            raise SchemaError(f"a schema of subject {self._subject!r} requires more than {_MAX_REQUESTS} requests")
        try:
            found: T = self._send(call, self._end)
        except RegistryUnavailableError as error:
            if self._requests == 1:
                raise
            raise RegistryUnavailableError(
                f"{error.message}; it was request {self._requests} for one schema with its references, which have the "
                f"registry's timeout of {self._seconds:g} s together",
                status=error.status,
            ) from error
        return found

    def read(self, ask: Callable[[str | None], Call[SubjectSchema]]) -> SubjectSchema:
        """Return a schema in a form that its format parses. ``ask`` returns the call for a form."""
        found = self.run(ask(None))
        if not _part(found.format).is_parsed(found.text):
            found = replace(found, text=self.run(ask(_SERIALIZED)).text)
        return found

    def text(self, registered: SubjectSchema, path: tuple[str, ...] = ()) -> SchemaText:
        """Return a schema with all that it refers to. ``path`` has the names that lead to it."""
        self._names.update(each.name for each in registered.references)
        if len(path) > _MAX_LEVELS or len(self._names) > _MAX_REFERENCES:
            shown = f": {' > '.join(path)}" if path else ""
            raise SchemaError(f"a schema of subject {self._subject!r} refers to too many schemas{shown}")
        found = {}
        for each in registered.references:
            subject, version = key = each.subject, each.version
            if key not in self._known:
                other = self.read(partial(calls.schema_version, subject, version))
                self._known[key] = self.text(other, (*path, each.name))
            found[each.name] = self._known[key]
        return SchemaText(registered.text, found)


class ApicurioStore(ConfluentStore):
    """Artifact of an Apicurio registry, a :class:`SchemaStore`.

    Events of Apicurio's serializers 3 have the 4 bytes of a content id, which is the id of the Confluent-compatible
    interface. Those of version 2 have the 8 bytes of a global id. Zeros in the first four tell them apart. Its
    serializers in Java do not read descriptors.
    """

    framings: tuple[Framing, ...] = (CONFLUENT, APICURIO)
    _base = "/ccompat/v7"
    _protobuf_prefix: MessagePrefix = TypeReference()
    _as_source = True

    def _by_id(self, framing: Framing, schema_id: int) -> _Registered:
        if framing is APICURIO:
            schema_id = self._connection.run(calls.content_id(schema_id))
        return super()._by_id(framing, schema_id)

    def ids(self, framing: Framing, readers: Sequence[SchemaInfo]) -> Iterator[int]:
        """Yield the global ids or the content ids of the readers' artifacts."""
        for artifact in dict.fromkeys(map(self._subject_of, readers)):
            for global_id, content_id in self._connection.run(calls.artifact_ids(artifact)):
                yield global_id if framing is APICURIO else content_id

    def migration(self, framing: Framing, encoding: EncodingInfo, reader: EventType) -> None:
        """Return None: this registry has no rules."""


def _check(config: SerializerConfig) -> None:
    """Raise :class:`SerdeError` for settings that only Pravega's registry has."""
    server = config.registry.kind.capitalize()
    if config.codec.name:
        raise SerdeError(f"events of a {server} registry have no codec; write without codec")
    if not config.write_encoding_header:
        raise SerdeError(f"events of a {server} registry require their header: only it identifies the schema")
    if config.create_group not in (None, True, False):
        raise SerdeError(
            f"a {server} registry creates a subject with its first schema; set the compatibility of the subject there, "
            "and pass create_group=True or omit it"
        )


def _part(format: SerializationFormat) -> RegistryFormat:
    part = part_of(format)
    if part is None:
        raise SerdeError(f"only Pravega's registry has custom formats, such as {format.full_type_name!r}")
    return part


def _is_same(
    format: SerializationFormat,
    schema: SchemaText,
    latest: tuple[SubjectSchema, SchemaText],
) -> bool:
    """Return True if the latest schema of a subject has the meaning of another one."""
    registered, text = latest
    if registered.format != format:
        return False
    part = _part(format)
    try:
        return part.is_same(part.from_text(schema), part.from_text(text))
    except SchemaError:  # such as a file that has only enums
        return _texts(schema) == _texts(text)


def _parsed(registered: SubjectSchema) -> Any:
    """Return the parsed text of a schema, or the text of a Protobuf file or of a name."""
    try:
        return json.loads(registered.text)
    except ValueError:
        return registered.text


def _texts(schema: SchemaText) -> tuple[str, dict[str, str]]:
    return schema.text, {name: each.text for name, each in schema.all_references().items()}


def _as_type(info: SchemaInfo, type: str | None) -> SchemaInfo | None:
    """Return a schema as one of its types, or None if it does not have the type."""
    if type in (None, info.type):
        return info
    if info.format != SerializationFormat.PROTOBUF:
        return None
    try:
        return _part(info.format).selected(info, str(type))
    except SchemaError:
        return None
