"""Serializers from plain functions."""

import pickle
from decimal import Decimal
from typing import Any

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

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            (pa.decimal128(38, 2), "{}"),
            (pa.struct([("a", pa.decimal128(38, 2))]), "dict(a={})"),
            (pa.struct([("a", pa.decimal128(38, 2))]), "({},)"),
            (pa.struct([("a", pa.decimal128(38, 2))]), "[('a', {})]"),
            (pa.list_(pa.decimal256(76, 2)), "[{}]"),
            (pa.map_(pa.string(), pa.list_(pa.decimal128(38, 2))), "dict(a=[{}])"),
            (pa.map_(pa.decimal128(38, 2), pa.int8()), "[({}, 1)]"),
        ],
    )
    def test_decimals_of_any_exponent(self, kind: pa.DataType, value: str) -> None:
        """Arrow itself ends the process for some of these."""

        def read(event: bytes) -> Any:
            return eval(value.format(f"Decimal('{event.decode()}')"), {"Decimal": Decimal})

        serializer = FunctionSerializer(repr, read, arrow_type=kind)  # type: ignore[arg-type,var-annotated]
        events = ["1.5", "1e-999999999", "1.50", "-1e999999999", "0e-999999999", "1.005", "NaN", "150e-2"]
        rows = []
        read_back = serializer.decode_column(
            pa.array([event.encode() for event in events]), on_error=lambda error: rows.append(error.row)
        )
        assert rows == [1, 3, 5, 6]
        assert "1.50" in str(read_back[0].as_py())
        assert read_back[0] == read_back[2] == read_back[7]
        assert "0.00" in str(read_back[4].as_py())

    def test_values_of_another_form(self) -> None:
        kind = pa.struct([("a", pa.decimal128(9, 2)), ("b", pa.int8())])
        serializer = FunctionSerializer(repr, lambda event: (Decimal(1),), arrow_type=kind)  # type: ignore[arg-type,var-annotated]
        with pytest.raises(DeserializationError, match="does not fit struct"):
            serializer.decode_column(pa.array([b""]))
