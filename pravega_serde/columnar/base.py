"""Base of the serializers that have columns, and of their writers.

A format provides, for its schema, two ways to read columns and two to write them. This module documents, for every
serializer, which one is used and how bad rows are found.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from pravega_serde.columnar.arrays import as_binary, as_column, expand, valid_rows, without_views
from pravega_serde.columnar.bad_rows import FallbackError, FastPath, PlainPath, decode_rows, per_row, written
from pravega_serde.columnar.checks import write_check
from pravega_serde.columnar.lowering import Lower
from pravega_serde.columnar.pieces import Piece, assemble
from pravega_serde.columnar.types import contains
from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.serializer_interface import OnError, SerializerCalls

#: Number of rows from which the fast paths always read and write a column.
FEW_ROWS: Final = 64

#: Bytes of events that are best read together if items are read in rounds, one item of every row in each round. A
#: round costs the same for ten rows as for hundreds. (Avro's orders with lists of up to 300: each order of 64,000 at
#: once needs two thirds of the time of an order of 4,000.)
_BYTES_IN_ROUNDS: Final = 8 << 20

#: Writes any slice of a column; see :func:`pravega_serde.columnar.written` for what it may raise.
Write = Callable[[pa.Array], pa.BinaryArray]


def _few_rows(kind: pa.DataType, flat: int) -> int:
    """Number of rows below which a column is read or written by row, since the fixed cost of a fast path is higher.

    ``flat`` is that number for structs of leaves. Lists, maps and structs inside increase the cost of a fast path more
    than the cost of a row. Measured, they break even at twice as many rows or more.
    """
    nested = pa.types.is_struct(kind) and any(pa.types.is_nested(entry.type) for entry in kind)
    return 2 * flat if nested else flat


def columns_type(given: Any) -> pa.DataType:
    """Return the type of events from a type or a schema of columns. Raise SchemaError for anything else."""
    if isinstance(given, pa.Schema):
        return pa.struct(list(given))
    if not isinstance(given, pa.DataType):
        raise SchemaError(
            f"arrow_type must be a pyarrow.Schema or a pyarrow.DataType, not a {type(given).__name__}: "
            "pyarrow.schema(…), pyarrow.Schema.from_pandas(frame), or frame.to_arrow().schema of polars"
        )
    return given


def no_columns(format_name: str) -> SchemaError:
    """Return the error for a format that must read columns, but has no type for them."""
    return SchemaError(
        f"{format_name.upper()} does not define its columns: pass a pyarrow.Schema to serializer_for({format_name!r}, "
        "arrow_type=…), or the type of values that were read, pyarrow.array(values).type"
    )


class ColumnReader:
    """Reader of columns. It uses a fast path if there is one and it pays off."""

    def __init__(self, plain: PlainPath, fast: FastPath | None, *, few: int = 0) -> None:
        """``few`` is the number of rows of a struct of leaves below which the plain path is faster."""
        self.plain, self.fast = plain, fast
        self._few = _few_rows(plain.arrow_type, few)

    def __call__(self, column: pa.Array, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events; see :meth:`Serializer.decode_column`."""
        column = as_binary(column)
        fast = None if len(column) < min(self._few, FEW_ROWS) else self.fast
        return decode_rows(column, plain=self.plain, fast=fast, on_error=on_error)


class ColumnWriter:
    """Writer of columns of any type that fits. Each type is prepared once."""

    def __init__(self, prepare: Callable[[pa.DataType], Write]) -> None:
        """``prepare`` returns the writer of a type's columns, or raises :class:`SchemaError`."""
        self._prepare = prepare
        self._prepared: dict[pa.DataType, Write] = {}

    def check(self, kind: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type does not fit."""
        if kind not in self._prepared:
            self._prepared[kind] = _checked(kind, self._prepare)

    def __call__(self, column: pa.Array) -> pa.BinaryArray:
        """Return the events of a column; those of null rows are null."""
        self.check(column.type)
        return written(column, self._prepared[column.type])


def _checked(kind: pa.DataType, prepare: Callable[[pa.DataType], Write]) -> Write:
    """Return the writer of a type. It raises :class:`SerializationError` for values that no format writes."""
    plain = without_views(kind)
    write, check = prepare(plain), write_check(plain)

    def checked(column: pa.Array) -> pa.BinaryArray:
        column = column if plain == kind else column.cast(plain)
        if check is not None and (fault := check(column)) is not None:
            path, reason = fault
            raise SerializationError(reason, field_path=f"${path}")
        return write(column)

    return checked


class ColumnSerializer(SerializerCalls, ABC):
    """Base of a serializer with columns. A subclass has ``arrow_type``, ``serialize`` and ``deserialize``.

    It reads and writes columns row by row. A subclass with a faster way for whole columns overrides ``_make_reader`` or
    ``_make_writer``. They are called once, for the first column.
    """

    @abstractmethod
    def _arguments(self) -> Mapping[str, Any]:
        """Return the arguments that create an equal serializer.

        The serializer is pickled as these arguments. Its repr shows those that are not None.
        """

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column; raise :class:`SchemaError` if it is unknown."""

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return the event of one value. Raises :class:`SerializationError`."""

    @abstractmethod
    def deserialize(self, data: bytes) -> Any:
        """Return the value of one event. Raises :class:`DeserializationError`."""

    def _make_reader(self) -> ColumnReader:
        """Return the reader of columns; raise :class:`SchemaError` if there can be none."""
        return ColumnReader(PlainPath(self.deserialize, self.arrow_type), None)

    def _make_writer(self) -> ColumnWriter:
        """Return the writer of columns; raise :class:`SchemaError` if there can be none."""
        return ColumnWriter(lambda _kind: lambda column: per_row(column.to_pylist(), self.serialize))

    @cached_property
    def column_reader(self) -> ColumnReader:
        """Reader of columns of events."""
        return self._make_reader()

    @cached_property
    def column_writer(self) -> ColumnWriter:
        """Writer of columns of events."""
        return self._make_writer()

    @property
    def bytes_at_once(self) -> int:
        """Number of bytes of events that are best decoded together, if that many exist.

        0 if the number makes no difference.
        """
        return 0

    @property
    def never_null(self) -> frozenset[str]:
        """Fields of a struct that are null in no value that an event decodes to."""
        return frozenset()

    def text_fault(self, path: Sequence[str]) -> str | None:
        """Return the reason why a string or bytes field cannot hold every text or all bytes; None if it can.

        ``path`` has the names of fields. Lists and maps on the way have no name.
        """
        return None

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type can never be encoded."""
        self.column_writer.check(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column. For records, pass a column of structs, or a batch.

        A null row stays null.
        """
        return self.column_writer(as_column(column))

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Return the values of a column of events, in :attr:`arrow_type`.

        See :meth:`Serializer.decode_column` for errors.
        """
        return self.column_reader(column, on_error)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self._arguments()))

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._arguments().items() if value is not None]
        return f"{type(self).__name__}({', '.join(shown)})"


def bytes_at_once(kind: pa.DataType) -> int:
    """:attr:`ColumnSerializer.bytes_at_once` of a format that reads the items of lists and maps in rounds."""
    return _BYTES_IN_ROUNDS if contains(kind, "items", "entries") else 0


def _rebuild(kind: type[Any], arguments: dict[str, Any]) -> Any:
    return kind(**arguments)


#: Rows whose temporaries still fit the processor's cache.
_ROWS_AT_ONCE: Final = 16_384


class StagedWriter(ColumnWriter):
    """Writer of columns through storage: with a compiled writer, with numpy, or row by row."""

    def __init__(
        self,
        *,
        lowering: Callable[[pa.DataType], Lower],
        pieces: Callable[[pa.Array], list[Piece]],
        write_row: Callable[[Any], bytes],
        compiled: Callable[[pa.Array], pa.BinaryArray | None] | None,
        few: int = 0,
    ) -> None:
        """``pieces`` returns the pieces of storage without nulls, or raises :class:`FallbackError`.

        ``few`` is the number of rows of a struct of leaves below which writing row by row is faster.
        """
        super().__init__(self._staged)
        self._lowering, self._pieces, self._write_row, self._compiled = lowering, pieces, write_row, compiled
        self._few = few

    def _staged(self, kind: pa.DataType) -> Write:
        lower, few = self._lowering(kind), _few_rows(kind, self._few)

        def write(column: pa.Array) -> pa.BinaryArray:
            stored = lower(column)
            return self.plain(stored) if len(stored) < min(few, FEW_ROWS) else self._by_column(stored)

        return write

    def stored(self, column: pa.Array) -> pa.Array:
        """Return the storage form of a column."""
        return self._lowering(column.type)(column)

    def _by_column(self, stored: pa.Array) -> pa.BinaryArray:
        events = self.compiled(stored)
        if events is not None:
            return events
        try:
            pieces = range(0, len(stored), _ROWS_AT_ONCE) if len(stored) else range(1)
            return pa.concat_arrays([self.fast(stored.slice(start, _ROWS_AT_ONCE)) for start in pieces])
        except FallbackError:
            return self.plain(stored)

    def compiled(self, stored: pa.Array) -> pa.BinaryArray | None:
        """Write a column with the compiled writer; return None if it does not support the schema or the column."""
        return None if self._compiled is None else self._compiled(stored)

    def plain(self, stored: pa.Array) -> pa.BinaryArray:
        """Write row by row; :class:`SerializationError` names the row and field."""
        return per_row(stored.to_pylist(), self._write_row)

    def fast(self, stored: pa.Array) -> pa.BinaryArray:
        """Write all rows at once."""
        if stored.null_count == 0:
            return assemble(self._pieces(stored), len(stored))
        there = stored.drop_null()
        return expand(assemble(self._pieces(there), len(there)), valid_rows(stored))


def unless_refused(call: Callable[[], Any]) -> Any:
    """Return the result of a compiled library; None if it refuses or panics."""
    try:
        return call()
    except Exception:  # noqa: BLE001 -- after any error the other path writes the column, or reports the fault
        return None
    except BaseException as error:
        # Rust's panics are not Exceptions, and their class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None
