"""Options that source and sink share: event format, schema registry, connection and stream.

CommonOptions has all of them. A column function has RegistryOptions, which extend FormatOptions. A key-value table has
ConnectionOptions and FormatOptions.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import pyarrow as pa

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.declaration import choice, flag, number, option, text
from pravega_connector.rows.options.encryption import EncryptionOptions
from pravega_connector.rows.options.framing import FramingOptions
from pravega_connector.rows.options.registry_access import registry_access
from pravega_connector.wire import StreamName
from pravega_serde import registry
from pravega_serde.credentials import provider_fault
from pravega_serde.errors import UnsupportedFormatError
from pravega_serde.format_table import (
    ENVELOPES,
    FORMATS,
    Format,
    FormatOption,
    find_format,
    registry_formats,
    serializer_for,
)
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.serializer_interface import Serializer

T = TypeVar("T")


def _known_format(name: str, value: str) -> str:
    try:
        return find_format(value).name
    except UnsupportedFormatError as error:
        raise UnsupportedFormatError(f"invalid option {name!r}: {error.message}") from error


def _event(first: bytes) -> Callable[[str, str], bytes]:
    """Return a parser of an event passed as hex digits, as base64 or as a file path. ``first`` are its first bytes."""
    as_hex = first.hex()
    as_base64 = base64.b64encode(first).decode()[: len(first) * 4 // 3]

    def parse(name: str, value: str) -> bytes:
        given = value.strip()
        try:
            if given.lower().startswith(as_hex):
                return bytes.fromhex(given)
            if given.startswith(as_base64):
                return base64.b64decode(given, validate=True)
            return Path(given).read_bytes()
        except (ValueError, binascii.Error) as error:
            raise ConfigError(f"invalid hex or base64 of an event in option {name!r}: {error}") from None
        except OSError as error:
            raise ConfigError(
                f"invalid option {name!r}: not hex or base64 of an event, and the file {given[:80]!r} cannot be read: "
                f"{error.strerror}"
            ) from None

    return parse


def _with_options_of_formats(kind: type[T]) -> type[T]:
    """Declare every option in the table of formats as a field of the class."""
    for entry in FORMATS.values():
        for each in entry.options:
            doc = f"`format={entry.name}`: {each.doc}"
            parse = _event(each.first_bytes) if each.first_bytes else text
            kind.__annotations__[each.name] = "Any"
            setattr(kind, each.name, option(None, doc, parse, format=entry.name))
    return kind


_NAMES: Final = [f"`{name}`" for name in sorted(FORMATS)]


@dataclass(frozen=True, kw_only=True)
@_with_options_of_formats
class FormatOptions(EncryptionOptions, FramingOptions):
    """Format of the events. Every option here except ``format`` belongs to one format, which declares it."""

    format: str | None = option(
        None,
        f"format of the events: {', '.join(_NAMES)}, the name of an installed format, or `package.module:name` of a "
        "serializer, importable on every node; without it, events stay raw",
        _known_format,
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for an option of another format than ``format``, and for two options that conflict."""
        self.check_encryption()
        self.check_framing()
        if self.framing is not None and self.format is None and not self.from_registry:
            raise ConfigError("option 'framing' requires option 'format': for data that stays raw, set format=bytes")
        if self.encrypted_fields is not None and self.format is None and not self.from_registry:
            raise ConfigError("option 'encrypted_fields' requires option 'format': raw events have no fields")
        for each in fields(self):
            owner = each.metadata.get("format", self.format)
            if owner != self.format and getattr(self, each.name) is not None:
                given = "no format is set" if self.format is None else f"the format is {self.format!r}"
                raise ConfigError(f"option {each.name!r} belongs to format {owner!r}, but {given}: remove one of them")
        if len(telling := [each.name for each, _ in self._given() if each.tells_columns]) > 1:
            raise ConfigError(f"options {' and '.join(telling)} both define the format of the events: set only one")

    @property
    def from_registry(self) -> bool:
        """True if the schemas are in a registry."""
        return False

    def _declared(self) -> Format | None:
        return None if self.format is None else find_format(self.format)

    def _given(self) -> list[tuple[FormatOption, Any]]:
        """Options of the format that are set, with their values."""
        declared = self._declared()
        pairs = [(each, getattr(self, each.name)) for each in declared.options] if declared else []
        return [(each, value) for each, value in pairs if value is not None]

    @property
    def says_single(self) -> bool:
        """True if an option declares that every event is a single value."""
        return any(each.single for each, _ in self._given())

    @property
    def says_record(self) -> bool:
        """True if the format or an option declares that every event is a record."""
        declared = self._declared()
        return declared is not None and (declared.always_record or any(each.record for each, _ in self._given()))

    def derivable(self) -> str | None:
        """Return the name of the missing option that can be derived from columns.

        Return None if no schema has to be derived.
        """
        declared = self._declared()
        given = {each.name for each, _ in self._given()}
        options = declared.options if declared else ()
        return next((each.name for each in options if each.derived and each.name not in given), None)

    def serializer(self, wanted: pa.DataType | None = None) -> Serializer[Any]:
        """Return the serializer of ``format``, which must be set. ``wanted`` is the type to read events as.

        Raises ConfigError for a missing option, SchemaError.
        """
        declared = self._declared()
        assert declared is not None
        arguments = {each.argument: value for each, value in self._given()}
        for each in declared.options:
            if each.required and each.argument not in arguments:
                doc = each.doc.replace("`", "")
                raise ConfigError(f"format {declared.name!r} requires option {each.name!r}: {doc}")
        if wanted is not None and declared.needs_columns:
            arguments["arrow_type"] = wanted
        return self.complete(serializer_for(declared.name, **arguments), wanted)

    def complete(self, serializer: Serializer[Any], wanted: pa.DataType | None = None) -> Serializer[Any]:
        """Return the serializer with the encryption and the framing of the options; see :meth:`encrypted`."""
        return self.framed(self.encrypted(serializer, wanted))

    def column_serializer(self, wanted: pa.DataType | None = None) -> Serializer[Any]:
        """Return the serializer that knows the columns of the events.

        Raises ConfigError if no option defines them, SchemaError if Arrow has no type for them.
        """
        declared = self._declared()
        assert declared is not None
        told = wanted is not None or any(each.tells_columns for each, _ in self._given())
        if declared.needs_columns and not told:
            ways = [f"{each.name!r} ({each.tells_columns})" for each in declared.options if each.tells_columns]
            options = f"set option {' or '.join(ways)}, or " if ways else ""
            sample = ", or its infer_schema=true" if declared.infer else ""
            raise ConfigError(
                f"events of format {declared.name!r} do not name their columns: {options}set a schema with the fields "
                f"that you need (.schema('name STRING, …') of a reader{sample})"
            )
        serializer = self.serializer(wanted)
        _ = serializer.arrow_type
        return serializer


_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
# Options that belong together; each group is one way to set credentials.
_PAIRS: Final = (
    *(("username", "password"), ("token",), ("auth_method", "auth_token")),
    *(("keycloak_file",), ("credential_provider",)),
)
# Settings of PravegaConfig that are not pickled unless an option gives them.
_CREDENTIALS: Final = ("keycloak_file", "credential_provider", "auth_method", "auth_token")
# Attribute of unpickled options: the configuration of the driver without the secrets of its environment, and their
# names.
_CARRIED: Final = "_carried"


def registry_option(default: Any, doc: str, *rest: Any, **more: Any) -> Any:
    """Declare an option that needs a registry."""
    return option(default, f"with a registry: {doc}", *rest, registry=True, **more)


def codec_names(name: str, value: str) -> tuple[str, ...]:
    """Parse ``package.module:name``, or several of them separated by commas."""
    places = tuple(part.strip() for part in value.split(","))
    for place in places:
        if not _PLACE.fullmatch(place):
            raise ConfigError(f"invalid codec {place!r} in option {name!r}: write package.module:name of a Codec")
    return places


def provider_name(name: str, value: str) -> str:
    """Parse ``package.module:name``."""
    fault = provider_fault(value.strip())
    if fault:
        raise ConfigError(f"option {name!r} {fault}")
    return value.strip()


def secret_option(doc: str, *, registry: bool = True, operator: bool = False) -> Any:
    """Declare an option that is never shown or stored."""
    marks = {"registry": registry, "secret": True, "operator": operator}
    return field(default=None, repr=False, metadata={"doc": doc, "parse": text, **marks})


@dataclass(frozen=True, kw_only=True)
class RegistryOptions(FormatOptions):
    """Schema registry, and the group and type in it."""

    registry: str | None = option(
        None,
        "schema registry of the stream's events, such as `http://localhost:9092`, which defines the columns. "
        "`confluent+http://…` and `apicurio+http://…` are registries of these kinds. "
        "With only `group`, the environment has its address (PRAVEGA_REGISTRY_URI)",
    )
    group: str | None = option(
        None,
        "group in the registry (default: the stream's name). Of other registries than Pravega's, it is the subject or "
        "artifact (default: the stream's name and `-value`)",
    )
    namespace: str | None = registry_option(None, "namespace of the group")
    registry_type: str | None = registry_option(
        None,
        "full name of a type in the registry. Reading: other types are left out; without it, each of several "
        "types is a struct column. Writing: the type of the columns. Default: the group's only type, or the "
        "stream's name in an empty group",
    )
    codecs: tuple[str, ...] | None = registry_option(
        None,
        "custom codecs, as `package.module:name` of each `Codec`, separated by commas and importable on every"
        " node, for example for encrypted events of Java",
        codec_names,
    )
    key_service: str | None = registry_option(
        None,
        "service that unwraps the keys of fields that rules of a Confluent registry encrypt: `package.module:name` of "
        "a `KeyService`, importable on every node (default: the service that the registry names). See "
        "docs/serialization/confluent-and-apicurio.md",
    )
    subject_strategy: str = registry_option(
        "topic",
        "subjects of a Confluent or Apicurio registry: `topic` is the group, `record` the name of the type, "
        "`topic_record` the group, `-` and that name. The last two require `registry_type` or a schema",
        choice("topic", "record", "topic_record"),
    )
    registry_username: str | None = registry_option(
        None, "user name. Without it, credentials come from the environment"
    )
    registry_password: str | None = secret_option("with a registry: password that goes with `registry_username`")
    registry_token: str | None = secret_option("with a registry: bearer token, instead of a user name")
    registry_keycloak_file: str | None = registry_option(
        None, "file of a Keycloak service account, instead of other credentials: see `keycloak_file`"
    )
    registry_credential_provider: str | None = registry_option(
        None, "`package.module:name` of a credential provider: see `credential_provider`", provider_name
    )
    registry_ca_file: str | None = registry_option(None, "PEM file or Java trust store with the certificates to trust")
    registry_ca_password: str | None = secret_option(
        "with a registry: password of the trust store in `registry_ca_file`", operator=True
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for options that need a registry, and for formats that registries do not support."""
        super().__post_init__()
        if not self.from_registry:
            for each in fields(self):
                if each.metadata.get("registry") and getattr(self, each.name) != each.default:
                    raise ConfigError(
                        f"option {each.name!r} requires a schema registry: set option 'registry', or 'group' if "
                        "PRAVEGA_REGISTRY_URI is set"
                    )
        elif self.format is not None and self.format not in (known := registry_formats()):
            raise ConfigError(
                f"format {self.format!r} does not work with a schema registry; formats of a registry: "
                f"{', '.join(known)}"
            )

    @property
    def from_registry(self) -> bool:
        """True if the schemas are in a registry."""
        return self.registry is not None or self.group is not None

    def registry_config(self, timeout: float) -> RegistryConfig:
        """Return the configuration of the registry.

        The settings come from these options, then from the environment, then from the profile that the environment
        names. Its pickle has no secret of the environment or the profile.

        Raises SerdeError for invalid settings or an invalid profile, ConfigError if no setting names the registry.
        """
        found = registry_access(
            {
                "uri": self.registry,
                "namespace": self.namespace,
                "username": self.registry_username,
                "password": self.registry_password,
                "token": self.registry_token,
                "keycloak_file": self.registry_keycloak_file,
                "credential_provider": self.registry_credential_provider,
                "ca_file": self.registry_ca_file,
                "ca_password": self.registry_ca_password,
            },
            timeout=timeout,
        )
        if found is None:
            raise ConfigError(
                f"option 'group' ({self.group!r}) requires a schema registry: set option 'registry', such as "
                "http://localhost:9092, or PRAVEGA_REGISTRY_URI for the driver"
            )
        return found

    def registry_contract(self) -> dict[str, Any]:
        """Return the settings of a serializer for the contract of a foreign registry."""
        return {"key_service": self.key_service, "subject_strategy": self.subject_strategy}

    def given_schema(self, *, reading: bool) -> tuple[Any, str | None] | None:
        """Return the schema in the options, and the name of its type if the schema lacks it.

        Return None if the options have no schema. For reading, a reader schema takes precedence over the schema of the
        events.
        """
        roles = {each.registry_role: value for each, value in self._given()}
        schema = (roles.get("reader_schema") if reading else None) or roles.get("schema")
        if schema is None:
            return None
        assert self.format is not None
        own = registry.registry_format(self.format).names_itself
        return schema, None if own else roles.get("type") or self.registry_type


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """Scope, and access to the cluster."""

    scope: str | None = option(None, "scope of the stream or table")
    controller: str | None = option(None, "controller URI, such as `tcp://localhost:9090` or `tls://host:9090`")
    username: str | None = option(None, "user name, if the server requires credentials")
    password: str | None = secret_option("password that goes with `username`", registry=False)
    token: str | None = secret_option("bearer token, instead of a user name and a password", registry=False)
    auth_method: str | None = option(
        None, "name of another authentication method of the server, with `auth_token`", operator=True
    )
    auth_token: str | None = secret_option("secret that goes with `auth_method`", registry=False, operator=True)
    keycloak_file: str | None = option(
        None,
        "file of a Keycloak service account (`keycloak.json`), instead of other credentials. It must have the same "
        "path on the driver and every executor. They request and renew tokens themselves",
    )
    credential_provider: str | None = option(
        None,
        "`package.module:name` of a credential provider, instead of other credentials: a function that returns a "
        "`Credential`, or a class of such objects. The driver and every executor import it, and renew their own",
        provider_name,
    )
    tls_to_controller: bool | None = option(
        None, "use TLS for connections to the controllers (default: by the scheme)", flag, operator=True
    )
    tls_to_stores: bool | None = option(
        None, "use TLS for connections to the segment stores (default: by the scheme)", flag, operator=True
    )
    tls_ca_file: str | None = option(
        None, "PEM file or Java trust store with the certificates to trust, for a `tls://` controller"
    )
    tls_ca_password: str | None = secret_option(
        "password of the trust store in `tls_ca_file`", registry=False, operator=True
    )
    tls_server_name: str | None = option(
        None, "expected name in the servers' certificate, if it is not their host", operator=True
    )
    tls_validate_hostname: bool | None = option(
        None, "check that the certificate is for the host of the server (default: true)", flag, operator=True
    )
    timeout_ms: int = option(
        15_000,
        "longest wait for the first contact with the servers, so that a wrong address fails soon. Also the timeout of "
        "a call to a schema registry",
        number(100, 3_600_000),
        operator=True,
    )
    ignore_unknown_options: bool = option(
        False,
        "warn about an unknown option instead of raising an error. Set it if such options are for other components",
        flag,
    )
    failover_timeout_ms: int = option(
        300_000,
        "retry timeout: longest wait of tasks, commits and restarted queries for servers that fail, stall or "
        "move segments. Nothing is lost or repeated when it expires. See docs/operate/failover-and-guarantees.md",
        number(100, 86_400_000),
        operator=True,
    )

    @functools.cached_property
    def config(self) -> PravegaConfig:
        """Configuration of the cluster: these options, then the process environment, then the defaults.

        The configuration is pickled, so tasks use the configuration of the driver. A token or password that the driver
        found in its environment or profile is not pickled. Each task reads it from the environment of its process.
        """
        carried: tuple[PravegaConfig, tuple[str, ...]] | None = vars(self).get(_CARRIED)
        if carried is None:
            return self._resolve(self.scope)
        config, secrets = carried
        found = PravegaConfig.resolve()
        return replace(config, **{name: getattr(found, name) for name in secrets})

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "config": self.config}
        state.pop(_CARRIED, None)
        secrets: tuple[str, ...] = ()
        if self.config.auth_token is not None and self.password is self.token is self.auth_token is None:
            secrets += _CREDENTIALS
        if self.config.tls_ca_password is not None and self.tls_ca_password is None:
            secrets += ("tls_ca_password",)
        if secrets:
            state[_CARRIED] = replace(state.pop("config"), **dict.fromkeys(secrets)), secrets
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def _resolve(self, scope: str | None) -> PravegaConfig:
        config = PravegaConfig.resolve(
            controller=self.controller,
            scope=scope,
            tls_to_controller=self.tls_to_controller,
            tls_to_stores=self.tls_to_stores,
            tls_ca_file=self.tls_ca_file,
            tls_ca_password=self.tls_ca_password,
            tls_server_name=self.tls_server_name,
            tls_validate_hostname=self.tls_validate_hostname,
        )
        given = [pair for pair in _PAIRS if any(getattr(self, name) is not None for name in pair)]
        if len(given) > 1:
            ways = " and ".join(repr(pair[-1]) for pair in given)
            raise ConfigError(f"options {ways} both are credentials: set only one of them")
        for pair in given:
            missing = [name for name in pair if getattr(self, name) is None]
            if missing:
                (other,) = set(pair) - set(missing)
                raise ConfigError(f"option {other!r} requires option {missing[0]!r}")
        if self.username is not None and self.password is not None:
            return config.with_credentials(self.username, self.password)
        if self.token is not None:
            return config.with_token(self.token)
        if self.auth_method is not None and self.auth_token is not None:
            return config.with_token(self.auth_token, method=self.auth_method)
        if self.keycloak_file is not None:
            return config.with_keycloak(self.keycloak_file)
        if self.credential_provider is not None:
            return config.with_credential_provider(self.credential_provider)
        return config


@dataclass(frozen=True, kw_only=True)
class CommonOptions(ConnectionOptions, RegistryOptions):
    """Stream, access to it, and the format of its events or the registry that has their schemas."""

    path: str | None = option(
        None, "`scope/stream`, or `stream` with the scope given elsewhere; `load()` and `save()` set it"
    )
    stream: str | None = option(None, "name of the stream, or `scope/stream`")
    envelope: str | None = option(
        None,
        "envelope of the events, which adds a key, a time and headers: `cloudevents` (JSON), `cloudevents+avro` or "
        "`cloudevents+protobuf`. The columns are then `key`, `time`, `headers` and `value`, and `format` or `registry` "
        "is the format of `value`",
        choice(*ENVELOPES),
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for an envelope around raw events."""
        super().__post_init__()
        if self.envelope is not None and self.format is None and not self.from_registry:
            raise ConfigError("option 'envelope' requires option 'format': for data that stays raw, set format=bytes")

    def complete(self, serializer: Serializer[Any], wanted: pa.DataType | None = None) -> Serializer[Any]:
        """Return the serializer with encryption, and with the framing unless that is around an envelope."""
        return self.encrypted(serializer, wanted) if self.envelope is not None else super().complete(serializer, wanted)

    _NO_STREAM: ClassVar[str] = "no stream is set: set option 'stream', or load('scope/stream')"

    def stream_name(self) -> StreamName:
        """Return the name of the stream. Raises ConfigError if the options name none, or two different ones."""
        given = self.stream or self.path
        if given is None:
            raise ConfigError(self._NO_STREAM)
        if self.stream and self.path and self.stream != self.path and not self.path.endswith("/" + self.stream):
            raise ConfigError(f"two streams are set: option 'stream' is {self.stream!r} and the path is {self.path!r}")
        # Tables and load() may pass a path with slashes around it.
        given = max(self.stream or "", self.path or "", key=lambda name: (name.count("/"), len(name)))
        return self._named(given)

    def _single_stream(self) -> str | None:
        return str(self.stream_name()) if self.stream or self.path else None

    def _named(self, text: str) -> StreamName:
        given = text.strip("/")
        if "/" in given:
            return StreamName.parse(given)
        scope = self.config.scope
        if scope is None:
            raise ConfigError(f"stream {given!r} has no scope: set option 'scope', or write 'scope/{given}'")
        return StreamName(scope, given)

    def registry_group(self) -> str:
        """Return the group in the registry: the option, or by default the one that is named after the stream."""
        if self.group is not None or self.registry is None:
            return self.group or self.stream_name().stream
        return RegistryConfig(uri=self.registry).default_group(self.stream_name().stream)
