"""Numbers of all kinds: how they stand in an event, in numpy and in Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.columnar.arrays import UInt64s
from pravega_serde.protobuf._arrow import UINT64

__all__ = ["FIXED32", "FIXED64", "LENGTH", "NUMBERS", "VARINT", "Number"]

#: Wire types.
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5

Values = npt.NDArray[Any]

_U: Final = np.uint64


@dataclass(frozen=True, slots=True)
class Number:
    """One kind of number."""

    wire: int
    dtype: type[np.generic]
    decode: Callable[[UInt64s], Values]
    """From 64 bits, of which those beyond a fixed size are arbitrary."""
    to_arrow: Callable[[Values], pa.Array]


def _int32(x: UInt64s) -> Values:
    return x.astype(np.int32)


def _int64(x: UInt64s) -> Values:
    return x.view(np.int64)


def _uint32(x: UInt64s) -> Values:
    return (x & _U(0xFFFFFFFF)).view(np.int64)


def _sint32(x: UInt64s) -> Values:
    low = x.astype(np.uint32)
    return ((low >> np.uint32(1)) ^ (~(low & np.uint32(1)) + np.uint32(1))).view(np.int32)


def _sint64(x: UInt64s) -> Values:
    sign = (x & _U(1)).view(np.int64)
    return (x >> _U(1)).view(np.int64) ^ -sign


def _decimal(values: Values) -> pa.Array:
    """Unsigned numbers of 64 bits as decimals: two words each, the upper one zero."""
    words = np.zeros((len(values), 2), _U)
    words[:, 0] = values
    return pa.Array.from_buffers(UINT64, len(values), [None, pa.py_buffer(words)])


NUMBERS: Final[Mapping[str, Number]] = {
    "bool": Number(VARINT, np.bool_, lambda x: x != 0, pa.array),
    "double": Number(FIXED64, np.float64, lambda x: x.view(np.float64), pa.array),
    "enum": Number(VARINT, np.int32, _int32, pa.array),
    "fixed32": Number(FIXED32, np.int64, _uint32, pa.array),
    "fixed64": Number(FIXED64, np.uint64, lambda x: x, _decimal),
    "float": Number(FIXED32, np.float32, lambda x: x.astype(np.uint32).view(np.float32), pa.array),
    "int32": Number(VARINT, np.int32, _int32, pa.array),
    "int64": Number(VARINT, np.int64, _int64, pa.array),
    "sfixed32": Number(FIXED32, np.int32, _int32, pa.array),
    "sfixed64": Number(FIXED64, np.int64, _int64, pa.array),
    "sint32": Number(VARINT, np.int32, _sint32, pa.array),
    "sint64": Number(VARINT, np.int64, _sint64, pa.array),
    "uint32": Number(VARINT, np.int64, _uint32, pa.array),
    "uint64": Number(VARINT, np.uint64, lambda x: x, _decimal),
}
