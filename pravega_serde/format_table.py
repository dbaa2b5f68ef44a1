"""The tables of all formats and envelopes, and the serializer of a format by its name.

This module imports no codec: the module of a format, and pyarrow with it, is loaded on first use. It is the one place
that finds a format by a name, also the format of another package (:mod:`pravega_serde.plug_in_formats`).
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from pravega_serde import plug_in_formats
from pravega_serde.errors import SerdeError, UnsupportedFormatError
from pravega_serde.serializer_interface import Serializer
from pravega_serde.suggestions import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

    from pravega_serde.avro import AvroSerializer
    from pravega_serde.avro import SchemaLike as AvroSchema
    from pravega_serde.cbor import CborSerializer
    from pravega_serde.java import ClassDescriptor, JavaSerializer, Limits
    from pravega_serde.java.descriptors import Layouts
    from pravega_serde.json import JsonSerializer
    from pravega_serde.json.schema import SchemaLike as JsonSchema
    from pravega_serde.protobuf import ProtobufSchema, ProtobufSerializer
    from pravega_serde.text import ByteArraySerializer, UTF8StringSerializer

__all__ = [
    "ENVELOPES",
    "FORMATS",
    "FRAMINGS",
    "Format",
    "FormatOption",
    "find_format",
    "formats",
    "imported",
    "inference_of",
    "registry_formats",
    "serializer_for",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOption:
    """Option of one format in Spark and on the command line. Its value is an argument of the format's serializer."""

    name: str
    argument: str
    doc: str
    required: bool = False
    """Whether there is no serializer without it."""
    derived: bool = False
    """Whether it follows from the columns of records that have none: :meth:`RegistryFormat.derive` makes it."""
    tells_columns: str = ""
    """Values that tell the columns of the events, in words; empty if it tells none."""
    single: bool = False
    """Whether it says that every event is a single value."""
    record: bool = False
    """Whether it says that every event is a record."""
    registry_role: Literal["", "schema", "reader_schema", "type"] = ""
    """Meaning with a schema registry: the schema, that of a reader, or the name of its type."""
    first_bytes: bytes = b""
    """First bytes of the event that it is, in hex digits, base64 or a file; empty for an option that is text."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format in the table. Places are ``module:name``, imported on first use."""

    name: str
    serializer: str
    """Place of the class; its keyword arguments are the format's options."""
    _: KW_ONLY
    options: tuple[FormatOption, ...] = ()
    needs_columns: bool = False
    """Whether events do not name their columns: the serializer takes an ``arrow_type`` to read them as."""
    always_record: bool = False
    """Whether a single column is a record of one field, never the event itself."""
    infer: str = ""
    """Place of the class that infers columns, if it exists: ``add`` adds events, and ``schema`` returns the columns."""
    registry_name: str = ""
    """Name in a schema registry; empty for formats that it does not have."""
    registry: str = ""
    """Place of the :class:`~pravega_serde.registry.formats.RegistryFormat`."""


_AVRO: Final = (
    FormatOption(
        name="avro_schema",
        argument="schema",
        doc="schema of the written events: JSON text or the path of a file",
        required=True,
        derived=True,
        registry_role="schema",
    ),
    FormatOption(
        name="avro_reader_schema",
        argument="reader_schema",
        doc="schema to read the events with, by Avro's schema resolution: JSON text or path",
        registry_role="reader_schema",
    ),
)
_JAVA: Final = (
    FormatOption(
        name="java_type",
        argument="java_type",
        doc="Java type of the events: `java.lang.String`, a box such as `java.lang.Long`, `byte[]`, "
        "`java.util.Date`, …",
        tells_columns="java.lang.String, a box such as java.lang.Long, byte[]",
        single=True,
    ),
    FormatOption(
        name="java_sample",
        argument="sample",
        doc="an event, as hex digits, base64 or the path of a file: its class defines the columns to read, and "
        "the class to write",
        tells_columns="an event, whose class defines the columns",
        record=True,
        first_bytes=b"\xac\xed\x00\x05",
    ),
)
_JSON: Final = (
    FormatOption(
        name="json_schema",
        argument="schema",
        doc="JSON Schema that every event must satisfy: JSON text or the path of a file",
        registry_role="schema",
    ),
)
_PROTOBUF: Final = (
    FormatOption(
        name="protobuf_descriptor",
        argument="schema",
        doc="path of a file descriptor set (`protoc --include_imports --descriptor_set_out`)",
        required=True,
        registry_role="schema",
    ),
    FormatOption(
        name="protobuf_message",
        argument="message_type",
        doc="full name of the events' message type (`shop.v1.Order`), where the set has more than one",
        registry_role="type",
    ),
)

#: Every format, by its name. A format joins by its line here: serializers, Spark, command line, export and tests read
#: this table.
FORMATS: Final[Mapping[str, Format]] = {
    each.name: each
    for each in (
        Format(
            "avro",
            "pravega_serde.avro:AvroSerializer",
            options=_AVRO,
            registry_name="Avro",
            registry="pravega_serde.avro.registry:AvroRegistry",
        ),
        Format("bytes", "pravega_serde.text:ByteArraySerializer"),
        Format(
            "cbor",
            "pravega_serde.cbor:CborSerializer",
            needs_columns=True,
            always_record=True,
            infer="pravega_serde.cbor.rows:Inference",
        ),
        Format("java", "pravega_serde.java:JavaSerializer", options=_JAVA, needs_columns=True),
        Format(
            "json",
            "pravega_serde.json:JsonSerializer",
            options=_JSON,
            needs_columns=True,
            always_record=True,
            infer="pravega_serde.json.exact:Inference",
            registry_name="Json",
            registry="pravega_serde.json.registry:JsonRegistry",
        ),
        Format(
            "protobuf",
            "pravega_serde.protobuf:ProtobufSerializer",
            options=_PROTOBUF,
            registry_name="Protobuf",
            registry="pravega_serde.protobuf.registry:ProtobufRegistry",
        ),
        Format("string", "pravega_serde.text:UTF8StringSerializer"),
    )
}

#: Places of the readers and writers of envelopes, by the name of the envelope.
ENVELOPES: Final[Mapping[str, str]] = {
    "cloudevents": "pravega_serde.envelopes.cloudevents_json:JsonEvents",
    "cloudevents+avro": "pravega_serde.envelopes.cloudevents_avro:AvroEvents",
    "cloudevents+protobuf": "pravega_serde.envelopes.cloudevents_protobuf:ProtobufEvents",
}

#: Names of the framings in :mod:`pravega_serde.framings`.
FRAMINGS: Final = ("aws-glue", "azure", "delimited", "grpc", "gzip", "zlib")

# What a format is called elsewhere.
_ELSEWHERE: Final = {
    "utf8": "string",
    "utf-8": "string",
    "utf8string": "string",
    "text": "string",
    "str": "string",
    "bytearray": "bytes",
    "binary": "bytes",
    "raw": "bytes",
    "proto": "protobuf",
}


def formats() -> tuple[str, ...]:
    """Return the names that :func:`serializer_for` accepts, sorted, with those of installed plug-ins."""
    return tuple(sorted({*FORMATS, *plug_in_formats.installed()}))


def registry_formats() -> tuple[str, ...]:
    """Return the names of the formats that a schema registry supports, sorted."""
    return tuple(sorted(name for name, each in FORMATS.items() if each.registry))


def find_format(name: str) -> Format:
    """Return the format of a name that the user has chosen: of the table, of a plug-in, or ``package.module:name``.

    A plug-in is imported, once for each process. Never pass a name from stored data. Raises
    :class:`UnsupportedFormatError`.
    """
    if not isinstance(name, str):
        raise UnsupportedFormatError(f"the name of a format must be a str, not {type(name).__name__}; {_known()}")
    found = name.strip()
    if ":" in found:
        return _plug_in(found, found)
    found = found.lower()
    if found in FORMATS:
        return FORMATS[found]
    if (place := plug_in_formats.installed().get(found)) is not None:
        return _plug_in(found, place)
    raise UnsupportedFormatError(f"unknown format {name!r}{did_you_mean(found, formats(), _ELSEWHERE)}; {_known()}")


def _known() -> str:
    return f"known formats: {', '.join(formats())}, or package.module:name of another serializer"


@functools.cache
def _plug_in(name: str, place: str) -> Format:
    found = plug_in_formats.load(place)
    parameters = _parameters(found)
    needs_columns = "arrow_type" in parameters
    if not needs_columns:
        by_default = all(each.default is not each.empty for each in parameters.values())
        of_function = not isinstance(found, type) and not plug_in_formats.is_serializer(found) and by_default
        needs_columns = plug_in_formats.lacks_columns(_created(name, found, {}) if of_function else found)
    return Format(
        name,
        place,
        needs_columns=needs_columns,
        infer="pravega_serde.columnar.inference:RowInference" if needs_columns else "",
        always_record=bool(getattr(found, "always_record", False)),
    )


def imported(place: str) -> Any:
    """Return the object at ``module:name``, a place of the table."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


# For type checkers: the class of each format, with its arguments.
@overload
def serializer_for(
    format_name: Literal["avro"], /, *, schema: AvroSchema, reader_schema: AvroSchema | None = None
) -> AvroSerializer: ...
@overload
def serializer_for(format_name: Literal["bytes"], /) -> ByteArraySerializer: ...
@overload
def serializer_for(
    format_name: Literal["cbor"], /, *, arrow_type: pa.DataType | pa.Schema | None = None, deterministic: bool = False
) -> CborSerializer: ...
@overload
def serializer_for(
    format_name: Literal["java"],
    /,
    *,
    java_type: str | ClassDescriptor | None = None,
    sample: bytes | str | None = None,
    arrow_type: pa.DataType | None = None,
    limits: Limits | None = None,
    write_object: Layouts | None = None,
) -> JavaSerializer: ...
@overload
def serializer_for(
    format_name: Literal["json"],
    /,
    *,
    arrow_type: pa.DataType | pa.Schema | None = None,
    schema: JsonSchema | None = None,
) -> JsonSerializer: ...
@overload
def serializer_for(
    format_name: Literal["protobuf"], /, *, schema: ProtobufSchema, message_type: str | None = None
) -> ProtobufSerializer: ...
@overload
def serializer_for(format_name: Literal["string"], /) -> UTF8StringSerializer: ...
@overload
def serializer_for(format_name: str, /, **options: Any) -> Serializer[Any]: ...


def serializer_for(format_name: str, /, **options: Any) -> Serializer[Any]:
    """Create the serializer of a format by its name, with the options of its class.

    ``avro`` and ``protobuf`` require their ``schema``. ``json`` and ``cbor`` require an ``arrow_type`` (a
    pyarrow.Schema) to read events as columns. ``string`` and ``bytes`` need no option. For all options, see
    ``help(AvroSerializer)`` and so on.

    Installed packages can add names. ``package.module:name`` imports any other format: a serializer,
    its class, or a function that returns one, with the options as keyword arguments.

    Raises :class:`UnsupportedFormatError` for an unknown name, and :class:`SerdeError` for an unknown or missing
    option. Both name the nearest known name.
    """
    declared = find_format(format_name)
    if declared.name not in FORMATS:
        return _of_plug_in(declared, options)
    factory = imported(declared.serializer)
    _check_options(declared.name, inspect.signature(factory).parameters, options)
    serializer: Serializer[Any] = factory(**options)
    return serializer


def inference_of(format_name: str) -> Any:
    """Return the inference of columns of a format that has one: see :attr:`Format.infer`."""
    declared = find_format(format_name)
    if not declared.infer:
        raise SerdeError(f"the format {declared.name!r} cannot infer columns: set a schema or the columns")
    kind = imported(declared.infer)
    return kind() if declared.name in FORMATS else kind(serializer_for(format_name).deserialize)


def _of_plug_in(declared: Format, options: Mapping[str, object]) -> Serializer[Any]:
    """Return the serializer of a plug-in. One without columns reads and writes them row by row."""
    found = plug_in_formats.load(declared.serializer)
    given, known = dict(options), _parameters(found)
    kind = given.pop("arrow_type", None) if declared.needs_columns and "arrow_type" not in known else None
    _check_options(declared.name, known, given)
    made = found if plug_in_formats.is_object(found) else _created(declared.name, found, given)
    if not plug_in_formats.is_serializer(made):
        raise UnsupportedFormatError(f"the format {declared.name!r} returned a {type(made).__name__}, not a serializer")
    if hasattr(made, "decode_column") and hasattr(made, "encode_column"):
        serializer: Serializer[Any] = made
        return serializer
    return imported("pravega_serde.adapters.by_row:ByRow")(made, arrow_type=kind)  # type: ignore[no-any-return]


def _parameters(found: Any) -> Mapping[str, inspect.Parameter]:
    if plug_in_formats.is_object(found):
        return {}
    try:
        return inspect.signature(found).parameters
    except ValueError:  # a class that is written in C
        return {}


def _created(name: str, factory: Callable[..., Any], options: Mapping[str, object]) -> Any:
    try:
        return factory(**options)
    except SerdeError:
        raise
    except Exception as error:
        raise SerdeError(f"the format {name!r} cannot be created: {type(error).__name__}: {error}") from error


def _check_options(name: str, known: Mapping[str, inspect.Parameter], options: Mapping[str, object]) -> None:
    any_name = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values())
    for option in options:
        if option not in known and not any_name:
            raise SerdeError(f"format {name!r} has no option {option!r}{did_you_mean(option, known)}")
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    required = (key for key, p in known.items() if p.default is inspect.Parameter.empty and p.kind not in optional)
    missing = [key for key in required if key not in options]
    if missing:
        raise SerdeError(f"format {name!r} requires the option {missing[0]!r}")
