"""Dates and times that come one at a time, and dates with a time of day."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravega_serde import SerializationError, Serializer
from pravega_serde.avro import AvroSerializer
from pravega_serde.cbor import CborSerializer
from pravega_serde.columnar import MalformedError, parsed
from pravega_serde.columnar.building import parse_times
from pravega_serde.java import JavaSerializer
from pravega_serde.json import JsonSerializer
from pravega_serde.json.convert import JsonValues
from pravega_serde.registry import registry_format


class TestSingleTimes:
    """Dates and times of single values: those that Arrow reads from the same text, without an array for each."""

    texts = st.builds(
        lambda year, month, day, time, zone: f"{year:04}-{month:02}-{day:02}{time}{zone}",
        st.sampled_from([0, 1, 1582, 1969, 1970, 2023, 2024, 9999]),
        st.integers(0, 13),
        st.integers(0, 32),
        st.one_of(
            st.just(""),
            st.builds(
                lambda at, hour, minute, rest: f"{at}{hour:02}:{minute:02}{rest}",
                st.sampled_from("Tt "),
                st.integers(0, 24),
                st.integers(0, 60),
                st.sampled_from(["", ":00", ":59", ":60", ":59.9", ":00.000001", ":00.1234567", ":00.123456789", ":1"]),
            ),
        ),
        st.sampled_from(["", "Z", "z", "+02:00", "-0330", "+05", "+24:00", "-23:59", "+02:60"]),
    )

    @pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
    @given(texts)
    def test_they_are_those_of_arrow(self, kind: pa.DataType, text: str) -> None:
        try:
            expected = parse_times(pa.array([text.upper()]), kind)
        except pa.ArrowInvalid:
            with pytest.raises(MalformedError):
                JsonValues().time_of(text, kind, "a date" if kind == pa.date32() else "a time")
        else:
            found = JsonValues().time_of(text, kind, "a date" if kind == pa.date32() else "a time")
            assert pa.array([found], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind) == expected

    def test_usual_ones_need_no_array(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(parsed, "parse_times", None)
        values = JsonValues()
        assert values.time_of("1970-01-02", pa.date32(), "a date") == 1
        assert values.time_of("1969-12-31t23:59:59.9999999", pa.timestamp("us"), "a time") == -1
        assert values.time_of("1970-01-01T02:00+02:00", pa.timestamp("us", "UTC"), "a time") == 0


@pytest.mark.parametrize("write", ["json", "cbor", "avro", "java"])
def test_a_date64_with_a_time_of_day_is_not_cut(write: str) -> None:
    kind = pa.struct([("a", pa.date64())])
    inner = pa.Array.from_buffers(pa.date64(), 2, [None, pa.py_buffer(np.array([86_400_000, 90_000_000]))])
    column = pa.StructArray.from_arrays([inner], fields=list(kind))
    writers: dict[str, Callable[[], Serializer[Any]]] = {
        "json": JsonSerializer,
        "cbor": CborSerializer,
        "avro": lambda: AvroSerializer(registry_format("avro").derive(pa.schema(list(kind)), "R")),
        "java": lambda: JavaSerializer(arrow_type=pa.date32()),
    }
    serializer, column = writers[write](), inner if write == "java" else column
    assert len(serializer.encode_column(column.slice(0, 1))) == 1
    with pytest.raises(SerializationError, match=r"row 1: .*date64 with a time of day; cast the column"):
        serializer.encode_column(column)
