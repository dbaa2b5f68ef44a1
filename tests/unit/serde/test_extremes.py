"""Every Arrow type's extreme values in every format: the same value comes back, or an error that names row and place.

Written as a column and read as a column, read as a row and written as a row. Never another exception, another value.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, SchemaError, SerializationError, Serializer
from tests.support.each import each_case
from tests.support.extremes import FORMATS, Format, columns, expected

COLUMNS = [(f"{number}: {column.type}", column) for number, column in enumerate(columns())]


@pytest.mark.parametrize("name", FORMATS)
def test_a_value_comes_back_or_is_refused_with_its_place(name: str) -> None:
    each_case(COLUMNS, functools.partial(_every_value, FORMATS[name]))


def _every_value(form: Format, column: pa.Array) -> None:
    try:
        serializer = form.make(column.type)
        serializer.check_encodable(form.wrap(column).type)
    except SchemaError:
        # A type that the format has not is refused as such, not value by value.
        with pytest.raises(SchemaError):
            form.make(column.type).encode_column(form.wrap(column))
        return
    for index in range(len(column)):
        _try(form, serializer, column.slice(index, 1))


def _try(form: Format, serializer: Serializer[Any], value: pa.Array) -> None:
    events = _encoded(form, serializer, value)
    if events is None:
        return
    event = events[-1].as_py()
    _read_as_a_column(form, serializer, value, events)
    if event is not None:
        _read_as_a_row(form, serializer, event)


def _encoded(form: Format, serializer: Serializer[Any], value: pa.Array) -> pa.Array | None:
    """The events of a null and the value; None if the value is refused, with its row."""
    before = [] if pa.types.is_run_end_encoded(value.type) else [pa.nulls(1, value.type)]
    error = _refusal(serializer, form.wrap(pa.concat_arrays([*before, value])))
    if error is None:
        return serializer.encode_column(form.wrap(pa.concat_arrays([*before, value])))
    assert error.row is not None
    # A format without nulls inside records refuses the first row, with any second row.
    error = _refusal(serializer, form.wrap(value))
    if error is None:
        return serializer.encode_column(form.wrap(value))
    assert error.row == 0
    assert error.field_path is not None, error
    return None


def _refusal(serializer: Serializer[Any], column: pa.Array) -> SerializationError | None:
    try:
        serializer.encode_column(column)
    except SerializationError as error:
        return error
    return None


def _read_as_a_column(form: Format, serializer: Serializer[Any], value: pa.Array, events: pa.Array) -> None:
    errors: list[DeserializationError] = []
    column = serializer.decode_column(events, on_error=errors.append)
    column.validate(full=True)
    if errors:
        assert [error.row for error in errors] == [len(events) - 1]
        assert errors[0].field_path is not None or not pa.types.is_nested(column.type)
        with pytest.raises(DeserializationError):
            serializer.decode_column(events)
        return
    assert serializer.decode_column(events).type == column.type == serializer.arrow_type
    wanted = expected(form.wrap(value), column.type)
    assert _text(column.slice(len(column) - 1)) == _text(wanted)


def _read_as_a_row(form: Format, serializer: Serializer[Any], event: bytes) -> None:
    again: bytes | None = None
    with contextlib.suppress(DeserializationError, SerializationError):
        again = serializer.serialize(serializer.deserialize(event))
    if again is None:
        with pytest.raises((DeserializationError, SerializationError)) as caught:
            serializer.serialize(serializer.deserialize(event))
        assert caught.value.field_path is not None
        return
    if form.rows_are_untyped:
        assert again == serializer.serialize(serializer.deserialize(again))
    elif again != event:
        # The same value with other bytes: another NaN, one entry of two with the same key.
        first, second = (serializer.decode_column(pa.array([each], pa.binary())) for each in (event, again))
        assert _text(first) == _text(second)


def _text(column: pa.Array) -> str:
    """All of a column: NaN is NaN here, and what Python cannot hold has its number."""
    return column.to_string(window=1_000_000)
