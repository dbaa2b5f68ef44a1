"""Arrow types of a DataFrame's columns, and errors for types that neither source nor sink has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from pravega_connector.errors import ColumnTypeError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

#: Types without a form, by the names that Spark gives them, and what to do.
_NO_FORM: Final = {
    "variant": "read a STRING and call parse_json, or write to_json(column)",
    "geography": "use its WKB, as BINARY",
    "geometry": "use its WKB, as BINARY",
}


def arrow_columns(schema: StructType) -> pa.Schema:
    """Return the Arrow types of columns.

    Raises ColumnTypeError for two columns of one name, and for a type without a form.
    """
    _check_names(schema, "the DataFrame", "column")
    for field in schema:
        _check(field.dataType, field.name)
    try:
        return to_arrow_schema(schema, timezone="UTC")
    except (TypeError, ValueError) as error:
        raise ColumnTypeError(f"the columns have no Arrow type: {' '.join(str(error).split())[:300]}") from error


def _check(kind: DataType, path: str) -> None:
    name = kind.typeName().partition("(")[0]
    if name in _NO_FORM:
        raise ColumnTypeError(f"column {path!r} is {name.upper()}, which events do not have: {_NO_FORM[name]}")
    if isinstance(kind, StructType):
        _check_names(kind, f"column {path!r}", "field")
        for field in kind:
            _check(field.dataType, f"{path}.{field.name}")
    for part in ("elementType", "keyType", "valueType"):
        inner = getattr(kind, part, None)
        if inner is not None:
            _check(inner, path)


def _check_names(kind: StructType, owner: str, what: str) -> None:
    names = kind.fieldNames()
    for name in names:
        if names.count(name) > 1:
            raise ColumnTypeError(f"{owner} has two {what}s {name!r}; rename one of them with alias")
