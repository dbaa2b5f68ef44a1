"""Columns decoded in Spark's three modes for records that cannot be: FAILFAST, PERMISSIVE, DROPMALFORMED."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde import DeserializationError, Serializer

__all__ = ["CORRUPT_RECORD", "CORRUPT_TYPES", "Decoded", "corrupt_names", "decode"]

#: What Spark calls the column of bad records by default.
CORRUPT_RECORD: Final = "_corrupt_record"
#: Types of the two columns that tell about a bad record: the record, and why it could not be decoded.
CORRUPT_TYPES: Final = (pa.binary(), pa.string())

Locate = Callable[[DeserializationError], DeserializationError]
Check = Callable[["Decoded"], list[DeserializationError]]


def corrupt_names(record: str) -> tuple[str, str]:
    """Names of the two columns, from the name of the first."""
    return record, f"{record}_error"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded column; bad rows are null in ``values`` and have an error each."""

    events: pa.BinaryArray
    values: pa.Array
    errors: list[DeserializationError]

    def bad(self) -> npt.NDArray[np.bool_]:
        """Which rows could not be decoded."""
        bad = np.zeros(len(self.events), bool)
        bad[[error.row for error in self.errors if error.row is not None]] = True
        return bad

    def records(self) -> pa.BinaryArray:
        """The events of the bad rows; null in all others."""
        if not self.errors:
            return pa.nulls(len(self.events), CORRUPT_TYPES[0])
        return pc.if_else(pa.array(self.bad()), self.events, pa.scalar(None, CORRUPT_TYPES[0]))

    def reasons(self, tell: Callable[[DeserializationError], str] = str) -> pa.StringArray:
        """The errors' texts; null in the rows that are good."""
        if not self.errors:
            return pa.nulls(len(self.events), CORRUPT_TYPES[1])
        texts: list[str | None] = [None] * len(self.events)
        for error in self.errors:
            if error.row is not None:
                texts[error.row] = tell(error)
        return pa.array(texts, CORRUPT_TYPES[1])


def decode(
    serializer: Serializer[Any], events: pa.BinaryArray, mode: str, locate: Locate, check: Check | None = None
) -> Decoded:
    """Decode a column. In FAILFAST the first bad row raises its error; ``locate`` adds where the event is.

    ``check`` says what is bad about rows that could be decoded.
    """
    errors: list[DeserializationError] = []
    if mode == "FAILFAST":
        try:
            values = serializer.decode_column(events)
        except DeserializationError as error:
            raise locate(error) from None
    else:
        values = serializer.decode_column(events, on_error=lambda error: errors.append(locate(error)))
    found = Decoded(events, values, errors)
    return found if check is None else _checked(found, check(found), mode, locate)


def _checked(found: Decoded, more: list[DeserializationError], mode: str, locate: Locate) -> Decoded:
    """The same, with the rows null that have errors only now."""
    bad = found.bad()
    first = {error.row: error for error in reversed(more) if error.row is not None and not bad[error.row]}
    if not first:
        return found
    if mode == "FAILFAST":
        raise locate(first[min(first)])
    rows = np.arange(len(found.events))
    values = found.values.take(pa.array(rows, mask=np.isin(rows, list(first))))
    return Decoded(found.events, values, [*found.errors, *map(locate, first.values())])
