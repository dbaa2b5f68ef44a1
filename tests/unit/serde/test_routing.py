"""Routing keys: equal to Java by scalar and by column, and where routers take them from."""

import json
import pickle
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import SchemaError, SerdeError, SerializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.routing import (
    ByColumn,
    ByConstant,
    ByField,
    ByFunction,
    EventRouter,
    Unrouted,
    segment_key,
    segment_keys,
)

GOLDEN = Path(__file__).parents[2] / "vectors" / "text_golden.jsonl"
KEYS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80)


def java_place(key: str) -> float:
    """The definition, word for word, with mmh3's hash."""
    low = mmh3.hash64(key.encode("utf-16-le", "surrogatepass"), 1741865571, signed=False)[0]
    place: float = struct.unpack("<d", struct.pack("<Q", 0x3FF0000000000000 + (low >> 12)))[0] - 1.0
    return place


def golden() -> list[tuple[str, float]]:
    with GOLDEN.open(encoding="utf-8") as lines:
        found = [vector for vector in map(json.loads, lines) if vector["kind"] == "routing"]
    assert len(found) == 1500
    places = [struct.unpack(">d", bytes.fromhex(vector["bits"]))[0] for vector in found]
    keys = [bytes.fromhex(vector["utf16le"]).decode("utf-16-le", "surrogatepass") for vector in found]
    return list(zip(keys, places, strict=True))


def test_places_are_javas() -> None:
    assert all(segment_key(key) == place for key, place in golden())


def test_places_of_a_column_are_javas() -> None:
    # Lone surrogates, legal in Java's and Python's strings, cannot be in an Arrow column.
    pairs = [
        (key, place) for key, place in golden() if key.isprintable() or ("\ud800" not in key and "\udc00" not in key)
    ]
    column = pa.array([key for key, _ in pairs])
    assert len(pairs) > 400
    assert segment_keys(column).tolist() == [place for _, place in pairs]


@given(st.text())
def test_any_key_is_placed_by_the_definition(key: str) -> None:
    assert segment_key(key) == java_place(key)
    assert 0 <= segment_key(key) < 1


@given(
    st.lists(KEYS | st.text("ab", max_size=40) | st.sampled_from(["", "x" * 1024, "é" * 700, "😀" * 300])),
    st.integers(0, 3),
)
def test_columns_agree_with_the_definition(keys: list[str], skipped: int) -> None:
    expected = [java_place(key) for key in keys]
    column = pa.array(keys, pa.string())
    assert segment_keys(column).tolist() == expected
    assert segment_keys(column.slice(skipped)).tolist() == expected[skipped:]
    assert segment_keys(column.dictionary_encode()).tolist() == expected
    assert segment_keys(column.cast(pa.large_string())).tolist() == expected
    assert segment_keys(pa.chunked_array([column, column])).tolist() == expected * 2


@pytest.mark.parametrize("letter", ["a", "é", "😀"])
def test_every_length_of_tail(letter: str) -> None:
    for length in [*range(40), 100, 511, 512, 513, 5000]:
        keys = [letter * length, letter * length + "b", "", "short"]
        assert segment_keys(pa.array(keys)).tolist() == [java_place(key) for key in keys], length


@pytest.mark.parametrize("distinct", [3, 3000])
def test_long_columns_of_few_and_of_many_keys(distinct: int) -> None:
    keys = [f"key-{i % distinct}" for i in range(5000)]
    assert segment_keys(pa.array(keys)).tolist() == [java_place(key) for key in keys]


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_null_keys_spread_evenly(kind: pa.DataType) -> None:
    column = pa.array(["a", None] * 2000, pa.string()).cast(kind)
    places = segment_keys(column)
    assert set(places[::2]) == {java_place("a")}
    counts, _ = np.histogram(places[1::2], bins=4, range=(0, 1))
    assert counts.min() > 380
    assert not np.array_equal(places, segment_keys(column))


def test_a_column_of_nothing_is_random_too() -> None:
    assert len(np.unique(segment_keys(pa.nulls(10)))) == 10
    assert len(segment_keys(pa.array([], pa.string()))) == 0


def test_keys_must_be_strings() -> None:
    with pytest.raises(SchemaError, match="must be strings, not int64"):
        segment_keys(pa.array([1]))


# Routers

BATCH = pa.RecordBatch.from_pylist(
    [
        {"id": 1, "name": "a", "order": {"customer": "x", "n": 2.5}, "event": b'{"order":{"customer":"x"}}'},
        {"id": 2, "name": None, "order": None, "event": b'{"order":null}'},
    ]
)
EVENTS = JsonSerializer(arrow_type=pa.struct([("order", pa.struct([("customer", pa.string())]))]))


def upper(row: dict[str, Any]) -> str | None:
    return None if row["name"] is None else str(row["name"]).upper()


ROUTERS = [
    (ByColumn("name"), ["a", None]),
    (ByColumn("id"), ["1", "2"]),
    (ByField("order.customer"), ["x", None]),
    (ByField("name"), ["a", None]),
    (ByFunction(upper), ["A", None]),
    (ByConstant("c"), ["c", "c"]),
]


@pytest.mark.parametrize(("router", "keys"), ROUTERS)
def test_batches_and_values_have_the_same_keys(router: Any, keys: list[str | None]) -> None:
    router.check(BATCH.schema)
    assert router.keys(BATCH).to_pylist() == keys
    assert [router.key(row) for row in BATCH.to_pylist()] == keys
    assert len(segment_keys(router.keys(BATCH))) == 2
    assert pickle.loads(pickle.dumps(router)) == router


def test_unrouted_has_no_keys() -> None:
    Unrouted().check(BATCH.schema)
    assert Unrouted().keys(BATCH) is None
    assert Unrouted().key({}) is None


def test_a_field_of_a_decoded_event() -> None:
    router = ByField("order.customer", EVENTS)
    router.check(BATCH.schema)
    assert router.keys(BATCH).to_pylist() == ["x", None]
    assert [router.key(event) for event in BATCH.column("event").to_pylist()] == ["x", None]


def test_attributes_are_fields_too() -> None:
    assert ByColumn("name").key(SimpleNamespace(name="a")) == "a"
    assert ByField("a.b").key({"a": SimpleNamespace(b=True)}) == "true"


@pytest.mark.parametrize(
    "router", [ByColumn("nam"), ByColumn("order"), ByField("order.n"), ByField("order.x"), ByField("name.x")]
)
def test_wrong_columns_are_found_before_any_data(router: Any) -> None:
    with pytest.raises(SchemaError, match="routing key"):
        router.check(BATCH.schema)


@pytest.mark.parametrize("router", [ByColumn("x"), ByField("order.x"), ByFunction(lambda _: 1.5)])  # type: ignore[arg-type,return-value]
def test_wrong_values_are_refused(router: Any) -> None:
    with pytest.raises(SerializationError, match="routing key"):
        router.key({"order": {}})


@pytest.mark.parametrize(
    ("number", "kind"),
    [(2**62, pa.timestamp("us")), (2**62, pa.timestamp("us", "UTC")), (-(2**60), pa.timestamp("us"))],
)
def test_a_row_that_python_cannot_hold_is_an_error_with_its_place(number: int, kind: pa.DataType) -> None:
    times = pa.StructArray.from_arrays([pa.array([0, number]).view(kind)], ["at"])
    batch = pa.record_batch({"id": [1, 2], "order": times})
    with pytest.raises(SerializationError, match="no routing key: Python does not support the value of type") as caught:
        ByFunction(lambda row: str(row["id"])).keys(batch)
    assert (caught.value.row, caught.value.field_path) == (1, "$.order")


def test_a_dictionary_of_keys_is_not_unfolded() -> None:
    column = pa.array(["a", "b", "a"]).dictionary_encode()
    assert pa.types.is_dictionary(ByColumn("k").keys(pa.record_batch({"k": column})).type)


def test_the_protocol_itself_names_the_routers() -> None:
    with pytest.raises(SerdeError, match=r"use ByColumn\('name'\)"):
        EventRouter("key")  # type: ignore[misc,call-arg]

    class Own(EventRouter):
        def __init__(self, text: str) -> None:
            self.text = text

        def key(self, value: Any) -> str:
            return self.text

    assert Own("k").key(None) == "k"
    assert isinstance(ByColumn("a"), EventRouter)
