"""Options of streams whose schemas are in a schema registry."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from connector.errors import ConfigError
from connector.options._declare import option, text
from connector.options._formats import FormatOptions

if TYPE_CHECKING:
    from pravega_serde.registry import RegistryConfig

__all__ = ["RegistryOptions", "codec_names", "registry_option"]

_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_FORMATS: Final = ("avro", "json", "protobuf")
# Credentials of the environment give way to those of the options.
_CREDENTIALS: Final = frozenset({"PRAVEGA_REGISTRY_USERNAME", "PRAVEGA_REGISTRY_PASSWORD", "PRAVEGA_REGISTRY_TOKEN"})


def registry_option(default: Any, doc: str, *rest: Any, **more: Any) -> Any:
    """An option that means something only with a registry."""
    return option(default, f"with a registry: {doc}", *rest, registry=True, **more)


def codec_names(name: str, value: str) -> tuple[str, ...]:
    """Places of codecs in Python modules."""
    places = tuple(part.strip() for part in value.split(","))
    for place in places:
        if not _PLACE.fullmatch(place):
            raise ConfigError(f"option {name!r} is {value!r}, not package.module:name of a Codec (several by commas)")
    return places


def _secret(doc: str) -> Any:
    return field(default=None, repr=False, metadata={"doc": doc, "parse": text, "registry": True})


@dataclass(frozen=True, kw_only=True)
class RegistryOptions(FormatOptions):
    """Where the registry is, and which of its groups and types are meant."""

    registry: str | None = option(
        None,
        "the schema registry of the stream's events, such as `http://localhost:9092`: their columns are those of its "
        "schemas. Without it, and with `group`, the environment says where it is (PRAVEGA_REGISTRY_URI)",
    )
    group: str | None = option(None, "group in the registry (default: the stream's name)")
    namespace: str | None = registry_option(None, "namespace of the group")
    registry_type: str | None = registry_option(
        None,
        "type of events, by its full name in the registry. Reading: events of other types are left out; without it "
        "several types are one struct column each. Writing: the type of the columns (default: the group's only type; "
        "in an empty group the stream's name)",
    )
    codecs: tuple[str, ...] | None = registry_option(
        None,
        "codecs of your own, as `package.module:name` of each `Codec`, with commas between them, importable on every "
        "node: to read a group that Java writes encrypted, say",
        codec_names,
    )
    registry_username: str | None = registry_option(None, "user name; else credentials are those of the environment")
    registry_password: str | None = _secret("with a registry: password that goes with `registry_username`")
    registry_token: str | None = _secret("with a registry: bearer token, instead of a user name")
    registry_ca_file: str | None = registry_option(None, "PEM file with the certificates to trust")

    def __post_init__(self) -> None:
        """Raise ConfigError for options that need a registry, and for formats that it does not have."""
        super().__post_init__()
        if not self.from_registry:
            for each in fields(self):
                if each.metadata.get("registry") and getattr(self, each.name) != each.default:
                    raise ConfigError(
                        f"option {each.name!r} needs a schema registry: set option 'registry', or 'group' where the "
                        "environment says where the registry is"
                    )
        elif self.format not in (None, *_FORMATS):
            raise ConfigError(
                f"format {self.format!r} does not go with a schema registry: its formats are {', '.join(_FORMATS)}"
            )

    @property
    def from_registry(self) -> bool:
        """Whether the schemas are in a registry."""
        return self.registry is not None or self.group is not None

    def registry_config(self, timeout: float) -> RegistryConfig:
        """Where the registry is: these options, then the environment. Raises SerdeError for what cannot be right."""
        from pravega_serde.registry import RegistryConfig  # noqa: PLC0415 - costs as much as all else here together

        given = (self.registry_username, self.registry_password, self.registry_token) != (None, None, None)
        known = {k: v for k, v in os.environ.items() if not (given and k in _CREDENTIALS)}
        return RegistryConfig.from_env(
            known,
            uri=self.registry,
            namespace=self.namespace,
            username=self.registry_username,
            password=self.registry_password,
            token=self.registry_token,
            ca_file=self.registry_ca_file,
            timeout=timeout,
            # Asked when a query is planned, and then the latest schemas are to be those of that moment.
            latest_seconds=0.0,
        )

    def given_schema(self, *, reading: bool) -> tuple[Any, str | None] | None:
        """A schema that the options give themselves, and the type's name if that is not in it; None if there is none.

        To read, ``avro_reader_schema`` comes before ``avro_schema``.
        """
        if self.avro_reader_schema is not None and reading:
            return self.avro_reader_schema, None
        if self.avro_schema is not None:
            return self.avro_schema, None
        if self.json_schema is not None:
            inline = self.json_schema.lstrip().startswith("{")
            return (self.json_schema if inline else Path(self.json_schema)), self.registry_type
        if self.protobuf_descriptor is not None:
            return self.protobuf_descriptor, self.protobuf_message or self.registry_type
        return None
