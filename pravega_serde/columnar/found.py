"""Types that were found in values: inference that changes no value.

Values of one place are added one by one. Their type is the narrowest one that holds each of them exactly; values of
different kinds become text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.limits import MAX_COLUMNS
from pravega_serde.columnar.types import with_leaves
from pravega_serde.errors import SchemaError

#: Kind of a value. A ``special`` number is NaN or an infinity. A ``time`` is a timestamp without a zone, an ``instant``
#: one with a zone.
Kind = Literal["boolean", "integer", "fraction", "special", "text", "date", "time", "instant", "object", "list"]

_TYPES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "text": pa.string(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "instant": pa.timestamp("us", "UTC"),
}
_NUMBERS: Final = frozenset({"integer", "fraction"})
#: Digits of a decimal of 128 bits.
_DECIMAL_DIGITS: Final = 38
#: Integers below this size are exact in a double.
EXACT_INTEGERS: Final = 1 << 53
#: Smaller numbers have fewer digits.
SMALLEST_NORMAL: Final = 2.2250738585072014e-308


def fits_double(number: Decimal) -> bool:
    """Return True if the double next to a number is written with the digits of the number."""
    return not number or (number.is_finite() and Decimal(repr(float(number))) == number)


def fits_float(text: str, value: float) -> bool:
    """Return True if the shortest text of a float of 32 bits has the digits of a text."""
    number = Decimal(text)
    with np.errstate(over="ignore"):
        near = float(str(np.float32(value)))
    return not number.is_finite() or (math.isfinite(near) and Decimal(repr(near)) == number)


@dataclass(slots=True)
class Found:
    """Kinds of the values of one place; nulls have none."""

    kinds: set[Kind] = field(default_factory=set)
    fields: dict[str, Found] = field(default_factory=dict)
    """Fields of its objects."""
    item: Found | None = None
    """Items of its lists."""
    low: int = 0
    high: int = 0
    """Least and greatest integer, and 0."""
    whole: int = 0
    scale: int = 0
    """Maximum number of digits before and after the point."""
    exact: bool = True
    """True if doubles hold all numbers with a fraction."""

    def add_integer(self, number: int) -> None:
        """Add an integer."""
        self.kinds.add("integer")
        self.low, self.high = min(self.low, number), max(self.high, number)

    def add_fraction(self, number: Decimal) -> None:
        """Add a finite number with a fraction or an exponent."""
        self.kinds.add("fraction")
        self.exact = self.exact and fits_double(number)
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        self.whole = max(self.whole, number.adjusted() + 1)
        self.scale = max(self.scale, -exponent)

    def merge(self, other: Found) -> None:
        """Add the values of another place."""
        self.kinds |= other.kinds
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.whole, self.scale = max(self.whole, other.whole), max(self.scale, other.scale)
        self.exact = self.exact and other.exact
        for name, inner in other.fields.items():
            self.fields.setdefault(name, Found()).merge(inner)
        if other.item is not None:
            if self.item is None:
                self.item = Found()
            self.item.merge(other.item)

    def mixed(self, path: str = "$") -> str | None:
        """Return the path of the first place with values of different types, which are text; None without any."""
        if len(self.kinds) > 1 and not self.kinds <= _NUMBERS:
            return path
        inside = [(f"{path}.{name}", inner) for name, inner in self.fields.items()]
        if self.item is not None:
            inside.append((f"{path}[]", self.item))
        return next((found for step, inner in inside if (found := inner.mixed(step)) is not None), None)

    def schema(self) -> pa.Schema:
        """Return the columns of its objects. Raises SchemaError if there are too many."""
        kind = self._object()
        if _columns(kind) > MAX_COLUMNS:
            raise SchemaError(f"the values have more than {MAX_COLUMNS} fields; set the types of some to string")
        return pa.schema(list(kind))

    def arrow_type(self) -> pa.DataType:
        """Return the type for all values; ``null`` without any."""
        if self.kinds == {"object"}:
            return self._object()
        if self.kinds == {"list"}:
            return pa.list_(pa.null() if self.item is None else self.item.arrow_type())
        return self._scalar()

    def _scalar(self) -> pa.DataType:
        if not self.kinds:
            return pa.null()
        if len(self.kinds) == 1 and not self.kinds & _NUMBERS:
            (kind,) = self.kinds
            return _TYPES.get(kind, pa.string())
        number = self._number()
        if self.kinds <= _NUMBERS:
            return number
        # Without fractions next to it, NaN is more often a name.
        if self.kinds <= _NUMBERS | {"special"} and "fraction" in self.kinds and number == pa.float64():
            return number
        return pa.string()

    def _object(self) -> pa.DataType:
        return pa.struct([pa.field(name, inner.arrow_type()) for name, inner in self.fields.items()])

    def _number(self) -> pa.DataType:
        largest = max(self.high, -self.low)
        if "fraction" not in self.kinds and self.high < 1 << 63 and self.low >= -1 << 63:
            return pa.int64()
        if "fraction" in self.kinds and self.exact and largest < EXACT_INTEGERS:
            return pa.float64()
        if largest < 10 ** (_DECIMAL_DIGITS - self.scale) and self.whole + self.scale <= _DECIMAL_DIGITS:
            return pa.decimal128(_DECIMAL_DIGITS, self.scale)
        return pa.string()


def _columns(kind: pa.DataType) -> int:
    return 1 + sum(_columns(kind.field(index).type) for index in range(kind.num_fields))


def text_for_nulls(schema: pa.Schema) -> pa.Schema:
    """Return columns with text for values that were always null."""

    def text(leaf: pa.DataType) -> pa.DataType:
        return pa.string() if pa.types.is_null(leaf) else leaf

    return pa.schema([entry.with_type(with_leaves(entry.type, text)) for entry in schema])
