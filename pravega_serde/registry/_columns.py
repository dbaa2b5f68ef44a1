"""Decoding a column of events with headers: grouped by encoding id, each group at once, back into the order of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.arrays import Int64s
from pravega_serde.errors import DeserializationError
from pravega_serde.registry._entries import Entries, UnknownEncodingError, relocated
from pravega_serde.registry._event_types import EventType
from pravega_serde.registry._header import HeaderColumn, read_header
from pravega_serde.registry._models import SchemaInfo
from pravega_serde.serializer import OnError

__all__ = ["ColumnTypes", "column_names", "decode_column"]

_NO_NAME: Final = re.compile(r"\W")


def column_names(schemas: Sequence[SchemaInfo]) -> tuple[str, ...]:
    """A column's name for each type: the last part of its name, or as much more as tells it from the others."""
    candidates = [
        (re.split(r"[.$/]", each.type)[-1], each.type, f"{each.type}_{each.format.full_type_name}") for each in schemas
    ]
    counts = [Counter(names) for names in zip(*candidates, strict=True)]
    names = [
        next((name for name, count in zip(own, counts, strict=True) if count[name] == 1), own[-1]) for own in candidates
    ]
    return tuple(_NO_NAME.sub("_", name) or "value" for name in names)


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """What columns are decoded into."""

    types: tuple[EventType, ...]
    per_type: bool
    """Whether each type has a struct member of its own; otherwise there is one type."""
    others_are_null: bool
    """Whether rows of other types are null; otherwise they are errors."""

    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return column_names([each.info for each in self.types])

    def arrow_type(self) -> pa.DataType:
        """Arrow type of the decoded column."""
        kinds = [each.payloads.arrow_type for each in self.types]
        if not self.per_type:
            return kinds[0]
        return pa.struct([pa.field(name, kind) for name, kind in zip(self.names(), kinds, strict=True)])


@dataclass(slots=True)
class _Errors:
    """The errors of a column, put into the order of its rows at the end."""

    found: list[DeserializationError] = field(default_factory=list)

    def among(self, rows: Int64s, encoding_id: int) -> OnError:
        """Takes errors whose row counts among ``rows``."""

        def take(error: DeserializationError) -> None:
            assert error.row is not None
            self.found.append(relocated(error, row=int(rows[error.row]), encoding_id=encoding_id))

        return take

    def add_all(self, rows: Int64s, reason: str, encoding_id: int) -> None:
        self.found += [DeserializationError(reason, row=row, encoding_id=encoding_id) for row in rows.tolist()]

    def add_headerless(self, row: int, event: bytes) -> None:
        try:
            read_header(event)
        except DeserializationError as error:
            self.found.append(relocated(error, row=row))

    def report(self, on_error: OnError | None) -> None:
        self.found.sort(key=lambda error: error.row or 0)
        for error in self.found:
            if on_error is None:
                raise error
            on_error(error)


#: Some rows and their values.
_Part = tuple[Int64s, pa.Array]


def decode_column(column: pa.BinaryArray, columns: ColumnTypes, entries: Entries, on_error: OnError | None) -> pa.Array:
    """The values of a column of events; see :meth:`Serializer.decode_column`."""
    headers, errors = HeaderColumn.of(column), _Errors()
    for row in headers.bad.tolist():
        errors.add_headerless(row, column[row].as_py())
    parts = _Decoder(columns, entries, errors).decode(headers)
    errors.report(on_error)
    kinds = [each.payloads.arrow_type for each in columns.types]
    members = [_scattered(part, len(column), kind) for part, kind in zip(parts, kinds, strict=True)]
    if not columns.per_type:
        return members[0]
    there = np.zeros(len(column), np.bool_)
    for rows, _ in (each for part in parts for each in part):
        there[rows] = True
    for error in errors.found:
        there[error.row] = False
    return pa.StructArray.from_arrays(members, fields=list(columns.arrow_type()), mask=pa.array(~there))


class _Decoder:
    def __init__(self, columns: ColumnTypes, entries: Entries, errors: _Errors) -> None:
        self._columns, self._entries, self._errors = columns, entries, errors

    def decode(self, headers: HeaderColumn) -> list[list[_Part]]:
        """The parts of each type."""
        parts: list[list[_Part]] = [[] for _ in self._columns.types]
        unknown = False
        for encoding_id, rows in headers.groups():
            try:
                # Ids are given out one after the other: behind one that is unknown, all are.
                if unknown:
                    raise UnknownEncodingError(encoding_id)
                found = self._group(encoding_id, rows, headers)
            except UnknownEncodingError as error:
                unknown = True
                self._errors.add_all(rows, error.reason, encoding_id)
                continue
            if found is not None:
                parts[found[0]].append((rows, found[1]))
        return parts

    def _group(self, encoding_id: int, rows: Int64s, headers: HeaderColumn) -> tuple[int, pa.Array] | None:
        """The position of the type of an encoding id, and the values of its rows; None if they have none."""
        entry = self._entries.find(encoding_id)
        if entry.target is None:
            if not self._columns.others_are_null:
                self._errors.add_all(rows, self._no_column(entry.encoding.schema.type), encoding_id)
            return None
        if entry.payloads is None:
            self._errors.add_all(rows, entry.misfit, encoding_id)
            return None
        on_error = self._errors.among(rows, encoding_id)
        return entry.target, entry.read_column(headers.payloads(rows), on_error)

    def _no_column(self, name: str) -> str:
        names = ", ".join(each.info.type for each in self._columns.types)
        return f"the event is of the type {name!r}; the columns are those of {names}"


def _scattered(parts: list[_Part], count: int, kind: pa.DataType) -> pa.Array:
    """The parts' values in their rows; null in the rows of none."""
    if len(parts) == 1 and len(parts[0][0]) == count:
        return parts[0][1]
    place = np.full(count, -1)
    before = 0
    for rows, _ in parts:
        place[rows] = before + np.arange(len(rows))
        before += len(rows)
    values = pa.concat_arrays([pa.nulls(0, kind), *(values for _, values in parts)])
    return values.take(pa.array(place, mask=place < 0))
