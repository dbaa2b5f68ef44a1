"""Files that schemas may import without including them: Google's own, ``google/type`` and Confluent's.

Registries and clients of other languages bring them along.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MessageOptions,
)

#: Google's own files, which Python's package has as ``google.protobuf.<name>_pb2``.
_GOOGLES: Final = frozenset(
    f"google/protobuf/{name}.proto"
    for name in (
        *("any", "api", "descriptor", "duration", "empty", "field_mask"),
        *("source_context", "struct", "timestamp", "type", "wrappers"),
    )
)

#: File -> imports, and messages with their fields: ``type name``, numbered from 1. ``*`` is before a repeated one,
#: and ``|`` before its oneof.
_FILES: Final[dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]]] = {
    "google/type/calendar_period.proto": ((), {}),
    "google/type/color.proto": (
        ("google/protobuf/wrappers.proto",),
        {"Color": ("float red", "float green", "float blue", ".google.protobuf.FloatValue alpha")},
    ),
    "google/type/date.proto": ((), {"Date": ("int32 year", "int32 month", "int32 day")}),
    "google/type/datetime.proto": (
        ("google/protobuf/duration.proto",),
        {
            "DateTime": (
                *("int32 year", "int32 month", "int32 day", "int32 hours", "int32 minutes", "int32 seconds"),
                *("int32 nanos", ".google.protobuf.Duration utc_offset|time_offset"),
                ".google.type.TimeZone time_zone|time_offset",
            ),
            "TimeZone": ("string id", "string version"),
        },
    ),
    "google/type/dayofweek.proto": ((), {}),
    "google/type/decimal.proto": ((), {"Decimal": ("string value",)}),
    "google/type/expr.proto": (
        (),
        {"Expr": ("string expression", "string title", "string description", "string location")},
    ),
    "google/type/fraction.proto": ((), {"Fraction": ("int64 numerator", "int64 denominator")}),
    "google/type/interval.proto": (
        ("google/protobuf/timestamp.proto",),
        {"Interval": (".google.protobuf.Timestamp start_time", ".google.protobuf.Timestamp end_time")},
    ),
    "google/type/latlng.proto": ((), {"LatLng": ("double latitude", "double longitude")}),
    "google/type/localized_text.proto": ((), {"LocalizedText": ("string text", "string language_code")}),
    "google/type/money.proto": ((), {"Money": ("string currency_code", "int64 units", "int32 nanos")}),
    "google/type/month.proto": ((), {}),
    "google/type/phone_number.proto": (
        (),
        {
            "PhoneNumber": (
                "string e164_number|kind",
                ".google.type.PhoneNumber.ShortCode short_code|kind",
                "string extension",
            ),
            "PhoneNumber.ShortCode": ("string region_code", "string number"),
        },
    ),
    "google/type/postal_address.proto": (
        (),
        {
            "PostalAddress": (
                *("int32 revision", "string region_code", "string language_code", "string postal_code"),
                *("string sorting_code", "string administrative_area", "string locality", "string sublocality"),
                *("*string address_lines", "*string recipients", "string organization"),
            )
        },
    ),
    "google/type/quaternion.proto": ((), {"Quaternion": ("double x", "double y", "double z", "double w")}),
    "google/type/timeofday.proto": (
        (),
        {"TimeOfDay": ("int32 hours", "int32 minutes", "int32 seconds", "int32 nanos")},
    ),
    "confluent/meta.proto": (
        ("google/protobuf/descriptor.proto",),
        {
            "Meta": ("string doc", "*.confluent.Meta.ParamsEntry params", "*string tags"),
            "Meta.ParamsEntry": ("string key", "string value"),
        },
    ),
    "confluent/type/decimal.proto": ((), {"Decimal": ("bytes value", "uint32 precision", "int32 scale")}),
}
_ENUMS: Final = {
    "google/type/calendar_period.proto": (
        "CalendarPeriod",
        ("CALENDAR_PERIOD_UNSPECIFIED", "DAY", "WEEK", "FORTNIGHT", "MONTH", "QUARTER", "HALF", "YEAR"),
    ),
    "google/type/dayofweek.proto": (
        "DayOfWeek",
        (
            *("DAY_OF_WEEK_UNSPECIFIED", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"),
            "SUNDAY",
        ),
    ),
    "google/type/month.proto": (
        "Month",
        (
            *("MONTH_UNSPECIFIED", "JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE", "JULY", "AUGUST"),
            *("SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"),
        ),
    ),
}
#: Number of Confluent's options, and the options that they extend.
META_OPTION: Final = 1088
_EXTENDED: Final = {
    "file_meta": "FileOptions",
    "message_meta": "MessageOptions",
    "field_meta": "FieldOptions",
    "enum_meta": "EnumOptions",
    "enum_value_meta": "EnumValueOptions",
}

#: Names of all these files.
BUNDLED: Final = _GOOGLES | _FILES.keys()


def bundled(name: str) -> FileDescriptorProto | None:
    """Return one of these files, or None for another. Java's ``ProtobufSchema.of(Class)`` omits even Google's own."""
    return _file(name) if name in BUNDLED else None


def bundled_for_compiler() -> list[FileDescriptorProto]:
    """Return the files that protoc does not have, and the files that they import, imports first."""
    made: dict[str, FileDescriptorProto] = {}
    for name, (imports, _) in _FILES.items():
        made |= {each: _file(each) for each in (*imports, name)}
    return list(made.values())


@cache
def _file(name: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    if name in _GOOGLES:
        module = importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR.CopyToProto(file)
        return file
    imports, messages = _FILES[name]
    package = name.rpartition("/")[0].replace("/", ".")
    file = FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=imports)
    for message, fields in messages.items():
        outer, _, last = message.rpartition(".")
        inside = file.message_type[0].nested_type if outer else file.message_type
        inside.append(_message(last, fields))
    if name in _ENUMS:
        enum, values = _ENUMS[name]
        file.enum_type.append(EnumDescriptorProto(name=enum))
        for number, value in enumerate(values):
            file.enum_type[0].value.add(name=value, number=number)
    if name == "confluent/meta.proto":
        for extension, options in _EXTENDED.items():
            file.extension.add(
                name=extension,
                number=META_OPTION,
                label=FieldDescriptorProto.LABEL_OPTIONAL,
                type=FieldDescriptorProto.TYPE_MESSAGE,
                type_name=".confluent.Meta",
                extendee=f".google.protobuf.{options}",
            )
    return file


def _message(name: str, fields: tuple[str, ...]) -> DescriptorProto:
    message = DescriptorProto(name=name)
    if name.endswith("Entry"):
        message.options.CopyFrom(MessageOptions(map_entry=True))
    for number, text in enumerate(fields, 1):
        declared, _, oneof = text.partition("|")
        kind, _, field_name = declared.removeprefix("*").partition(" ")
        repeated = declared.startswith("*")
        label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
        field = message.field.add(name=field_name, number=number, label=label)
        if kind.startswith("."):
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, kind
        else:
            field.type = FieldDescriptorProto.Type.Value(f"TYPE_{kind.upper()}")
        if oneof:
            if not message.oneof_decl:
                message.oneof_decl.add(name=oneof)
            field.oneof_index = 0
    return message
