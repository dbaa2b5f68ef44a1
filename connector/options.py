"""Options of the Spark source and sink: declared once, checked once, documented from the declaration.

Names are those of the Scala connector where the meaning is the same, so that a job moves over by changing its format.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from connector.config import PravegaConfig
from connector.errors import ConfigError
from connector.wire import StreamName
from pravega_serde import Serializer, serializer_for

__all__ = ["CommonOptions", "PravegaOptionWarning", "choice", "flag", "number", "option", "parse_options", "text"]

T = TypeVar("T", bound="CommonOptions")

# What Spark itself puts among the options (tables, checkpoints, names of queries).
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "provider", "owner", "queryname", "serialization.format"})
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})


class PravegaOptionWarning(UserWarning):
    """An option that nothing reads."""


def text(name: str, value: str) -> str:
    """Any text that is not empty."""
    if not value.strip():
        raise ConfigError(f"option {name!r} is empty")
    return value


def flag(name: str, value: str) -> bool:
    """``true`` or ``false``."""
    if (lowered := value.strip().lower()) in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ConfigError(f"option {name!r} must be true or false, not {value!r}")


def number(least: int, most: int) -> Callable[[str, str], int]:
    """A whole number within bounds."""

    def parse(name: str, value: str) -> int:
        try:
            parsed = int(value)
        except ValueError:
            parsed = least - 1
        if not least <= parsed <= most:
            raise ConfigError(f"option {name!r} must be a whole number from {least} to {most}, not {value!r}")
        return parsed

    return parse


def choice(*allowed: str) -> Callable[[str, str], str]:
    """One of some words, in any case."""

    def parse(name: str, value: str) -> str:
        for word in allowed:
            if value.strip().lower() == word.lower():
                return word
        raise ConfigError(f"option {name!r} must be one of {', '.join(allowed)}, not {value!r}")

    return parse


def option(default: Any, doc: str, parse: Callable[[str, str], Any] = text) -> Any:
    """A dataclass field that is an option."""
    return field(default=default, metadata={"doc": doc, "parse": parse})


@dataclass(frozen=True, kw_only=True)
class CommonOptions:
    """Options that the source and the sink share."""

    path: str | None = option(
        None, "`scope/stream`, or `stream` with the scope given elsewhere; `load()` and `save()` set it"
    )
    stream: str | None = option(None, "name of the stream, or `scope/stream`")
    scope: str | None = option(None, "scope of the stream")
    controller: str | None = option(None, "controller URI, such as `tcp://localhost:9090` or `tls://host:9090`")
    username: str | None = option(None, "user name, where the server asks for credentials")
    password: str | None = field(
        default=None, repr=False, metadata={"doc": "password that goes with `username`", "parse": text}
    )
    tls_ca_file: str | None = option(None, "PEM file with the certificates to trust, for a `tls://` controller")
    tls_validate_hostname: bool | None = option(None, "whether a certificate must be of its host (default true)", flag)
    timeout_ms: int = option(15_000, "how long one call to the servers may take", number(100, 3_600_000))
    format: str | None = option(
        None, "format of the events: `avro`, `json`, `string` or `bytes`; without it they stay raw"
    )
    avro_schema: str | None = option(None, "Avro schema of the events (`format=avro`): JSON text or the path of a file")

    def config(self) -> PravegaConfig:
        """Where the cluster is: these options, then the environment of the process, then the defaults."""
        config = PravegaConfig.resolve(
            controller=self.controller,
            scope=self.scope,
            tls_ca_file=self.tls_ca_file,
            tls_validate_hostname=self.tls_validate_hostname,
        )
        if self.username is not None:
            if self.password is None:
                raise ConfigError("option 'username' needs option 'password'")
            config = config.with_credentials(self.username, self.password)
        return config

    def stream_name(self) -> StreamName:
        """The stream that is meant. Raises ConfigError if none is, or two different ones."""
        given = self.stream or self.path
        if given is None:
            raise ConfigError("no stream is given: set option 'stream', or load('scope/stream')")
        if self.stream and self.path and self.stream != self.path and not self.path.endswith("/" + self.stream):
            raise ConfigError(
                f"two streams are given: option 'stream' is {self.stream!r} and the path is {self.path!r}"
            )
        # Tables and load() may hand on a path with slashes around it.
        given = max(self.stream or "", self.path or "", key=lambda name: name.count("/")).strip("/")
        if "/" in given:
            return StreamName.parse(given)
        scope = self.config().scope
        if scope is None:
            raise ConfigError(f"stream {given!r} has no scope: set option 'scope', or name it 'scope/{given}'")
        return StreamName(scope, given)

    def serializer(self, **arguments: Any) -> Serializer[Any]:
        """The serializer of ``format``, made with the options that belong to it and with ``arguments``.

        Raises ConfigError for a missing option, UnsupportedFormatError, SchemaError.
        """
        assert self.format is not None
        if self.format.lower() == "avro":
            if self.avro_schema is None:
                raise ConfigError(
                    "format 'avro' needs option 'avro_schema': the schema as JSON text or the path of a file"
                )
            arguments["schema"] = self.avro_schema
        return serializer_for(self.format, **arguments)


def parse_options(kind: type[T], raw: Mapping[str, str], *, also_known: Collection[str] = ()) -> T:
    """The options of a source or a sink from what Spark hands over; names in any case.

    ``also_known`` are names that belong to the other side: a table has the options of both.

    Raises ConfigError for a value that cannot be right. An unknown name is a PravegaOptionWarning that gives the
    nearest known one: Spark itself adds options, so it cannot be an error.
    """
    known = {f.name: f for f in fields(kind)}
    values: dict[str, Any] = {}
    for name, value in sorted((key.lower(), value) for key, value in raw.items()):
        if name in known:
            values[name] = known[name].metadata["parse"](name, value)
        elif name not in _SPARKS_OWN and name not in also_known and not name.startswith("option."):
            _warn_unknown(name, list(known))
    return kind(**values)


def _warn_unknown(name: str, known: list[str]) -> None:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known options: {', '.join(sorted(known))}"
    warnings.warn(
        f"[PRAVEGA-UNKNOWN-OPTION] option {name!r} is not known and has no effect; {hint}", PravegaOptionWarning, 3
    )
