"""How every format finds its bad rows, in one place.

A format brings two decoders. The *fast path* takes a whole column and gives its values together with the rows that it
could not, or would rather not, decode: its *suspects*. The *plain path* decodes one event and is the authority: what
it accepts is good, and its error is the row's error. Columns without suspects, nearly all of them, never see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar._arrays import UNFIT, as_binary
from pravega_serde.columnar._bytes import Int64s
from pravega_serde.errors import DeserializationError
from pravega_serde.serializer import OnError

__all__ = ["Attempt", "FastPath", "PlainPath", "bisecting", "chained", "decode_rows"]

#: Below this many rows a fast path that refuses a whole piece is not tried again: its fixed cost is about as high.
_SMALLEST_PIECE: Final = 32

_NO_ROWS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a fast path made of a column."""

    values: pa.Array
    """One value a row; those of the suspects are arbitrary."""
    suspects: Int64s
    """Rows left to the plain path, ascending."""


FastPath = Callable[[pa.BinaryArray], Attempt]


@dataclass(frozen=True, slots=True)
class PlainPath:
    """The decoder of single events, and the Arrow type that its values are made into."""

    read: Callable[[bytes], Any]
    """Value of one event; raises DeserializationError. One that ``pa.array(..., arrow_type)`` refuses is bad, too."""
    arrow_type: pa.DataType


def bisecting(whole: Callable[[pa.BinaryArray], pa.Array], *, refusals: tuple[type[Exception], ...]) -> FastPath:
    """A fast path from a decoder that takes a column or refuses it as a whole.

    A refused piece is halved until the bad rows stand in small pieces, so a few of them cost a few passes.
    """

    def attempt(column: pa.BinaryArray) -> Attempt:
        good: list[pa.Array] = []
        suspects: list[int] = []
        # A stack instead of recursion keeps the order: the left half is pushed last.
        pieces = [(0, len(column))]
        while pieces:
            start, stop = pieces.pop()
            try:
                good.append(whole(column.slice(start, stop - start)))
            except refusals:
                if stop - start > _SMALLEST_PIECE:
                    middle = (start + stop) // 2
                    pieces += [(middle, stop), (start, middle)]
                else:
                    good.append(stop - start)
                    suspects.extend(range(start, stop))
        return Attempt(_join(good), np.array(suspects, np.int64))

    return attempt


def chained(first: FastPath, second: FastPath) -> FastPath:
    """A fast path that gives the first one's suspects to the second before it gives up on them."""

    def attempt(column: pa.BinaryArray) -> Attempt:
        tried = first(column)
        if not len(tried.suspects):
            return tried
        rest = second(column.take(pa.array(tried.suspects)))
        if len(tried.suspects) == len(column):
            return rest
        index = np.arange(len(column))
        index[tried.suspects] = len(column) + np.arange(len(tried.suspects))
        if len(rest.suspects) == len(tried.suspects):
            return tried
        values = pa.concat_arrays([tried.values, rest.values]).take(pa.array(index))
        return Attempt(values, tried.suspects[rest.suspects])

    return attempt


def _join(pieces: list[Any]) -> pa.Array:
    """Concatenate arrays; a number stands for that many rows without a value."""
    kind = next((piece.type for piece in pieces if not isinstance(piece, int)), pa.null())
    return pa.concat_arrays([pa.nulls(p, kind) if isinstance(p, int) else p for p in pieces])


def decode_rows(
    column: pa.Array, *, plain: PlainPath, fast: FastPath | None = None, on_error: OnError | None = None
) -> pa.Array:
    """Decode a column of events; see :meth:`Serializer.decode_column` for nulls and errors."""
    column = as_binary(column)
    if column.null_count == 0:
        return _decode(column, None, plain, fast, on_error)
    rows = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    values = _decode(column.drop_null(), rows, plain, fast, on_error)
    places = np.zeros(len(column), np.int64)
    places[rows] = np.arange(len(rows))
    return values.take(pa.array(places, mask=column.is_null().to_numpy(zero_copy_only=False)))


def _decode(
    column: pa.BinaryArray, rows: Int64s | None, plain: PlainPath, fast: FastPath | None, on_error: OnError | None
) -> pa.Array:
    """Decode a column without nulls, whose element i is the caller's row ``rows[i]`` (i where that is None)."""
    count = len(column)
    nothing = Attempt(pa.nulls(0, plain.arrow_type), np.arange(count))
    attempt = fast(column) if fast is not None and count else nothing
    suspects = attempt.suspects
    if not len(suspects):
        return attempt.values
    places = suspects if rows is None else rows[suspects]
    checked = _read_plainly(column.take(pa.array(suspects)), places, plain, on_error)
    if len(suspects) == count:
        return checked
    index = np.arange(count)
    index[suspects] = count + np.arange(len(suspects))
    return pa.concat_arrays([attempt.values, checked]).take(pa.array(index))


def _read_plainly(column: pa.BinaryArray, places: Int64s, plain: PlainPath, on_error: OnError | None) -> pa.Array:
    values, errors = _each(column, plain.read, all_rows=on_error is not None)
    try:
        array = pa.array(values, plain.arrow_type)
    except UNFIT:
        # Some value is beyond what Arrow can hold: each is tried by itself.
        for row, value in enumerate(values):
            try:
                pa.array([value], plain.arrow_type)
            except UNFIT as error:
                errors[row] = _misfit(value, plain.arrow_type, error)
                values[row] = None
        array = pa.array(values, plain.arrow_type)
    for row in sorted(errors):
        located = _with_row(errors[row], int(places[row]))
        if on_error is None:
            raise located from errors[row]
        on_error(located)
    return array


def _each(
    column: pa.BinaryArray, read: Callable[[bytes], Any], *, all_rows: bool
) -> tuple[list[Any], dict[int, DeserializationError]]:
    """The value of each event, and the errors of those that have none; the first error is the end, but for all rows."""
    values: list[Any] = []
    errors: dict[int, DeserializationError] = {}
    for row, event in enumerate(column.to_pylist()):
        try:
            values.append(read(event))
        except DeserializationError as error:
            errors[row] = error
            values.append(None)
            if not all_rows:
                break
    return values, errors


def _misfit(value: Any, kind: pa.DataType, error: Exception) -> DeserializationError:
    """The error of a value that its Arrow type cannot hold, with the place of the part that does not fit."""
    path = "$"
    while (step := _bad_part(value, kind)) is not None:
        name, value, kind = step
        path += name
    return DeserializationError(f"{str(value)[:80]!r} does not fit {kind}: {error}", field_path=path)


def _bad_part(value: Any, kind: pa.DataType) -> tuple[str, Any, pa.DataType] | None:
    """The first part of a list, map or struct that does not fit its type: its step of a path, itself and its type."""
    for name, part, inner in _parts(value, kind):
        try:
            pa.array([part], inner)
        except UNFIT:
            return name, part, inner
    return None


def _parts(value: Any, kind: pa.DataType) -> Iterator[tuple[str, Any, pa.DataType]]:
    t = pa.types
    if value is None or not t.is_nested(kind):
        return
    if t.is_struct(kind):
        # pa.array takes a tuple, or a dict.
        named = value if isinstance(value, Mapping) else dict(zip((f.name for f in kind), value, strict=False))
        yield from ((f".{field.name}", named.get(field.name), field.type) for field in kind)
    elif t.is_map(kind):
        for key, item in value.items() if isinstance(value, Mapping) else value:
            yield f"[{key!r}]", key, kind.key_type
            yield f"[{key!r}]", item, kind.item_type
    else:
        yield from ((f"[{index}]", item, kind.value_type) for index, item in enumerate(value))


def _with_row(error: DeserializationError, row: int) -> DeserializationError:
    return type(error)(error.reason, field_path=error.field_path, row=row, encoding_id=error.encoding_id)
