"""Serializers from plain functions."""

import pickle

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError, SchemaError, SerializationError
from pravega_serde.adapters import FunctionSerializer
from pravega_serde.json import JsonSerializer


class TestFunctions:
    BOTH = FunctionSerializer(lambda n: str(n).encode(), int, arrow_type=pa.int64())

    def test_rows(self) -> None:
        pickled = FunctionSerializer(pickle.dumps, pickle.loads)
        assert pickled.deserialize(pickled.serialize({"a": (1, 2)})) == {"a": (1, 2)}
        again = pickle.loads(pickle.dumps(pickled))
        assert repr(again) == repr(pickled) == "FunctionSerializer(dumps, loads, arrow_type=None)"

    def test_columns(self) -> None:
        column = pa.array([1, None, 3])
        events = self.BOTH.encode_column(column)
        assert events.to_pylist() == [b"1", None, b"3"]
        assert self.BOTH.decode_column(events) == column

    def test_bad_rows(self) -> None:
        errors: list[DeserializationError] = []
        events = pa.array([b"1", b"x", b"9" * 20, b"4"] * 20)
        made = self.BOTH.decode_column(events, on_error=errors.append)
        assert made.to_pylist() == [1, None, None, 4] * 20
        assert [error.row for error in errors[:3]] == [1, 2, 5]
        assert "failed: ValueError" in str(errors[0])
        assert "does not fit int64" in str(errors[1])

    def test_what_a_function_raises_names_it(self) -> None:
        with pytest.raises(SerializationError, match=r"dumps failed: .*local object"):
            FunctionSerializer(pickle.dumps, pickle.loads).serialize(lambda: 1)
        with pytest.raises(DeserializationError, match="loads failed: "):
            FunctionSerializer(pickle.dumps, pickle.loads).deserialize(b"")

    def test_errors_of_this_package_pass(self) -> None:
        both = FunctionSerializer(JsonSerializer().serialize, JsonSerializer().deserialize)
        with pytest.raises(SerializationError, match="cannot write as JSON"):
            both.serialize(object())
        with pytest.raises(DeserializationError, match=r"^.PRAVEGA-DESERIALIZATION. not JSON"):
            both.deserialize(b"")

    def test_a_function_that_makes_no_bytes(self) -> None:
        with pytest.raises(SerializationError, match="str returned a str, not bytes"):
            FunctionSerializer(str, bytes.decode).serialize(1)  # type: ignore[arg-type]

    def test_columns_need_a_type(self) -> None:
        with pytest.raises(SchemaError, match="arrow_type"):
            FunctionSerializer(pickle.dumps, pickle.loads).decode_column(pa.array([b""]))
        with pytest.raises(SchemaError, match="cannot be converted to int64"):
            self.BOTH.check_encodable(pa.list_(pa.int8()))
        with pytest.raises(SerializationError):
            self.BOTH.encode_column(pa.array(["x"]))
