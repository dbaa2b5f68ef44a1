"""Arrow's types in few words."""

import pyarrow as pa


def struct(**fields: pa.DataType) -> pa.DataType:
    return pa.struct(list(fields.items()))


def list_of(kind: pa.DataType) -> pa.DataType:
    """As Spark spells it."""
    return pa.list_(pa.field("element", kind))
