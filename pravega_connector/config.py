"""Configuration of a cluster: its controller, the scope, credentials and TLS (:class:`PravegaConfig`)."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError
from pravega_connector.wire import validate_scope_name
from pravega_serde.credentials import CredentialProvider, fault_of, provider_fault
from pravega_serde.errors import MissingExtraError, SerdeError
from pravega_serde.profiles import load_profile
from pravega_serde.suggestions import did_you_mean
from pravega_serde.trust_store import trusted_certificates

__all__ = ["DEFAULT_CONTROLLER", "PravegaConfig", "parse_properties"]

DEFAULT_CONTROLLER: Final = "tcp://localhost:9090"  # ClientConfig.build
DEFAULT_PORT: Final = 9090
#: Seconds until a call fails if no server of the cluster has answered yet, such as at a wrong address.
DEFAULT_TIMEOUT: Final = 15.0
#: Seconds until a call fails during an outage of a cluster whose servers have answered before.
DEFAULT_FAILOVER_TIMEOUT: Final = 300.0
PLAIN_SCHEMES: Final = ("tcp", "pravega")  # ClientConfig.SCHEME_*
TLS_SCHEMES: Final = ("tls", "ssl", "pravegas")

# Setting -> property, environment variable, program argument. The credentials' names are those of the Java client.
# Secrets are not program arguments: every user of the machine can list those.
_SOURCES: Final[dict[str, tuple[str, str, str | None]]] = {
    "controller": ("pravega.controller.uri", "PRAVEGA_CONTROLLER_URI", "--controller"),
    "scope": ("pravega.scope", "PRAVEGA_SCOPE", "--scope"),
    "auth_method": ("pravega.client.auth.method", "pravega_client_auth_method", None),
    "auth_token": ("pravega.client.auth.token", "pravega_client_auth_token", None),
    # The name in the Rust client and its binding.
    "keycloak_file": ("pravega.client.auth.keycloak", "pravega_client_auth_keycloak", None),
    "credential_provider": ("pravega.client.auth.provider", "pravega_client_auth_provider", None),
    "tls_to_controller": ("pravega.tls.to.controller", "PRAVEGA_TLS_TO_CONTROLLER", None),
    "tls_to_stores": ("pravega.tls.to.stores", "PRAVEGA_TLS_TO_STORES", None),
    "tls_ca_file": ("pravega.tls.ca.file", "PRAVEGA_TLS_CA_FILE", None),
    "tls_ca_password": ("pravega.tls.ca.password", "PRAVEGA_TLS_CA_PASSWORD", None),
    "tls_server_name": ("pravega.tls.server.name", "PRAVEGA_TLS_SERVER_NAME", None),
    "tls_validate_hostname": ("pravega.tls.validate.hostname", "PRAVEGA_TLS_VALIDATE_HOSTNAME", None),
}
# Names of the controller's address in other clients.
_MEANT: Final = dict.fromkeys(
    ("bootstrap_servers", "service_url", "controller_uri", "uri", "url", "host", "hosts"), "controller"
)
#: Credentials that are requested and renewed.
_RENEWED: Final = ("keycloak_file", "credential_provider")
_CREDENTIALS: Final = frozenset({"auth_method", "auth_token", *_RENEWED})
_NO_CREDENTIALS: Final[dict[str, Any]] = dict.fromkeys(_CREDENTIALS)
_LABEL: Final = r"[A-Za-z0-9_\-]{1,63}"
_ENDPOINT: Final = re.compile(
    rf"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>{_LABEL}(?:\.{_LABEL})*\.?))(?::(?P<port>[0-9]{{1,5}}))?"
)
_BOOLEANS: Final = {"true": True, "false": False}
_FLAGS: Final = ("tls_to_controller", "tls_to_stores", "tls_validate_hostname")

_Layer = dict[str, Any]  # settings from one source, by field name


@dataclass(frozen=True, slots=True, kw_only=True)
class PravegaConfig(HintedNames):
    """Access to a Pravega cluster. Immutable; can be pickled for Spark's workers.

    :meth:`resolve` reads all sources. Each setting comes from the first source that has it, in this order:

    - explicit settings
    - program arguments
    - properties
    - the profile that you name
    - the environment
    - the profile that the environment names
    - the defaults

    The method and the token of the credentials are one setting. Raises ConfigError for invalid settings. Credentials
    appear neither in the text of the value nor in errors. A pickle contains them.

    ``username`` and ``password``, or ``token``, set the method and the token as :meth:`with_credentials` and
    :meth:`with_token` do.
    """

    controller: str = DEFAULT_CONTROLLER
    """``tcp://host:port``, or ``tls://``; several endpoints as ``tcp://a:9090,b:9090``. Java's ``ssl``, ``pravega``
    and ``pravegas`` are accepted too. Their endpoints are used as they are, and are not asked for others."""
    scope: str | None = None
    """Scope of streams that are named without one."""
    auth_method: str | None = None
    """The server's name for the kind of credentials, such as ``Basic``."""
    auth_token: str | None = field(default=None, repr=False)
    """The secret: for ``Basic``, base64 of ``user:password``."""
    keycloak_file: str | None = None
    """File of a Keycloak service account (``keycloak.json``), instead of method and token. Each process requests and
    renews its own tokens, so the file must exist for each process."""
    credential_provider: CredentialProvider | str | None = field(default=None, repr=False, hash=False)
    """Provider of credentials, instead of method and token: a callable, or the name ``package.module:name`` of one or
    of a class. Each process calls it before its credential ends, and imports it if it is a name."""
    tls_to_controller: bool | None = None
    """True if connections to the controllers use TLS; None if the scheme decides."""
    tls_to_stores: bool | None = None
    """True if connections to the segment stores use TLS; None if the scheme decides."""
    tls_ca_file: str | None = None
    """File with the certificates to trust: PEM, or a trust store of Java (JKS, PKCS #12). None trusts the certificates
    of gRPC and the system."""
    tls_ca_password: str | None = field(default=None, repr=False)
    """Password of the trust store."""
    tls_server_name: str | None = None
    """Name to expect in the servers' certificate, if it is not their host."""
    tls_validate_hostname: bool = True
    """True if the certificate of a segment store must match its host. The controller's certificate always must."""
    username: InitVar[str | None] = None
    password: InitVar[str | None] = None
    token: InitVar[str | None] = None

    def __post_init__(self, username: str | None, password: str | None, token: str | None) -> None:
        named = _credentials({"username": username, "password": password, "token": token})
        if named and (self.auth_method is not None or self.auth_token is not None):
            raise ConfigError("the credentials are set twice, as auth_token and as username or token")
        for name, value in named.items():
            object.__setattr__(self, name, value)
        for what, given in (("auth_method", self.auth_method), ("auth_token", self.auth_token)):
            fault = None if given is None else fault_of(given)
            if fault:  # the secret is not repeated
                raise ConfigError(f"the {what} {fault}")
        scheme, endpoints = _parse_uri(self.controller)
        object.__setattr__(self, "controller", f"{scheme}://{','.join(map(_endpoint_text, endpoints))}")
        if self.scope is not None:
            validate_scope_name(self.scope)
        fault = None if self.credential_provider is None else provider_fault(self.credential_provider)
        if fault:
            raise ConfigError(f"the credential_provider {fault}")
        renewed = [name for name in _RENEWED if getattr(self, name) is not None]
        if len(renewed) > 1:
            raise ConfigError("the credentials are set twice, as keycloak_file and as credential_provider")
        if renewed and (self.auth_method is not None or self.auth_token is not None):
            raise ConfigError(f"the credentials are set twice, as {renewed[0]} and as auth_token, username or token")
        if (self.auth_method is None) != (self.auth_token is None):
            missing, given = ("token", "method") if self.auth_token is None else ("method", "token")
            raise ConfigError(
                f"the credentials have a {given} but no {missing}: set pravega.client.auth.{missing} as well"
            )

    # ---- derived ----

    @property
    def endpoints(self) -> list[tuple[str, int]]:
        """Hosts and ports of the controllers."""
        return _parse_uri(self.controller)[1]

    @property
    def uses_tls_to_controller(self) -> bool:
        """True if connections to the controllers use TLS (Java's ``isEnableTlsToController``)."""
        return self._has_tls_scheme if self.tls_to_controller is None else self.tls_to_controller

    @property
    def uses_tls_to_stores(self) -> bool:
        """True if connections to the segment stores use TLS (Java's ``isEnableTlsToSegmentStore``)."""
        return self._has_tls_scheme if self.tls_to_stores is None else self.tls_to_stores

    @property
    def _has_tls_scheme(self) -> bool:
        return _parse_uri(self.controller)[0] in TLS_SCHEMES

    @property
    def authorization(self) -> str | None:
        """Secret ``authorization`` header of every call; None if it is not known in advance."""
        return None if self.auth_token is None else f"{self.auth_method} {self.auth_token}"

    def authorities(self) -> str | None:
        """Return the certificates to trust as PEM, or None for those of gRPC and the system.

        Raises ConfigError for a file that cannot be read or has no certificates, MissingExtraError.
        """
        if self.tls_ca_file is None:
            return None
        try:
            return trusted_certificates(self.tls_ca_file, self.tls_ca_password)
        except OSError as error:
            raise ConfigError(
                f"the CA certificates cannot be read from {self.tls_ca_file}: {error.strerror or error}; "
                "check pravega.tls.ca.file"
            ) from None
        except MissingExtraError:
            raise
        except SerdeError as error:
            raise ConfigError(
                f"{error.message}; check pravega.tls.ca.file and, for a trust store, pravega.tls.ca.password"
            ) from None

    # ---- explicit settings ----

    def with_controller(self, uri: str) -> PravegaConfig:
        """Return a copy with another controller."""
        return replace(self, controller=uri)

    def with_scope(self, scope: str) -> PravegaConfig:
        """Return a copy with another scope."""
        return replace(self, scope=scope)

    def with_credentials(self, username: str, password: str) -> PravegaConfig:
        """Return a copy with a username and a password."""
        return replace(self, **_NO_CREDENTIALS, username=username, password=password)

    def with_token(self, token: str, *, method: str = "Bearer") -> PravegaConfig:
        """Return a copy with a token. ``method`` is the name of the server's auth handler."""
        return replace(self, **_NO_CREDENTIALS | {"auth_method": method, "auth_token": token})

    def with_keycloak(self, file: str | os.PathLike[str]) -> PravegaConfig:
        """Return a copy with a Keycloak service account, from the file that Keycloak exports."""
        return replace(self, **_NO_CREDENTIALS | {"keycloak_file": os.fspath(file)})

    def with_credential_provider(self, provider: CredentialProvider | str) -> PravegaConfig:
        """Return a copy with a provider of credentials, or with the name ``package.module:name`` of one."""
        return replace(self, **_NO_CREDENTIALS | {"credential_provider": provider})

    def with_tls(
        self,
        *,
        ca_file: str | os.PathLike[str] | None = None,
        ca_password: str | None = None,
        server_name: str | None = None,
        validate_hostname: bool = True,
        to_controller: bool | None = None,
        to_stores: bool | None = None,
    ) -> PravegaConfig:
        """Return a copy with TLS settings.

        The controller's scheme decides if TLS is used, unless ``to_controller`` or ``to_stores`` does.
        """
        return replace(
            self,
            tls_to_controller=to_controller,
            tls_to_stores=to_stores,
            tls_ca_file=None if ca_file is None else os.fspath(ca_file),
            tls_ca_password=ca_password,
            tls_server_name=server_name,
            tls_validate_hostname=validate_hostname,
        )

    def options(self) -> dict[str, str]:
        """Return the same settings as options of the Spark source and sink: ``.options(**config.options())``.

        They include credentials, which all users who see the query's options can read. Raises ConfigError for a
        credential provider without a name, because Spark passes only texts to its processes.
        """
        found = {"controller": self.controller}
        if self.scope is not None:
            found["scope"] = self.scope
        if self.auth_method is not None and self.auth_token is not None:
            found |= {"auth_method": self.auth_method, "auth_token": self.auth_token}
        if self.keycloak_file is not None:
            found["keycloak_file"] = self.keycloak_file
        if self.credential_provider is not None:
            if not isinstance(self.credential_provider, str):
                raise ConfigError(
                    "the credential_provider is an object: for Spark, set its name, package.module:name, in a module "
                    "that every process can import"
                )
            found["credential_provider"] = self.credential_provider
        for name in ("tls_ca_file", "tls_ca_password", "tls_server_name"):
            if (text := getattr(self, name)) is not None:
                found[name] = text
        for name in ("tls_to_controller", "tls_to_stores"):
            if (flag := getattr(self, name)) is not None:
                found[name] = str(flag).lower()
        if not self.tls_validate_hostname:
            found["tls_validate_hostname"] = "false"
        return found

    # ---- sources ----

    @classmethod
    def from_env(cls, environment: Mapping[str, str] | None = None) -> PravegaConfig:
        """Read only environment variables: ``PRAVEGA_CONTROLLER_URI``, ``PRAVEGA_SCOPE`` and similar."""
        return cls(**_environment_layer(os.environ if environment is None else environment))

    @classmethod
    def from_args(cls, argv: Sequence[str]) -> tuple[PravegaConfig, list[str]]:
        """Read only program arguments (``--controller``, ``--scope``). Return the remaining arguments too."""
        layer, rest = _arguments_layer(argv)
        return cls(**layer), rest

    @classmethod
    def from_properties(cls, source: str | os.PathLike[str] | Mapping[str, Any]) -> PravegaConfig:
        """Read only properties (``pravega.controller.uri`` and similar).

        ``source`` is a ``.properties`` file or a mapping.
        """
        return cls(**_properties_layer(source))

    @classmethod
    def from_spark_conf(cls, conf: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> PravegaConfig:
        """Read only a Spark configuration, such as ``spark.sparkContext.getConf().getAll()``.

        ``spark.pravega.scope`` is read as ``pravega.scope``, because spark-submit passes on only names with this
        prefix. If both are set, the name without the prefix takes precedence.
        """
        return cls(**_properties_layer(dict(conf)))

    @classmethod
    def resolve(
        cls,
        *,
        arguments: Sequence[str] = (),
        properties: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        profile: str | None = None,
        **explicit: Any,
    ) -> PravegaConfig:
        """Read all sources: explicit > arguments > properties > ``profile`` > environment > its profile > default.

        ``explicit`` accepts the arguments of this class. None leaves a setting to the other sources. ``environment`` is
        by default the environment of the process. ``profile`` is the name of a profile in the user's file
        (:mod:`pravega_serde.profiles`). The environment names its profile with ``PRAVEGA_PROFILE``.
        """
        known = [f.name for f in fields(cls)] + ["username", "password", "token"]
        for name in sorted(explicit.keys() - set(known)):
            hint = did_you_mean(name, known, _MEANT)
            raise ConfigError(f"unknown setting {name!r}{hint}; known settings: {', '.join(known)}")
        named = _credentials({name: explicit.pop(name, None) for name in ("username", "password", "token")})
        if named and (explicit.get("auth_method") or explicit.get("auth_token")):
            raise ConfigError("the credentials are set twice, as auth_token and as username or token")
        explicit |= named
        environment = os.environ if environment is None else environment
        try:
            profiled = load_profile(profile, environment)
        except SerdeError as error:
            raise ConfigError(error.message) from None
        settings: dict[str, Any] = {}
        for layer in (
            profiled.cluster if profiled and not profiled.named else {},
            _environment_layer(environment),
            profiled.cluster if profiled and profiled.named else {},
            {} if properties is None else _properties_layer(properties),
            _arguments_layer(arguments)[0],
            {name: value for name, value in explicit.items() if value is not None},
        ):
            if not _CREDENTIALS.isdisjoint(layer):
                settings = {name: value for name, value in settings.items() if name not in _CREDENTIALS}
            settings |= layer
        return cls(**settings)


def _credentials(given: Mapping[str, Any]) -> dict[str, str]:
    """Return method and token for a username and password, or for a token; empty without any.

    Raises ConfigError.
    """
    username, password, token = (given.get(name) for name in ("username", "password", "token"))
    for name, value in given.items():
        fault = None if value is None else fault_of(value, encoded=name != "token")
        if fault:  # the secret is not repeated
            raise ConfigError(f"the {name} {fault}")
    if (username is None) != (password is None):
        missing = "password" if password is None else "username"
        raise ConfigError(f"the credentials have no {missing}: set a username and a password, or a token")
    if username is not None and token is not None:
        raise ConfigError("the credentials are set twice: set a username and a password, or a token")
    if username is not None:
        secret = base64.b64encode(f"{username}:{password}".encode()).decode()
        return {"auth_method": "Basic", "auth_token": secret}
    return {} if token is None else {"auth_method": "Bearer", "auth_token": token}


def _environment_layer(environment: Mapping[str, str]) -> _Layer:
    found = {name: environment.get(variable) for name, (_, variable, _) in _SOURCES.items()}
    if environment.get("pravega_client_auth_loadDynamic") == "true" and not found["keycloak_file"]:
        # Java's client then finds its credentials on the class path: with pravega-keycloak, in this file.
        found["keycloak_file"] = environment.get("KEYCLOAK_SERVICE_ACCOUNT_FILE")
    return _layer(found, 1)


def _properties_layer(source: str | os.PathLike[str] | Mapping[str, Any]) -> _Layer:
    entries = source if isinstance(source, Mapping) else _read_properties(source)
    found = {}
    for name, (key, _, _) in _SOURCES.items():
        found[name] = entries.get(key, entries.get(f"spark.{key}"))
    return _layer(found, 0)


def _arguments_layer(argv: Sequence[str]) -> tuple[_Layer, list[str]]:
    flags = {flag: name for name, (_, _, flag) in _SOURCES.items() if flag}
    found: dict[str, Any] = {}
    rest: list[str] = []
    remaining = iter(argv)
    for argument in remaining:
        if argument == "--":  # the rest belongs to others
            rest += [argument, *remaining]
            break
        flag, equals, value = argument.partition("=")
        if flag not in flags:
            rest.append(argument)
            continue
        value = value if equals else next(remaining, "")
        if not value or (not equals and value.startswith("-")):
            raise ConfigError(
                f"{flag} requires a value: {flag} {'tcp://host:port' if flag == '--controller' else 'name'}"
            )
        found[flags[flag]] = value
    return found, rest


def _layer(found: Mapping[str, Any], source: int) -> _Layer:
    """Return the settings that have a value.

    An empty value counts as missing: shells and templates leave settings out in this way.
    """
    layer: _Layer = {name: value for name, value in found.items() if value not in (None, "")}
    if not layer.keys().isdisjoint(_RENEWED) and layer.get("auth_method") == "Bearer" and "auth_token" not in layer:
        del layer["auth_method"]  # other clients require the method
    for name in _FLAGS:
        if name in layer:
            layer[name] = _boolean(str(_SOURCES[name][source]), layer[name])
    return layer


def _boolean(name: str, value: object) -> bool:
    parsed = _BOOLEANS.get(str(value).strip().lower())
    if parsed is None:
        raise ConfigError(f"{name} must be true or false, not {value!r}")
    return parsed


def _read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the properties file {os.fspath(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"invalid UTF-8 in the properties file {os.fspath(path)}") from None


def _parse_uri(uri: str) -> tuple[str, list[tuple[str, int]]]:
    """Return scheme and endpoints of a URI. ``host:port`` means ``tcp://host:port``, as in Java."""
    if not isinstance(uri, str):
        raise ConfigError(f"the controller URI must be a str such as {DEFAULT_CONTROLLER}, not {type(uri).__name__}")
    if "@" in uri:  # never repeated in the error: it may hold a password
        raise ConfigError(
            "the controller URI must not contain credentials: set them with with_credentials or pravega.client.auth.*"
        )
    if "?" in uri or "#" in uri:  # a token, perhaps
        raise ConfigError(
            "the controller URI has a '?' or a '#': write only scheme, host and port, such as "
            f"{DEFAULT_CONTROLLER}, and set credentials with with_credentials or pravega.client.auth.*"
        )
    scheme, separator, authority = uri.strip().rpartition("://")
    scheme = scheme.lower() if separator else "tcp"
    if scheme not in PLAIN_SCHEMES + TLS_SCHEMES:
        raise ConfigError(
            f"the controller URI {uri!r} must begin with tcp:// or tls:// (or pravega://, pravegas://, ssl://)"
        )
    return scheme, [_parse_endpoint(uri, part) for part in authority.removesuffix("/").split(",")]


def _parse_endpoint(uri: str, text: str) -> tuple[str, int]:
    match = _ENDPOINT.fullmatch(text.strip())
    port = int(match["port"] or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port < 65536:
        raise ConfigError(
            f"the controller URI {uri!r} has no valid host and port in {text!r}: write, for example, "
            f"{DEFAULT_CONTROLLER}"
        )
    return match["v6"] or match["host"], port


def _endpoint_text(endpoint: tuple[str, int]) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# ---- Java's .properties files ----

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.)|$)")
# The key ends at the first '=', ':' or blank that no backslash precedes.
_ENTRY: Final = re.compile(r"((?:\\.|[^\\=:\s])*)[ \t\f]*[=:]?[ \t\f]*(.*)")


def parse_properties(text: str) -> dict[str, str]:
    """Return keys and values of a ``.properties`` file, as ``java.util.Properties.load`` reads it.

    Of equal keys, the last one counts. A lone backslash on the last line creates no entry. In Java, it creates an entry
    with an empty key.
    """
    entries = {}
    for line in _logical_lines(text):
        match = _ENTRY.fullmatch(line)
        if match is not None:
            entries[_unescape(match[1])] = _unescape(match[2])
    return entries


def _logical_lines(text: str) -> Iterator[str]:
    """Yield lines without comments and leading blanks.

    A line that ends with an odd number of backslashes is joined with the next one.
    """
    pending = ""
    for natural in re.split(r"\r\n|\r|\n", text):
        line = pending + natural.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        pending = ""
        yield line
    if pending:
        yield pending


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[2] or ""), text)
