"""What ``.schema(…)`` declares NOT NULL: Spark takes its word for it, and a null would end in an obscure error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde import DeserializationError
from pravega_serde.columnar import list_items, map_entries

__all__ = ["has_required", "missing_values"]

Rows = npt.NDArray[np.int64]


def has_required(field: pa.Field) -> bool:
    """Whether something may not be null, in the column or in its values."""
    kind = field.type
    inner = [kind.field(i) for i in range(kind.num_fields)]
    if pa.types.is_map(kind):
        inner = [kind.item_field]  # the entries themselves, and their keys, are never null
    return not field.nullable or any(map(has_required, inner))


def missing_values(column: pa.Array, field: pa.Field) -> list[DeserializationError]:
    """Errors of the rows that have a null where there may be none: one for each row and place."""
    if not column.null_count and not pa.types.is_nested(field.type):
        return []
    return [
        DeserializationError("it is null, and .schema(…) says NOT NULL", field_path=path, row=row)
        for rows, path in _nulls(column, field, np.arange(len(column)), f"$.{field.name}")
        for row in dict.fromkeys(rows.tolist())
    ]


def _nulls(column: pa.Array, field: pa.Field, rows: Rows, path: str) -> Iterator[tuple[Rows, str]]:
    """Rows, and the place in them, of nulls that may not be; ``rows`` says which row each value belongs to."""
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        if not field.nullable:
            yield rows[~valid], path
        # What is in a null is not missing.
        column, rows = column.drop_null(), rows[valid]
    kind = field.type
    if pa.types.is_struct(kind):
        for child, values in zip(kind, column.flatten(), strict=True):
            yield from _nulls(values, child, rows, f"{path}.{child.name}")
    elif pa.types.is_list(kind):
        lengths, values = list_items(column)
        yield from _nulls(values, kind.value_field, np.repeat(rows, lengths), f"{path}[]")
    elif pa.types.is_map(kind):
        lengths, _, values = map_entries(column)
        yield from _nulls(values, kind.item_field, np.repeat(rows, lengths), f"{path}[]")
