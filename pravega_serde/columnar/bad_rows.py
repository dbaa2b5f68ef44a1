"""Bad rows: detection when reading and writing, and the two exceptions that formats use inside.

To read, a format provides two decoders. The *fast path* decodes a whole column. It returns the values and its
*suspects*: the rows that it could not decode, or skipped. The *plain path* decodes one event and is the authority: a
value that it accepts is good, and its error is the row's error. Nearly all columns have no suspects and never reach the
plain path.

To write, a format provides a function that accepts any slice of a column; see :func:`written`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.arrays import Int64s, as_binary, select, valid_rows
from pravega_serde.errors import DeserializationError, LimitExceededError, SerializationError
from pravega_serde.serializer_interface import OnError

#: Raised by Arrow, and by Python's own types, for values that do not fit a type.
UNFIT: Final = (pa.ArrowException, ArithmeticError, TypeError, ValueError)


class MalformedError(ValueError):
    """Invalid bytes, or an invalid value, inside an event. Callers add its path as it propagates."""

    def __init__(self, reason: str, *, limit: bool = False) -> None:
        """With ``limit``, the value is valid so far, but exceeds a limit."""
        super().__init__(reason)
        self.reason, self.limit = reason, limit
        self.path: list[str] = []

    def within(self, step: str) -> MalformedError:
        """Add the step of the enclosing value to the path, and return the error."""
        self.path.append(step)
        return self

    def field_path(self) -> str:
        """Return the path of the bad value: ``$.a[0].b``."""
        return "$" + "".join(reversed(self.path))

    def in_event(self, what: str) -> DeserializationError:
        """Return the error of an event of ``what``: a :class:`LimitExceededError` if it exceeds a limit."""
        if self.limit:
            return LimitExceededError(self.reason, field_path=self.field_path())
        return DeserializationError(f"invalid {what}: {self.reason}", field_path=self.field_path())

    def in_value(self, what: str) -> SerializationError:
        """Return the error of a value that cannot be written as ``what``."""
        return SerializationError(f"cannot write as {what}: {self.reason}", field_path=self.field_path())


def invalid(what: str, value: object) -> MalformedError:
    """Return the error of a value that is not ``what``."""
    text = repr(value)
    return MalformedError(f"invalid {what}: {text if len(text) < 60 else text[:57] + '...'} ({type(value).__name__})")


def raw_bytes(value: Any) -> bytes:
    """Return a bytes-like value as bytes; raise MalformedError for other values."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise invalid("bytes", value)
    return bytes(value)


def invalid_utf8(error: UnicodeDecodeError) -> MalformedError:
    """Return the error of the bytes of a string."""
    return MalformedError(f"invalid UTF-8 at byte {error.start} of the string")


def has_surrogate(text: str) -> bool:
    """Return True if a text has an unpaired surrogate, which JSON can escape but UTF-8 and Arrow cannot have."""
    return not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text)


def lone_surrogate() -> MalformedError:
    """Return the error of a text that has no UTF-8."""
    return MalformedError("an unpaired surrogate cannot be written as UTF-8")


def in_utc(value: datetime) -> datetime:
    """Return the time in UTC, without a time zone, of a datetime with one. Raises MalformedError beyond the years."""
    try:
        return value.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise MalformedError(f"{value} is beyond the years 1 to 9999 in UTC") from None


class FallbackError(Exception):
    """Error of a fast path that cannot read or write something.

    The plain path then does it, or raises the error that names the fault.
    """


#: Number of rows below which a fast path that refuses a whole piece is not retried: its fixed cost is about as high.
_SMALLEST_PIECE: Final = 32

#: Rows whose Python values exist at once while they are read one by one.
_ROWS_AT_ONCE: Final = 4096

_NO_ROWS: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Attempt:
    """Result of a fast path."""

    values: pa.Array
    """One value a row; those of the suspects are arbitrary."""
    suspects: Int64s
    """Rows left to the plain path, ascending."""


FastPath = Callable[[pa.BinaryArray], Attempt]


@dataclass(frozen=True, slots=True)
class PlainPath:
    """Decoder of single events, and the Arrow type of its values."""

    read: Callable[[bytes], Any]
    """Value of one event; raises DeserializationError. A value that ``arrow_type`` cannot hold is bad, too."""
    arrow_type: pa.DataType


def bisecting(whole: Callable[[pa.BinaryArray], pa.Array], *, refusals: tuple[type[Exception], ...]) -> FastPath:
    """Return a fast path from a decoder that accepts a column or refuses it as a whole.

    A refused piece is halved until the bad rows are in small pieces, so a few bad rows cost a few passes.
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


def _join(pieces: list[Any]) -> pa.Array:
    """Concatenate arrays; a number means that many rows without a value."""
    kind = next((piece.type for piece in pieces if not isinstance(piece, int)), pa.null())
    return pa.concat_arrays([pa.nulls(p, kind) if isinstance(p, int) else p for p in pieces])


def decode_rows(
    column: pa.Array, *, plain: PlainPath, fast: FastPath | None = None, on_error: OnError | None = None
) -> pa.Array:
    """Decode a column of events; see :meth:`Serializer.decode_column` for nulls and errors."""
    column = as_binary(column)
    if column.null_count == 0:
        return _decode(column, None, plain, fast, on_error)
    valid = valid_rows(column)
    rows = np.flatnonzero(valid)
    values = _decode(column.drop_null(), rows, plain, fast, on_error)
    places = np.zeros(len(column), np.int64)
    places[rows] = np.arange(len(rows))
    return select(values, places, valid=valid)


def _decode(
    column: pa.BinaryArray, rows: Int64s | None, plain: PlainPath, fast: FastPath | None, on_error: OnError | None
) -> pa.Array:
    """Decode a column without nulls. Element i is the row ``rows[i]`` of the caller, or i if ``rows`` is None."""
    count = len(column)
    nothing = Attempt(pa.nulls(0, plain.arrow_type), np.arange(count))
    attempt = fast(column) if fast is not None and count else nothing
    suspects = attempt.suspects
    if not len(suspects):
        return attempt.values
    places = suspects if rows is None else rows[suspects]
    checked = _read_plainly(select(column, suspects), places, plain, on_error)
    if len(suspects) == count:
        return checked
    index = np.arange(count)
    index[suspects] = count + np.arange(len(suspects))
    return select(pa.concat_arrays([attempt.values, checked]), index)


def _read_plainly(column: pa.BinaryArray, places: Int64s, plain: PlainPath, on_error: OnError | None) -> pa.Array:
    pieces = [slice(start, start + _ROWS_AT_ONCE) for start in range(0, max(len(column), 1), _ROWS_AT_ONCE)]
    return pa.concat_arrays([_read_piece(column[piece], places[piece], plain, on_error) for piece in pieces])


def _read_piece(column: pa.BinaryArray, places: Int64s, plain: PlainPath, on_error: OnError | None) -> pa.Array:
    values, errors = _each(column, plain.read, all_rows=on_error is not None)
    try:
        array = pa.array(values, plain.arrow_type)
    except UNFIT:
        # Arrow cannot hold some value: convert each one separately.
        for row, value in enumerate(values):
            try:
                pa.array([value], plain.arrow_type)
            except UNFIT as error:
                errors[row] = _misfit(value, plain.arrow_type, error)
                values[row] = None
        array = pa.array(values, plain.arrow_type)
    for row in sorted(errors):
        located = relocated(errors[row], row=int(places[row]))
        if on_error is None:
            raise located from errors[row]
        on_error(located)
    return array


def _each(
    column: pa.BinaryArray, read: Callable[[bytes], Any], *, all_rows: bool
) -> tuple[list[Any], dict[int, DeserializationError]]:
    """Return the values of events, and the errors by row. Stop at the first error, unless ``all_rows``."""
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
            # Thousands of tracebacks, with all their frames, keep the garbage collector busy.
            error.__cause__ = error.__context__ = error.__traceback__ = None
    return values, errors


def _misfit(value: Any, kind: pa.DataType, error: Exception) -> DeserializationError:
    """Return the error of a value that its Arrow type cannot hold, with the path of the part that does not fit."""
    path = "$"
    while (step := _bad_part(value, kind)) is not None:
        name, value, kind = step
        path += name
    return DeserializationError(f"{str(value)[:80]!r} does not fit {kind}: {error}", field_path=path)


def _bad_part(value: Any, kind: pa.DataType) -> tuple[str, Any, pa.DataType] | None:
    """Return the first part of a list, map or struct that does not fit its type, or None.

    The result is the step of the path, the part and its type.
    """
    for name, part, inner in _parts(value, kind):
        try:
            pa.array([part], inner)
        except UNFIT:
            return name, part, inner
    return None


_PAIR: Final = 2


def _parts(value: Any, kind: pa.DataType) -> Iterator[tuple[str, Any, pa.DataType]]:
    t = pa.types
    if not isinstance(value, Mapping | list | tuple) or not t.is_nested(kind):
        return
    if t.is_struct(kind):
        # pa.array accepts a tuple, or a dict.
        named = value if isinstance(value, Mapping) else dict(zip((f.name for f in kind), value, strict=False))
        yield from ((f".{field.name}", named.get(field.name), field.type) for field in kind)
    elif t.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        for key, item in (pair for pair in pairs if isinstance(pair, tuple) and len(pair) == _PAIR):
            yield f"[{key!r}]", key, kind.key_type
            yield f"[{key!r}]", item, kind.item_type
    else:
        yield from ((f"[{index}]", item, kind.value_type) for index, item in enumerate(value))


def relocated(error: DeserializationError, *, row: int | None, encoding_id: int | None = None) -> DeserializationError:
    """Return the same error for another row, or for an encoding."""
    known = error.encoding_id if encoding_id is None else encoding_id
    return type(error)(error.reason, field_path=error.field_path, row=row, encoding_id=known)


def written(column: pa.Array, write: Callable[[pa.Array], pa.BinaryArray]) -> pa.BinaryArray:
    """Return the events of a column; :class:`SerializationError` names the row of a value that cannot be written.

    ``write`` accepts any slice of the column. It need not know rows: halving finds the first bad one.
    """
    try:
        return write(column)
    except SerializationError as error:
        if error.row is not None:
            raise
        refused: Exception = error
    except UNFIT as error:
        refused = error
    row = _first_refused(column, write)
    if row is None:
        raise SerializationError(f"the column cannot be written as a whole: {refused}") from refused
    raise row from refused


def _first_refused(column: pa.Array, write: Callable[[pa.Array], pa.BinaryArray]) -> SerializationError | None:
    """Return the error of the first row that cannot be written, or None."""
    start, stop = 0, len(column)
    while stop > start:
        middle = (start + stop + 1) // 2
        try:
            write(column.slice(start, middle - start))
        except (SerializationError, *UNFIT) as error:
            if middle - start == 1:
                found = error if isinstance(error, SerializationError) else SerializationError(str(error))
                return found.in_row(start)
            stop = middle
        else:
            start = middle
    return None


def per_row(values: Iterable[Any], write: Callable[[Any], bytes]) -> pa.BinaryArray:
    """Write a column value by value. A null stays null, and an error names the row."""
    events: list[bytes | None] = []
    for row, value in enumerate(values):
        try:
            events.append(None if value is None else write(value))
        except SerializationError as error:
            raise error.in_row(row) from error
    return pa.array(events, pa.binary())
