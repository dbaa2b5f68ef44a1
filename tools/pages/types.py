"""Tables of types on the pages of the formats, from the type table and from what the serializers return."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, Final

import pyarrow as pa
from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet

from pravega_serde import AvroSerializer, ProtobufSerializer
from pravega_serde.columnar.types import ROWS, Row
from pravega_serde.java.model import signature
from pravega_serde.java.types import ARROW
from pravega_serde.sniffing.proposals import ddl
from tools.pages._between import between

__all__ = ["avro_type", "columns_of", "java_type", "page", "protobuf_type", "schemas", "values"]

_END: Final = "<!-- end of generated -->"
#: Name of a type of a format -> its Arrow type, or None for a description that is not a name.
_TypeOf = Callable[[str], pa.DataType | None]


def page(*makers: Callable[[str], str]) -> Callable[[str], str]:
    """Return the maker of a page with tables between marks, in this order. A maker receives the page."""

    def made(text: str) -> str:
        for at, maker in enumerate(makers, 1):
            text = between(text, f"<!-- generated {at}: python -m tools.pages -->\n", _END, f"\n{maker(text)}\n")
        return text

    return made


def _table(head: str, rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([head, "|" + "---|" * (head.count("|") - 1), *lines, ""])


# ---- Arrow types ----


def schemas(_: str) -> str:
    """Return the table of derived schemas."""
    groups = itertools.groupby(ROWS.values(), _forms)
    return _table(
        "| Arrow | Spark | Avro | Protobuf | JSON schema, draft 7 | Java |",
        ([", ".join(map(_name, rows)), *forms] for forms, rows in groups),
    )


def _name(row: Row) -> str:
    return row.name.replace("[us", "[us or ns").replace("[ms", "[s or ms")


def _forms(row: Row) -> tuple[str, ...]:
    protobuf = f"{row.protobuf}, declared" if row.declared else row.protobuf
    return (row.spark, *(form or "none" for form in (row.avro, protobuf, row.schema, row.java)))


def values(_: str) -> str:
    """Return the table of the values of JSON and CBOR."""
    groups = itertools.groupby((row for row in ROWS.values() if row.name != "dictionary"), lambda row: row.values)
    return _table(
        "| Arrow | JSON | CBOR |",
        (
            [", ".join(dict.fromkeys(row.kind for row in rows)), *(form or "none" for form in forms)]
            for forms, rows in groups
        ),
    )


# ---- types of a format ----


def columns_of(head: str, type_of: _TypeOf) -> Callable[[str], str]:
    """Return the maker of the table with a head, whose last column has Spark's types of the names in the first one.

    A cell whose names are not all types stays as it is.
    """

    def made(text: str) -> str:
        lines = text[text.index(head) :].split("\n\n", 1)[0].splitlines()[2:]
        rows = (line.strip("| ").split(" | ") for line in lines)
        return _table(head, ([*cells, _spark_cell(cells[0], type_of) or kept] for *cells, kept in rows))

    return made


def _spark_cell(names: str, type_of: _TypeOf) -> str:
    kinds = [type_of(name.strip("`")) for name in names.split(", ")]
    return ", ".join(dict.fromkeys(spark_of(kind) for kind in kinds if kind is not None)) if None not in kinds else ""


def spark_of(kind: pa.DataType) -> str:
    """Return the name of a type in Spark, without the types inside."""
    return ddl(pa.schema([("x", kind)])).removeprefix("x ").partition("<")[0]


_AVRO: Final[dict[str, Any]] = {
    "array": {"type": "array", "items": "int"},
    "duration": {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
    "enum": {"type": "enum", "name": "E", "symbols": ["A"]},
    "fixed": {"type": "fixed", "name": "F", "size": 16},
    "map": {"type": "map", "values": "int"},
    "record": {"type": "record", "name": "R", "fields": [{"name": "f", "type": "int"}]},
    **dict.fromkeys(("boolean", "bytes", "double", "float", "int", "long", "null", "string")),
}
_LOGICAL: Final = {"date": "int", "time-millis": "int"}


def avro_type(name: str) -> pa.DataType | None:
    """Return the Arrow type of a type or a logical type of Avro."""
    if name in _AVRO:
        return AvroSerializer(_AVRO[name] or name).arrow_type
    if name in _LOGICAL or name.rpartition("-")[2] in ("millis", "micros", "nanos"):
        return AvroSerializer({"type": _LOGICAL.get(name, "long"), "logicalType": name}).arrow_type
    return None


_SCALARS: Final = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in FieldDescriptorProto.Type.items()
    if name not in ("TYPE_ENUM", "TYPE_GROUP", "TYPE_MESSAGE")
}


def protobuf_type(name: str) -> pa.DataType | None:
    """Return the Arrow type of a type of Protobuf, or of one of Google's messages."""
    file = FileDescriptorProto(name="t.proto", syntax="proto3")
    field = file.message_type.add(name="T").field.add(name="f", number=1, label=FieldDescriptorProto.LABEL_OPTIONAL)
    if name in ("Duration", "Timestamp"):
        file.dependency.append(f"google/protobuf/{name.lower()}.proto")
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".google.protobuf.{name}"
    elif name in _SCALARS:
        field.type = _SCALARS[name]
    else:
        return None
    return ProtobufSerializer(FileDescriptorSet(file=[file]), message_type="T").arrow_type.field(0).type


def java_type(name: str) -> pa.DataType | None:
    """Return the Arrow type of a class of the JDK."""
    packages = ("java.lang.", "java.math.", "java.sql.", "java.time.", "java.util.", "")
    return next((ARROW[found] for package in packages if (found := signature(package + name)) in ARROW), None)
