"""How columns are written in the formats that put events together from pieces: storage form, pieces, events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa

from pravega_serde.columnar._arrays import per_row, written
from pravega_serde.columnar.pieces import Piece, assemble

__all__ = ["Lower", "StagedWriter", "Unwritable", "unless_refused"]

#: Brings a column into storage form.
Lower = Callable[[pa.Array], pa.Array]

#: Rows whose temporaries still fit the processor's cache.
_ROWS_AT_ONCE: Final = 16_384


class Unwritable(Exception):  # noqa: N818 -- it never leaves a serializer
    """A value stops the fast path; the plain path writes the column, or says what is wrong."""


class StagedWriter:
    """Writes columns: by a compiled writer, by numpy, or row by row. Types are checked once each."""

    def __init__(
        self,
        *,
        lowering: Callable[[pa.DataType], Lower],
        pieces: Callable[[pa.Array], list[Piece]],
        write_row: Callable[[Any], bytes],
        compiled: Callable[[pa.Array], pa.BinaryArray | None] | None,
    ) -> None:
        """``pieces`` gives those of storage without nulls, or raises :class:`Unwritable`."""
        self._lowering, self._pieces, self._write_row, self._compiled = lowering, pieces, write_row, compiled
        self._lowerings: dict[pa.DataType, Lower] = {}

    def check(self, kind: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type does not fit."""
        if kind not in self._lowerings:
            self._lowerings[kind] = self._lowering(kind)

    def __call__(self, column: pa.Array) -> pa.BinaryArray:
        """The events of a column; those of null rows are null."""
        self.check(column.type)
        return written(column, self._events)

    def _events(self, column: pa.Array) -> pa.BinaryArray:
        stored = self._lowerings[column.type](column)
        events = self.compiled(stored)
        if events is not None:
            return events
        try:
            pieces = range(0, len(stored), _ROWS_AT_ONCE) if len(stored) else range(1)
            return pa.concat_arrays([self.fast(stored.slice(start, _ROWS_AT_ONCE)) for start in pieces])
        except Unwritable:
            return self.plain(stored)

    def compiled(self, stored: pa.Array) -> pa.BinaryArray | None:
        """By the compiled writer; None if there is none for this schema, or none for this column."""
        return None if self._compiled is None else self._compiled(stored)

    def plain(self, stored: pa.Array) -> pa.BinaryArray:
        """Row by row; :class:`SerializationError` names the row and field."""
        return per_row(stored.to_pylist(), self._write_row)

    def fast(self, stored: pa.Array) -> pa.BinaryArray:
        """All rows at once."""
        if stored.null_count == 0:
            return assemble(self._pieces(stored), len(stored))
        present = stored.is_valid().to_numpy(zero_copy_only=False)
        there = stored.drop_null()
        events = assemble(self._pieces(there), len(there))
        return events.take(pa.array(np.cumsum(present) - 1, mask=~present))


def unless_refused(call: Callable[[], Any]) -> Any:
    """The result of a compiled library; None if it refuses or panics."""
    try:
        return call()
    except Exception:  # noqa: BLE001 -- whatever it raises, the other path writes the column, or says what is wrong
        return None
    except BaseException as error:
        # Rust's panics are no Exceptions, and their class cannot be imported.
        if type(error).__name__ != "PanicException":
            raise
        return None
