"""Random values of every kind that the writer takes."""

from __future__ import annotations

import datetime as dt
from collections import deque
from typing import Any

import numpy as np
from hypothesis import strategies as st

from pravega_serde import java

__all__ = ["scalars", "texts", "values"]

INTS = {
    kind: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    for kind, bits in (("B", 8), ("S", 16), ("I", 32), ("J", 64))
}

texts = st.text(st.characters(exclude_categories=()), max_size=12) | st.text(max_size=12)
"""Lone surrogates too: Java has strings of them."""


def _joined(text: str) -> str:
    """Neighbouring surrogates are one character in Java, and here after reading."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-300, 300),
        INTS["J"],
        st.floats(),
        texts.map(_joined),
        st.binary(max_size=20),
        INTS["B"].map(java.Byte),
        INTS["S"].map(java.Short),
        INTS["J"].map(java.Long),
        st.integers().map(java.BigInteger),
        st.floats(width=32).map(java.Float),
        st.characters(max_codepoint=0xFFFF, exclude_categories=()).map(java.Character),
        st.decimals(allow_nan=False, allow_infinity=False).filter(lambda value: abs(value.as_tuple().exponent) < 1000),
        st.uuids(),
    )


def times() -> st.SearchStrategy[Any]:
    nanos = st.integers(1, 999)
    whole = st.datetimes(allow_imaginary=False)
    aware = st.datetimes(timezones=st.just(dt.UTC))
    offsets = st.integers(-18 * 3600, 18 * 3600).map(java.ZoneOffset)
    return st.one_of(
        aware,
        whole,
        st.dates(),
        st.times(),
        st.timedeltas(),
        st.builds(java.NanoDatetime.of, aware, nanos),
        st.builds(java.NanoDatetime.of, whole, nanos),
        st.builds(java.NanoTime.of, st.times(), nanos),
        st.builds(java.NanoDuration.of, st.timedeltas(max_value=dt.timedelta(days=10**8)), nanos),
        st.builds(lambda at, zone: at.replace(tzinfo=zone), whole, offsets),
        st.builds(lambda at, zone: at.replace(tzinfo=zone), st.times(), offsets),
        aware.map(
            lambda at: java.Date.combine(at.date(), at.timetz()).replace(microsecond=at.microsecond // 1000 * 1000)
        ),
        st.builds(java.Timestamp.of, aware, st.integers(0, 999)),
        offsets,
        st.sampled_from(["Europe/Paris", "America/New_York", "Asia/Kolkata"]).map(java.ZoneRegion),
        st.builds(java.Period, *[st.integers(-1000, 1000)] * 3),
        st.integers(-9999, 9999).map(java.Year),
        st.builds(java.YearMonth, st.integers(-999, 9999), st.integers(1, 12)),
        st.builds(java.MonthDay, st.integers(1, 12), st.integers(1, 28)),
    )


def arrays() -> st.SearchStrategy[Any]:
    dtypes = {"i2": INTS["S"], "i4": INTS["I"], "i8": INTS["J"], "f4": st.floats(width=32), "f8": st.floats()}
    numbers = [
        st.lists(items, max_size=6).map(lambda found, dtype=dtype: np.array(found, dtype))
        for dtype, items in dtypes.items()
    ]
    return st.one_of(
        *numbers,
        st.lists(st.booleans(), max_size=6).map(lambda found: np.array(found, bool)),
        st.lists(st.integers(0, 0xFFFF), max_size=6).map(lambda found: np.array(found, "u2")),
    )


def _keys() -> st.SearchStrategy[Any]:
    return st.one_of(
        texts.map(_joined), INTS["I"], INTS["J"], st.booleans(), st.uuids(), st.dates(), st.none(), st.integers()
    )


def _named(kind: type[Any], items: st.SearchStrategy[Any], *names: str) -> st.SearchStrategy[Any]:
    return st.one_of(*[items.map(lambda found, name=name: kind(found, f"java.util.{name}")) for name in names])


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    items = st.lists(inner, max_size=4)
    some = st.lists(inner.filter(lambda value: value is not None), max_size=4)
    maps = st.dictionaries(_keys(), inner, max_size=5)
    by_text = st.dictionaries(st.text("abc\u00e9\U0001f600", max_size=4), some.map(tuple), max_size=5)
    words = st.sets(st.text("abcxyz", max_size=5), max_size=6)
    return st.one_of(
        items,
        items.map(tuple),
        items.map(lambda found: [*found, *found]),
        some.map(deque),
        maps,
        st.sets(_keys(), max_size=6),
        _named(java.JavaList, items, "LinkedList", "Vector", "Stack", "concurrent.CopyOnWriteArrayList"),
        _named(java.JavaList, some, "concurrent.ConcurrentLinkedQueue", "concurrent.ConcurrentLinkedDeque"),
        _named(java.JavaList, some, "ImmutableCollections$ListN"),
        _named(java.JavaMap, maps, "LinkedHashMap"),
        _named(
            java.JavaMap,
            by_text,
            "TreeMap",
            "concurrent.ConcurrentHashMap",
            "concurrent.ConcurrentSkipListMap",
            "Hashtable",
        ),
        _named(java.JavaSet, words, "LinkedHashSet", "TreeSet"),
        items.map(java.JavaArray),
        items.map(lambda found: java.ListView.of("java.util.Collections$UnmodifiableList", found)),
        maps.map(lambda found: java.MapView.of("java.util.Collections$UnmodifiableMap", found)),
    )


values = st.recursive(scalars() | times() | arrays(), _containers, max_leaves=12)
