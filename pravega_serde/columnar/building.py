"""Arrow arrays of Python values, for formats whose library decodes events into Python values: JSON and CBOR.

An array is built from the values of many rows at once. Values that their type cannot hold raise, and are left to the
plain path of the format: see :func:`build_rows`.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Mapping, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar.arrays import bounds_of, expand, list_offsets, number_column
from pravega_serde.columnar.bad_rows import MalformedError
from pravega_serde.columnar.types import contains, family

#: Makes an Arrow array of values (None: null), or raises.
Build = Callable[[Sequence[Any]], pa.Array]

_INT64_MAX: Final = (1 << 63) - 1
_INT32_MAX: Final = (1 << 31) - 1

#: Values that are there twice while an array is made of others; a Decimal takes a hundred bytes.
_AT_ONCE: Final = 4096


def build_rows(
    build: Build,
    kind: pa.DataType,
    values: Sequence[Any],
    *,
    start: int,
    smallest: int,
    refusals: tuple[type[Exception], ...],
    arrays: list[pa.Array],
) -> list[int]:
    """Append arrays of the values of the rows from ``start`` on; return the rows left to the plain path.

    Halving finds the values that do not fit, so a few of them cost a few passes. ``smallest`` is the maximum number of
    rows that are left because one of their values does not fit.
    """
    try:
        arrays.append(build(values))
    except refusals:
        if len(values) <= smallest:
            arrays.append(pa.nulls(len(values), kind))
            return list(range(start, start + len(values)))
        middle = len(values) // 2
        rows: list[int] = []
        for first, part in ((start, values[:middle]), (start + middle, values[middle:])):
            rows += build_rows(build, kind, part, start=first, smallest=smallest, refusals=refusals, arrays=arrays)
        return rows
    return []


def build_scalars(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of Python values that are of the type, or None: integers are within its bounds.

    ``pa.array`` does the same, a little faster for texts, but its first call imports an installed pandas. It is used
    for the rarer types. Its errors also report integers with unchecked bounds.
    """
    t = pa.types
    if t.is_string(kind) or t.is_binary(kind):
        return _runs(values, kind)
    if t.is_boolean(kind) or t.is_floating(kind) or (t.is_integer(kind) and kind != pa.uint64()):
        try:
            return number_column(_numbers(values, kind), kind)
        except TypeError:  # from a None; a search for it would last as long as all the rest
            known = [0 if value is None else value for value in values]
            there = np.frombuffer(bytes([value is not None for value in values]), np.bool_)
            return number_column(_numbers(known, kind), kind, valid=there)
    return pa.nulls(len(values)) if t.is_null(kind) else pa.array(values, kind)


def _numbers(values: Sequence[Any], kind: pa.DataType) -> npt.NDArray[Any]:
    """Return an array of numbers of a type, or of bools; raise TypeError for None."""
    if pa.types.is_boolean(kind):
        return np.frombuffer(bytes(values), np.bool_)
    if pa.types.is_integer(kind):
        return np.fromiter(values, kind.to_pandas_dtype(), len(values))
    with np.errstate(over="ignore"):
        return np.frombuffer(array("d", values), np.float64).astype(kind.to_pandas_dtype(), copy=False)


def _runs(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Return an array of texts, or of bytes."""
    empty = "" if pa.types.is_string(kind) else b""
    valid = None
    try:
        data = empty.join(values)
        lengths = np.fromiter(map(len, values), np.int64, len(values))
    except TypeError:  # from a None
        data = empty.join(filter(None, values))
        lengths = np.fromiter([-1 if value is None else len(value) for value in values], np.int64, len(values))
        valid = pa.py_buffer(np.packbits(lengths >= 0, bitorder="little"))
        np.maximum(lengths, 0, out=lengths)
    if isinstance(data, str):
        encoded = data.encode()
        if len(encoded) > len(data):  # some need more than a byte a character
            lengths = np.array([len(value.encode()) if value else 0 for value in values], np.int64)
        data = encoded
    offsets = bounds_of(lengths)
    if offsets[-1] > _INT32_MAX:
        raise pa.ArrowInvalid(f"{offsets[-1]} bytes in one column: its offsets reach {_INT32_MAX}")
    return pa.Array.from_buffers(kind, len(values), [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)])


def build_struct(
    values: Sequence[Any], kind: pa.DataType, columns: Callable[[Sequence[Any]], list[pa.Array]]
) -> pa.StructArray:
    """Return an array of structs; ``columns`` returns the values of each field for the values that are not None."""
    if not kind.num_fields:
        return pa.array([None if value is None else {} for value in values], kind)
    there = [value for value in values if value is not None]
    made = pa.StructArray.from_arrays(columns(there), fields=list(kind))
    if len(there) == len(values):
        return made
    return expand(made, np.array([value is not None for value in values], np.bool_))


def build_list(values: Sequence[Any], kind: pa.DataType, items: Build) -> pa.ListArray:
    """Return an array of Python lists."""
    made = items(list(itertools.chain.from_iterable(filter(None, values))))
    return pa.ListArray.from_arrays(_offsets(values), made, type=kind, mask=_nulls(values))


def build_map(values: Sequence[Any], kind: pa.DataType, keys: Build, items: Build) -> pa.MapArray:
    """Return an array of Python dicts."""
    there = list(filter(None, values))
    names = keys(list(itertools.chain.from_iterable(there)))
    made = items([item for value in there for item in value.values()])
    return pa.MapArray.from_arrays(_offsets(values), names, made, type=kind, mask=_nulls(values))


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Return the offsets of lists or maps; None has no items."""
    return list_offsets(np.array([len(value) if value else 0 for value in values], np.int64))


def _nulls(values: Sequence[Any]) -> pa.BooleanArray | None:
    return number_column(np.array([value is None for value in values], np.bool_)) if None in values else None


def build_decimals(kind: pa.DataType) -> Build:
    """Return a builder of decimals from integers and Decimals."""
    fit = decimal_fitter(kind)

    def build(values: Sequence[Any]) -> pa.Array:
        starts = range(0, max(len(values), 1), _AT_ONCE)
        pieces = (values[start : start + _AT_ONCE] for start in starts)
        made = [pa.array([None if value is None else fit(Decimal(value)) for value in piece], kind) for piece in pieces]
        return made[0] if len(made) == 1 else pa.concat_arrays(made)

    return build


def decimals_of(kind: pa.DataType) -> Callable[[pa.StringArray], pa.Array]:
    """Return a function that parses texts of decimals. It raises :class:`MalformedError` for one that does not fit.

    Arrow does not notice that digits overflow when it scales them, and it reads outside its table for large exponents.
    So it parses only texts whose digits have a place in the type. Python parses all others.
    """
    fit, whole = decimal_fitter(kind), kind.precision - kind.scale
    before = f"(0|[0-9]{{1,{whole}}})" if whole > 0 else "0"
    plain = rf"^-?{before}(\.[0-9]{{0,{max(kind.scale, 0)}}})?$"

    def parse(text: str) -> Decimal:
        if text.isascii() and "_" not in text:
            try:
                return fit(Decimal(text))
            except InvalidOperation:
                pass
        raise MalformedError(f"invalid decimal number {text[:40]!r}")

    def convert(texts: pa.StringArray) -> pa.Array:
        if kind.scale >= 0 and whole >= 0 and pc.all(pc.match_substring_regex(texts, plain), min_count=0).as_py():
            return texts.cast(kind)
        return pa.array([None if text is None else parse(text) for text in texts.to_pylist()], kind)

    return convert


def decimal_fitter(kind: pa.DataType) -> Callable[[Decimal], Decimal]:
    """Return a function that returns the number with all digits of a decimal type.

    It raises :class:`MalformedError` if the type cannot hold the number. No power of ten is computed from an exponent
    in an event: Python compares exponents and digits first.
    """
    exact = Context(prec=kind.precision, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation])
    step = Decimal((0, (1,), -kind.scale))

    def fit(number: Decimal) -> Decimal:
        if not number.is_finite():
            raise MalformedError(f"invalid decimal number {number}")
        try:
            return number.quantize(step, None, exact)
        except (Inexact, InvalidOperation):
            raise MalformedError(f"{str(number)[:40]} does not fit {kind}") from None

    return fit


def fit_decimals(kind: pa.DataType) -> Callable[[Any], Any]:
    """Return a function that fits the Decimals in a value for ``pa.array``, which crashes on small exponents.

    It raises :class:`MalformedError` for one that does not fit, and TypeError or ValueError for a value of another
    form.
    """
    name = family(kind)
    if name == "decimal":
        fit = decimal_fitter(kind)
        return lambda value: fit(value) if isinstance(value, Decimal) else value
    if name not in ("fields", "items", "entries") or not contains(kind, "decimal"):
        return lambda value: value
    parts = [fit_decimals(kind.field(index).type) for index in range(kind.num_fields)]
    if name == "items":
        return lambda value: value if value is None or isinstance(value, str) else [parts[0](item) for item in value]
    if name == "entries":
        key_of, item_of = fit_decimals(kind.key_type), fit_decimals(kind.item_type)

        def entries(value: Any) -> Any:
            pairs = value.items() if isinstance(value, Mapping) else value
            return value if value is None else [(key_of(key), item_of(item)) for key, item in pairs]

        return entries
    named = {field.name: part for field, part in zip(kind, parts, strict=True)}

    def fields(value: Any) -> Any:
        pairs = value.items() if isinstance(value, Mapping) else value
        if value is None or not all(isinstance(pair, tuple) and pair and pair[0] in named for pair in pairs):
            return value if value is None else tuple(part(item) for part, item in zip(parts, value, strict=True))
        return {key: named[key](item) for key, item in pairs}

    return fields


def millis(value: int) -> int:
    """Return the microseconds of the milliseconds since 1970 that Jackson writes for a ``java.util.Date``."""
    if abs(value) > _INT64_MAX // 1000:
        raise MalformedError(f"{value} ms is beyond the range of a timestamp")
    return value * 1000


def parse_times(column: pa.StringArray, kind: pa.DataType) -> pa.Array:
    """Parse dates or timestamps of ISO 8601 texts; nanoseconds, which Java's Instant may write, are cut off."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(column, r"(\.\d{6})\d{1,3}", r"\1").cast(kind)
