"""What files hold, and how each kind of them is read: columns of a sample, and chunks from a record on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from connector.ingest._source import Chunk

__all__ = ["FileKind", "unified"]


class FileKind(Protocol):
    """How files of one kind are read."""

    @property
    def sampled(self) -> bool:
        """Whether their columns are inferred from values, so that more values can change them."""

    def columns(self, path: str, *, whole: bool) -> pa.Schema:
        """The columns of a file, from its beginning or from all of it. Raises SourceError."""

    def chunks(self, path: str, schema: pa.Schema, offset: int, *, reject: bool) -> Iterator[Chunk]:
        """Its records from number ``offset`` on, in these columns. Raises SourceError."""


def unified(schemas: list[pa.Schema]) -> pa.Schema:
    """Columns that hold what any of these hold; what does not go together becomes text."""
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            known = types.get(field.name)
            types[field.name] = field.type if known is None else _both(known, field.type)
    return pa.schema(list(types.items()))


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    try:
        merged = pa.unify_schemas([pa.schema([("x", one)]), pa.schema([("x", other)])], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return pa.string()
    return merged.field(0).type
