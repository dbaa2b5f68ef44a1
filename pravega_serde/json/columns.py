"""Reading by column: msgspec decodes each event into a struct for the Arrow type, and the structs become columns.

This is the fast path of :func:`~pravega_serde.columnar.decode_rows`, and its values equal those of the plain path.
Events that it refuses, or cannot read in bounded time and memory, are left to the plain path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple

from pravega_serde.columnar import Attempt, FastPath, MalformedError
from pravega_serde.columnar.arrays import offsets_of
from pravega_serde.columnar.building import (
    Build,
    build_decimals,
    build_list,
    build_map,
    build_rows,
    build_scalars,
    build_struct,
    millis,
    parse_times,
)
from pravega_serde.columnar.limits import ItemLimit
from pravega_serde.columnar.types import family, integer_bounds
from pravega_serde.json.rows import LONG_EVENT, is_slow

#: Rows whose objects still fit the processor's cache.
_ROWS_AT_ONCE: Final = 4096

#: Maximum number of rows that are left to the plain path because the values of one of them do not fit.
_SMALLEST_PIECE: Final = 32

_NO_ROWS: Final = np.empty(0, np.int64)

#: Number of fields of a struct above which values are read field by field: all at once would need too much memory.
_MANY: Final = 64

#: Characters that msgspec cannot have in the name of a field.
_UNNAMEABLE: Final = frozenset(map(chr, range(32))) | {'"', "\\"}

#: Raised by msgspec, Arrow and Python's own types for events and values that they refuse; Arrow's and
#: MalformedError are ValueErrors.
_REFUSALS: Final = (msgspec.MsgspecError, ArithmeticError, RecursionError, ValueError)


def column_reader(kind: pa.DataType, *, closed: bool = False) -> FastPath | None:
    """Return the fast path for an Arrow type, or None if msgspec cannot read the type.

    Events of such a type are read one at a time. If ``closed``, events with other members are suspects.
    """
    spec = _spec(kind, closed)
    return None if spec is None else _ColumnReader(kind, spec)


class _ColumnReader:
    def __init__(self, kind: pa.DataType, spec: Any) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(spec).decode
        self._build = _builder(kind)
        self._limit = ItemLimit(kind)

    def __call__(self, column: pa.BinaryArray) -> Attempt:
        arrays: list[pa.Array] = []
        suspects: list[int] = []
        for start in range(0, len(column), _ROWS_AT_ONCE):
            values, refused = self._values(column.slice(start, _ROWS_AT_ONCE))
            suspects += [start + row for row in refused]
            suspects += build_rows(
                self._build,
                self._kind,
                values,
                start=start,
                smallest=_SMALLEST_PIECE,
                refusals=_REFUSALS,
                arrays=arrays,
            )
        values = arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)
        return Attempt(values, np.unique(np.array(suspects, np.int64)) if suspects else _NO_ROWS)

    def _values(self, column: pa.BinaryArray) -> tuple[list[Any], list[int]]:
        """Return the decoded events, None for each refused one, and the rows of the refused ones."""
        events = column.to_pylist()
        longest = int(np.diff(offsets_of(column)).max())
        try:
            # msgspec does not validate the text that it skips.
            column.view(pa.string()).validate(full=True)
            if longest > LONG_EVENT or self._limit.concerns(longest, longest):
                for event in events:
                    self._check_cost(event)
            return list(map(self._decode, events)), []
        except _REFUSALS:
            return self._one_by_one(events)

    def _one_by_one(self, events: Sequence[bytes]) -> tuple[list[Any], list[int]]:
        values: list[Any] = []
        refused: list[int] = []
        for row, event in enumerate(events):
            value = None
            try:
                self._check_cost(event)
                value = self._decode(event.decode())
            except _REFUSALS:
                refused.append(row)
            values.append(value)
        return values, refused

    def _check_cost(self, event: bytes) -> None:
        # An item that becomes a struct is an object or null; any other is an error.
        items = event.count(b"{") + event.count(b"null")
        # Until the columns are built, a list of all values exists, too: half as much again.
        if is_slow(event) or self._limit.concerns(items + items // 2, len(event)):
            raise MalformedError("takes msgspec too much time or memory")


def _spec(kind: pa.DataType, closed: bool) -> Any:
    """Return the Python type, including None, for msgspec to decode an Arrow type into; None if none exists."""
    required = _required(kind, closed)
    return None if required is None else required | None


def _required(kind: pa.DataType, closed: bool) -> Any:
    name = family(kind)
    if name == "integer":
        low, high = integer_bounds(kind)
        # msgspec has bounds of 64 bits with a sign; pyarrow checks those of uint64.
        return Annotated[int, msgspec.Meta(ge=low, le=high)] if high < 1 << 63 else int
    if name == "items":
        inner = _spec(kind.value_type, closed)
        return inner and list[inner]  # type: ignore[valid-type]
    if name == "entries":
        inner = _spec(kind.item_type, closed)
        return inner and dict[str, inner]  # type: ignore[valid-type]
    if name == "fields":
        return _struct(kind, closed)
    return _SCALARS.get(name)


_SCALARS: Final[Mapping[str, Any]] = {
    "null": type(None),
    "boolean": bool,
    "floating": float,
    "text": str,
    "binary": bytes,
    "date": str,
    "timestamp": str | int,
    "decimal": Decimal,
}


def _struct(kind: pa.DataType, closed: bool) -> Any:
    names = [entry.name for entry in kind]
    specs = [_spec(entry.type, closed) for entry in kind]
    if None in specs or len(set(names)) < len(names) or any(_UNNAMEABLE & set(name) for name in names):
        return None
    fields = [(f"f{index}", spec, None) for index, spec in enumerate(specs)]
    rename = {f"f{index}": name for index, name in enumerate(names)}
    # They have no cycles, so the garbage collector need not track them.
    return msgspec.defstruct("Event", fields, rename=rename, gc=False, forbid_unknown_fields=closed)


def _builder(kind: pa.DataType) -> Build:
    make = _BUILDERS.get(family(kind))
    return (lambda values: build_scalars(values, kind)) if make is None else make(kind)


def _build_struct(kind: pa.DataType) -> Build:
    makes = [_builder(entry.type) for entry in kind]
    getters = [attrgetter(f"f{index}") for index in range(len(makes))]

    def columns(there: Sequence[Any]) -> list[pa.Array]:
        if len(makes) > _MANY:
            return [make(list(map(get, there))) for get, make in zip(getters, makes, strict=True)]
        flat = list(chain.from_iterable(map(astuple, there)))
        return [make(flat[index :: len(makes)]) for index, make in enumerate(makes)]

    return lambda values: build_struct(values, kind, columns)


def _build_list(kind: pa.DataType) -> Build:
    make = _builder(kind.value_type)
    return lambda values: build_list(values, kind, make)


def _build_map(kind: pa.DataType) -> Build:
    make = _builder(kind.item_type)
    return lambda values: build_map(values, kind, lambda keys: build_scalars(keys, pa.string()), make)


def _build_times(kind: pa.DataType) -> Build:
    def build(values: Sequence[Any]) -> pa.Array:
        if not any(isinstance(value, int) for value in values):
            return parse_times(build_scalars(values, pa.string()), kind)
        texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
        numbers = pa.array([millis(value) if isinstance(value, int) else None for value in values], kind)
        return pc.coalesce(numbers, parse_times(texts, kind))

    return build


_BUILDERS: Final[Mapping[str, Callable[[pa.DataType], Build]]] = {
    "fields": _build_struct,
    "items": _build_list,
    "entries": _build_map,
    "date": _build_times,
    "timestamp": _build_times,
    "decimal": build_decimals,
}
