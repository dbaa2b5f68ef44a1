"""Readers of slots: what stands in one place of all events, as an Arrow array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pravega_serde.json._convert import INT64_MAX, limits, parse_times
from pravega_serde.json._scalars import Bools, Texts, booleans, doubles, integers, nulls

__all__ = ["Read", "is_scalar", "slot_reader"]

#: Reads a slot: an Arrow array, and which rows are good.
Read = Callable[[Texts], tuple[pa.Array, Bools]]


def slot_reader(kind: pa.DataType, *, quoted: bool) -> Read | None:
    """What reads a slot of a type; None if such a slot is not read here."""
    t = pa.types
    if quoted:
        if t.is_string(kind):
            return _strings
        return (lambda texts: _times(texts, kind)) if t.is_date32(kind) or t.is_timestamp(kind) else None
    if t.is_boolean(kind):
        return _booleans
    if t.is_signed_integer(kind):
        return lambda texts: _integers(texts, kind)
    if t.is_floating(kind):
        return lambda texts: _doubles(texts, kind)
    return _millis(kind) if t.is_timestamp(kind) else None


def _strings(texts: Texts) -> tuple[pa.Array, Bools]:
    binary = texts.cut()
    # The column was valid UTF-8, and quotes are at the borders of characters: no need to look again.
    return binary.view(pa.string()), np.ones(len(binary), np.bool_)


def _times(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values = parse_times(_strings(texts)[0], kind)
    return values, np.ones(len(values), np.bool_)


def _nullable(values: npt.NDArray[Any], good: Bools, texts: Texts) -> tuple[pa.Array, Bools]:
    if good.all():
        return pa.array(values), good
    null = nulls(texts)
    return pa.array(values, mask=null), good | null


def _booleans(texts: Texts) -> tuple[pa.Array, Bools]:
    return _nullable(*booleans(texts), texts)


def _integers(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values, good = integers(texts)
    low, high = limits(kind)
    good &= (values >= low) & (values <= high)
    return _nullable(values.astype(kind.to_pandas_dtype()), good, texts)


def _doubles(texts: Texts, kind: pa.DataType) -> tuple[pa.Array, Bools]:
    values, good = doubles(texts)
    with np.errstate(over="ignore"):
        return _nullable(values.astype(kind.to_pandas_dtype()), good, texts)


def _millis(kind: pa.DataType) -> Read:
    def read(texts: Texts) -> tuple[pa.Array, Bools]:
        values, good = integers(texts)
        good &= (values <= INT64_MAX // 1000) & (values >= -(INT64_MAX // 1000))
        array, good = _nullable(values * 1000, good, texts)
        return array.view(kind), good

    return read


def is_scalar(texts: Texts) -> Bools:
    """Which texts are a number, boolean or null: a value that nobody wants must be valid all the same."""
    return doubles(texts)[1] | booleans(texts)[1] | nulls(texts)
