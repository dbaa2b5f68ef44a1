"""Arrow types of a DataFrame's columns, and errors for types that neither source nor sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import ArrayType, NullType, StructField, StructType

from pravega_connector.errors import ColumnTypeError
from pravega_connector.rows.options.common import FormatOptions, RegistryOptions
from pravega_connector.spark.versions import arrow_schema, arrow_type

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

#: Types without a form, by the names that Spark gives them, and what to do.
_NO_FORM: Final = {
    "variant": "only JSON and CBOR have it, without a registry; write to_json(column), or read a STRING and call "
    "parse_json",
    "geography": "use its WKB, as BINARY",
    "geometry": "use its WKB, as BINARY",
}

#: Formats without a schema, whose values are those of VARIANT.
_WITH_VARIANT: Final = ("json", "cbor")


def arrow_columns(schema: StructType, options: FormatOptions | None = None) -> pa.Schema:
    """Return the Arrow types of columns of events with these options; None for columns of other data.

    Raises ColumnTypeError for two columns of one name, and for a type without a form.
    """
    variants = options is not None and options.format in _WITH_VARIANT
    if isinstance(options, RegistryOptions) and options.from_registry:
        variants = False
    _check_names(schema, "the DataFrame", "column")
    schema = _with_nullable_voids(schema)
    for field in schema:
        _check(field.dataType, field.name, variants)
        try:
            arrow_type(field.dataType)
        except (TypeError, ValueError) as error:
            name = field.dataType.simpleString()
            raise ColumnTypeError(
                f"column {field.name!r} is {name}, which has no Arrow type: cast it, for example to STRING"
            ) from error
    return arrow_schema(schema)


def _with_nullable_voids(kind: Any) -> Any:
    """Return the type with nullable items of VOID. Arrow has no others, but ``array()`` has."""
    if isinstance(kind, StructType):
        return StructType([StructField(f.name, _with_nullable_voids(f.dataType), f.nullable, f.metadata) for f in kind])
    if isinstance(kind, ArrayType):
        item = _with_nullable_voids(kind.elementType)
        return ArrayType(item, kind.containsNull or isinstance(item, NullType))
    return kind


def _check(kind: DataType, path: str, variants: bool) -> None:
    name = kind.typeName().partition("(")[0]
    if name in _NO_FORM and not (variants and name == "variant"):
        raise ColumnTypeError(f"column {path!r} is {name.upper()}, which the events do not have: {_NO_FORM[name]}")
    if isinstance(kind, StructType):
        _check_names(kind, f"column {path!r}", "field")
        for field in kind:
            _check(field.dataType, f"{path}.{field.name}", variants)
    for part in ("elementType", "keyType", "valueType"):
        inner = getattr(kind, part, None)
        if inner is not None:
            _check(inner, path, variants)


def _check_names(kind: StructType, owner: str, what: str) -> None:
    names = kind.fieldNames()
    for name in names:
        if names.count(name) > 1:
            raise ColumnTypeError(f"{owner} has two {what}s {name!r}; rename one of them with alias")
