"""Filters on metadata columns, applied to slices of segments."""

import importlib
import json
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from pravega_connector.client import EventBatch
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.rows.columns import serializer_of
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.source.pushdown import Pushed
from pravega_connector.spark.source.readers import filters_are_pushed, read_rows
from pravega_connector.wire import StreamName

PLAIN = parse_options(SourceOptions, {"path": "a/s"})
TYPED = parse_options(SourceOptions, {"path": "a/s", "format": "json", "columns": "stream"})
COMPARED = {
    EqualTo: operator.eq,
    EqualNullSafe: operator.eq,
    GreaterThan: operator.gt,
    GreaterThanOrEqual: operator.ge,
    LessThan: operator.lt,
    LessThanOrEqual: operator.le,
    In: lambda value, wanted: value in wanted,
}
numbers, names = st.integers(0, 6), st.sampled_from(["r", "s", "t"])


def compared(column: str, values: st.SearchStrategy) -> st.SearchStrategy[Filter]:
    one = st.builds(
        lambda kind, value: kind((column,), value),
        st.sampled_from([kind for kind in COMPARED if kind is not In]),
        values,
    )
    some = st.builds(lambda wanted: In((column,), tuple(wanted)), st.lists(values, max_size=3))
    return one | some | one.map(Not) | some.map(Not)


filters = st.lists(
    st.one_of(
        compared("stream", names),
        compared("segment_id", numbers),
        compared("offset", numbers),
        st.sampled_from([IsNotNull(("offset",)), StringStartsWith(("stream",), "s"), EqualTo(("event",), b"x")]),
    ),
    max_size=4,
)
slices = st.lists(
    st.builds(
        lambda name, segment, start, size: SegmentSlice(StreamName("a", name), segment, start, start + size),
        names,
        numbers,
        numbers,
        st.integers(1, 4),
    ),
    max_size=5,
)


def passes(each: Filter, row: dict[str, object]) -> bool:
    if isinstance(each, Not):
        return not passes(each.child, row)
    if isinstance(each, StringStartsWith):
        return str(row[each.attribute[0]]).startswith(each.value)
    return type(each) not in COMPARED or COMPARED[type(each)](row[each.attribute[0]], each.value)


def rows_of(piece: SegmentSlice, stop: int | None = None) -> list[dict[str, object]]:
    """An event at each offset."""
    return [
        {"scope": "a", "stream": piece.stream.stream, "segment_id": piece.segment_id, "offset": at, "event": b"x"}
        for at in range(piece.start, piece.end)
        if stop is None or at < stop
    ]


@given(filters, slices)
def test_what_is_left_out_has_no_row_that_passes_and_what_is_done_need_not_be_done_again(given_filters, pieces) -> None:
    pushed = Pushed(PLAIN, given_filters)
    expected = [row for piece in pieces for row in rows_of(piece) if all(passes(f, row) for f in given_filters)]
    kept = [row for piece in pushed.keep(pieces) for row in rows_of(piece, pushed.stop)]
    assert [row for row in kept if all(passes(f, row) for f in pushed.left)] == expected


@pytest.mark.parametrize(
    "condition", [EqualTo(("segment_id",), 9), LessThan(("offset",), 0), EqualTo(("stream", "segment_id"), 1)]
)
def test_fields_of_a_format_are_not_metadata(condition) -> None:
    pushed = Pushed(TYPED, [condition])
    piece = SegmentSlice(StreamName("a", "s"), 1, 0, 10)
    assert (pushed.keep([piece]), pushed.left, pushed.stop) == ([piece], [condition], None)


@pytest.mark.parametrize(
    "condition",
    [
        EqualTo(("segment_id",), None),
        EqualTo(("segment_id",), True),
        EqualTo(("segment_id",), 1.5),
        In(("offset",), (1, None)),
        GreaterThan(("stream",), 3),
    ],
)
def test_values_of_another_type_are_left_to_spark(condition) -> None:
    pushed = Pushed(PLAIN, [condition])
    piece = SegmentSlice(StreamName("a", "s"), 1, 0, 10)
    assert (pushed.keep([piece]), pushed.left, pushed.stop) == ([piece], [condition], None)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[list[int], list[object]]]:
    """Reads a slice with five events in each batch, up to a place; gives offsets, and which batches were asked for."""

    def read(stop: int | None, **options: str) -> tuple[list[int], list[object]]:
        asked: list[object] = []

        def batches(_stores: object, piece: SegmentSlice):
            try:
                for start in range(piece.start, piece.end, 5):
                    asked.append(start)
                    numbers = range(start, start + 5)
                    events = [b'{"value": %d}' % at if at % 3 else b"{" for at in numbers]
                    yield EventBatch(piece.stream, 0, pa.array(events, pa.binary()), np.array(numbers))
            finally:
                asked.append("closed")

        monkeypatch.setattr("pravega_connector.spark.source.readers.read_slice", batches)
        chosen = parse_options(SourceOptions, {"path": "a/s", "columns": "offset", **options})
        schema = pa.schema([("offset", pa.int64())])
        serializer = None if chosen.format is None else serializer_of(chosen, pa.schema([("value", pa.int64())]))
        client = SimpleNamespace(stores=None)
        piece = SegmentSlice(StreamName("a", "s"), 0, 0, 20)
        rows = read_rows(client, chosen, schema, serializer, piece, stop=stop)  # type: ignore[arg-type]
        return [at for batch in rows for at in batch.column("offset").to_pylist()], asked

    return read


@pytest.mark.parametrize(("stop", "asked"), [(None, [0, 5, 10, 15]), (12, [0, 5, 10]), (10, [0, 5, 10]), (0, [0])])
def test_nothing_is_read_after_the_last_offset_that_can_pass(read, stop, asked) -> None:
    assert read(stop) == (list(range(20 if stop is None else stop)), [*asked, "closed"])


def test_dead_letters_are_those_of_the_rows_that_can_pass(read, tmp_path: Path) -> None:
    """A filter changes which letters there are. So the file of a part does not take the place of the whole slice's."""
    options = {"format": "json", "dead_letter_path": str(tmp_path)}
    found = {}
    for stop in (None, 12):
        offsets, _ = read(stop, **options)
        assert offsets == [at for at in range(20 if stop is None else stop) if at % 3]
        (new,) = [path for path in tmp_path.iterdir() if path not in found]
        found[new] = [json.loads(line)["offset"] for line in new.read_text().splitlines()]
    assert list(found.values()) == [[0, 3, 6, 9, 12, 15, 18], [0, 3, 6, 9]]


def test_a_reader_accepts_filters_only_in_the_process_in_which_spark_pushes_them(monkeypatch) -> None:
    importlib.import_module("pyspark.sql.worker.data_source_pushdown_filters")
    assert not filters_are_pushed()
    command = ["python", "-m", "pyspark.daemon", "pyspark.sql.worker.data_source_pushdown_filters"]
    monkeypatch.setattr(sys, "orig_argv", command)
    assert filters_are_pushed()
