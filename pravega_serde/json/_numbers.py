"""Floating-point numbers as Java's ``Double.toString`` and ``Float.toString`` write them.

Plain between 10^-3 and 10^7, else as ``1.5E10``; always with a digit behind the point; in the fewest digits that give
the same number. That is Java from 19 on. Before, a bug (JDK-4511638) let it write some numbers in more digits than
needed, such as 2.0E-3 for 0.002 or 1.9999999999999998E23 for 2.0E23; they are read back as the same numbers.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["java_float", "java_floats"]

_PLAIN_FROM: Final = 1e-3
_PLAIN_BELOW: Final = 1e7


def java_float(value: float | np.float32) -> str:
    """A double, or a float if it is one of numpy's. Not for NaN and infinities."""
    shortest = str(value) if isinstance(value, np.float32) else float.__repr__(value)
    size = abs(float(value))
    if (_PLAIN_FROM <= size < _PLAIN_BELOW and "e" not in shortest) or size == 0:
        return shortest
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # Position of the point, counted from the first digit that is not zero.
    point = int(exponent or 0) + (len(whole) if whole.strip("0") else len(digits) - len(fraction))
    digits = digits.rstrip("0")
    if len(digits) < 2:
        # Java always gives two digits, and the second is not always a zero: the smallest double is 4.9E-324.
        digits = f"{size:.1e}"[:3].replace(".", "")
    sign = "-" if value < 0 else ""
    if _PLAIN_FROM <= size < _PLAIN_BELOW:
        return sign + _plain(digits, point)
    return f"{sign}{digits[0]}.{digits[1:]}E{point - 1}"


def _plain(digits: str, point: int) -> str:
    """Digits with a point among them, or zeros between."""
    digits = digits.rstrip("0") or "0"
    if point <= 0:
        return "0." + "0" * -point + digits
    return f"{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def java_floats(column: pa.Array) -> pa.StringArray:
    """A float or double column without nulls, as JSON: NaN and infinities in quotes, as Jackson writes them."""
    text = column.cast(pa.string())
    values = column.to_numpy()
    size = np.abs(values)
    # A signalling NaN is a NaN like any other.
    with np.errstate(invalid="ignore"):
        whole = np.floor(size) == size
    if whole.any():
        # Arrow writes 2.0 as 2.
        text = pc.if_else(pa.array(whole), pc.binary_join_element_wise(text, ".0", ""), text)
    plain = ((size >= _PLAIN_FROM) & (size < _PLAIN_BELOW)) | (size == 0)
    if plain.all():
        return text
    others = [_json(value) for value in values[~plain]]
    return pc.replace_with_mask(text, pa.array(~plain), pa.array(others, pa.string()))


def _json(value: float | np.float32) -> str:
    if math.isfinite(value):
        return java_float(value if isinstance(value, np.float32) else float(value))
    return NOT_FINITE[str(float(value))]


#: What Jackson writes for numbers that JSON does not have.
NOT_FINITE: Final = {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}
