"""Java's boxes as Python numbers and strings that remember their box.

A plain ``int``, ``float``, ``bool`` or ``str`` is written as ``Integer`` (``Long``, ``BigInteger`` by range),
``Double``, ``Boolean``, ``String``. What a stream has in another box is read as a subclass of the natural type from
here, and written in that box again. The four subclasses of the default boxes exist for one reason: CPython has one
object for each small number, but a stream may hold two ``Integer`` objects of one value that are not the same
object; the second is then an :class:`Integer`.
"""

from __future__ import annotations

import decimal
import struct
from typing import Self

__all__ = [
    "BigDecimal",
    "BigInteger",
    "Boolean",
    "Byte",
    "ByteArray",
    "Character",
    "Double",
    "Float",
    "Integer",
    "Long",
    "Short",
    "String",
]


class Integer(int):
    """``java.lang.Integer``."""

    __slots__ = ()


class Long(int):
    """``java.lang.Long``."""

    __slots__ = ()


class Short(int):
    """``java.lang.Short``."""

    __slots__ = ()


class Byte(int):
    """``java.lang.Byte``."""

    __slots__ = ()


class BigInteger(int):
    """``java.math.BigInteger``."""

    __slots__ = ()


class BigDecimal(decimal.Decimal):
    """``java.math.BigDecimal``: a ``Decimal`` that keeps the object of its digits, which others may share."""

    __slots__ = ("unscaled",)

    unscaled: BigInteger | None
    """The digits as an integer."""

    @classmethod
    def of(cls, value: decimal.Decimal, unscaled: BigInteger) -> Self:
        """A decimal whose digits are that object."""
        made = cls(value)
        made.unscaled = unscaled
        return made


class Boolean(int):
    """``java.lang.Boolean``: 0 or 1, equal to ``False`` or ``True``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(bool(self))


class Double(float):
    """``java.lang.Double``."""

    __slots__ = ()


class Float(float):
    """``java.lang.Float``: a float that has single precision."""

    __slots__ = ()

    def __new__(cls, value: float | str = 0.0) -> Float:
        return super().__new__(cls, struct.unpack(">f", struct.pack(">f", float(value)))[0])


class Character(str):
    """``java.lang.Character``: one UTF-16 code unit."""

    __slots__ = ()


class String(str):
    """``java.lang.String``: a string that is an object of its own even where CPython shares one."""

    __slots__ = ()


class ByteArray(bytes):
    """``byte[]``: bytes that are an object of their own even where CPython shares one."""

    __slots__ = ()
