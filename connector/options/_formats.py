"""Options of the events' format: which belongs to which format, and the serializer that they make."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from connector.errors import ConfigError
from connector.options._declare import option, text
from pravega_serde import Serializer, UnsupportedFormatError, formats, serializer_for

__all__ = ["FormatOptions"]

# Formats whose events do not say which columns they have, and what does. Their serializers take an arrow_type.
_WITHOUT_COLUMNS: Final = {
    "java": "set option 'java_type' (java.lang.String, a box such as java.lang.Long, byte[]) or 'java_sample' (an "
    "event, whose class then gives the columns), or give a schema with the fields that you want (.schema('name "
    "STRING, …') of a reader)",
    "json": "give a schema with the fields that you want (.schema('name STRING, …') of a reader)",
}
# How the bytes of a Java event begin in hex digits and in base64.
_JAVA_HEX: Final = "aced0005"
_JAVA_BASE64: Final = "rO0AB"


def _known_format(name: str, value: str) -> str:
    lowered = value.strip().lower()
    if lowered not in formats():
        raise UnsupportedFormatError(f"option {name!r} is {value!r}; known formats: {', '.join(formats())}")
    return lowered


def _java_event(name: str, value: str) -> bytes:
    """A Java event that is given as hex digits, as base64, or as the path of a file that holds it."""
    given = value.strip()
    try:
        if given.lower().startswith(_JAVA_HEX):
            return bytes.fromhex(given)
        if given.startswith(_JAVA_BASE64):
            return base64.b64decode(given, validate=True)
        return Path(given).read_bytes()
    except (ValueError, binascii.Error) as error:
        raise ConfigError(f"option {name!r} is neither hex nor base64 of a Java event: {error}") from None
    except OSError as error:
        raise ConfigError(
            f"option {name!r} is no Java event in hex or base64, and the file {given[:80]!r} cannot be read: "
            f"{error.strerror}"
        ) from None


def _of(
    name: str, argument: str, doc: str, parse: Callable[[str, str], Any] = text, *, required: bool = False, **more: Any
) -> Any:
    """An option of one format, and the argument of the format's serializer that it becomes."""
    doc = f"`format={name}`: {doc}"
    return option(None, doc, parse, format=name, argument=argument, required=required, **more)


@dataclass(frozen=True, kw_only=True)
class FormatOptions:
    """What the events are; every option here but ``format`` belongs to one format."""

    format: str | None = option(
        None,
        "format of the events: `avro`, `bytes`, `java`, `json`, `protobuf` or `string`; without it they stay raw",
        _known_format,
    )
    avro_schema: str | None = _of(
        "avro", "schema", "schema that the events are written with: JSON text or the path of a file", required=True
    )
    avro_reader_schema: str | None = _of(
        "avro", "reader_schema", "schema to read the events as, by Avro's schema resolution: JSON text or path"
    )
    java_type: str | None = _of(
        "java",
        "java_type",
        "what every event is: `java.lang.String`, a box such as `java.lang.Long`, `byte[]`, `java.util.Date`, …",
        tells_columns=True,
    )
    java_sample: bytes | None = _of(
        "java",
        "sample",
        "an event, as hex digits, base64 or the path of a file: its class gives the columns to read, and is what is "
        "written",
        _java_event,
        tells_columns=True,
    )
    json_schema: str | None = _of(
        "json", "schema", "JSON Schema that every event must fulfil: JSON text or the path of a file"
    )
    protobuf_descriptor: str | None = _of(
        "protobuf",
        "schema",
        "path of a file descriptor set (`protoc --include_imports --descriptor_set_out`)",
        required=True,
    )
    protobuf_message: str | None = _of(
        "protobuf",
        "message_type",
        "full name of the events' message type (`shop.v1.Order`), where the set has more than one",
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for an option of another format than the one given, and for two that say the same."""
        for each in fields(self):
            owner = each.metadata.get("format", self.format)
            if owner != self.format and getattr(self, each.name) is not None:
                given = "no format is given" if self.format is None else f"the format is {self.format!r}"
                raise ConfigError(f"option {each.name!r} belongs to format {owner!r}, but {given}: drop one of the two")
        if len(telling := self._telling()) > 1:
            raise ConfigError(f"options {' and '.join(telling)} both say what the events are: set only one")

    def _telling(self) -> list[str]:
        """Options given that say which columns the events have."""
        return [
            each.name
            for each in fields(self)
            if each.metadata.get("tells_columns") and getattr(self, each.name) is not None
        ]

    def serializer(self, wanted: pa.DataType | None = None) -> Serializer[Any]:
        """The serializer of ``format``, which must be given; ``wanted`` is what to read events as, if that is asked.

        Raises ConfigError for a missing option, SchemaError.
        """
        assert self.format is not None
        arguments = self._arguments()
        if wanted is not None and self.format in _WITHOUT_COLUMNS:
            arguments["arrow_type"] = wanted
        return serializer_for(self.format, **arguments)

    def column_serializer(self, wanted: pa.DataType | None = None) -> Serializer[Any]:
        """The serializer, which knows the columns of the events.

        Raises ConfigError if nothing tells them, SchemaError if they have no form in Arrow.
        """
        assert self.format is not None
        if wanted is None and not self._telling() and self.format in _WITHOUT_COLUMNS:
            raise ConfigError(
                f"events of format {self.format!r} do not say which columns they have: {_WITHOUT_COLUMNS[self.format]}"
            )
        serializer = self.serializer(wanted)
        _ = serializer.arrow_type
        return serializer

    def _arguments(self) -> dict[str, Any]:
        arguments = {}
        for each in fields(self):
            if self.format is None or each.metadata.get("format") != self.format:
                continue
            value = getattr(self, each.name)
            if value is not None:
                arguments[each.metadata["argument"]] = value
            elif each.metadata["required"]:
                raise ConfigError(f"format {self.format!r} needs option {each.name!r}: {_plain(each.metadata['doc'])}")
        return arguments


def _plain(doc: str) -> str:
    return doc.partition(": ")[2].replace("`", "")
