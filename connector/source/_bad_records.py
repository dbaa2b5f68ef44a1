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


def corrupt_names(record: str) -> tuple[str, str]:
    """Names of the two columns, from the name of the first."""
    return record, f"{record}_error"


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded column; bad rows are null in ``values`` and have an error each, in the order of the rows."""

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


def decode(serializer: Serializer[Any], events: pa.BinaryArray, mode: str, locate: Locate) -> Decoded:
    """Decode a column. In FAILFAST the first bad row raises its error; ``locate`` adds where the event is."""
    errors: list[DeserializationError] = []
    if mode != "FAILFAST":
        values = serializer.decode_column(events, on_error=lambda error: errors.append(locate(error)))
        return Decoded(events, values, errors)
    try:
        return Decoded(events, serializer.decode_column(events), errors)
    except DeserializationError as error:
        raise locate(error) from None
