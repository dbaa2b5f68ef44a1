"""Random pairs of Avro schemas: the short form of :mod:`tests.foreign.avro_pairs`, with Java and without."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from pravega_serde import SerdeError
from pravega_serde.avro import AvroSerializer
from tests.foreign.avro_pairs import answers, differences, lines, meant
from tests.support.avro_matrix import ERROR, by_columns, by_java, by_rows


def test_rows_and_columns_answer_alike_and_with_nothing_but_errors_of_ours() -> None:
    read = refused = 0
    for line in lines(600, seed=7):
        writer, reader, event = line.split("\t")
        case = {"writer": json.loads(writer), "reader": json.loads(reader), "hex": event}
        found = []
        for ask in (by_rows, by_columns):
            try:
                found.append(ask(case))
            except SerdeError:
                found.append(ERROR)
        assert (found[0] == ERROR) == (found[1] == ERROR), line
        # Where the bytes differ it is a bare value that chose another branch which holds it.
        assert found[0] == found[1] or _bare(reader, found[0]) == _bare(reader, found[1]), line
        read, refused = read + (found[1] != ERROR), refused + (found[1] == ERROR)
    assert read > 300
    assert refused > 80


def _bare(reader: str, event: str) -> Any:
    """The values of an event without the names of their branches."""

    def bare(value: Any) -> Any:
        if isinstance(value, tuple):
            return bare(value[1])
        if isinstance(value, dict):
            return {key: bare(inner) for key, inner in value.items()}
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    return bare(AvroSerializer(json.loads(reader)).deserialize(bytes.fromhex(event)))


def test_nulls_are_read_as_a_union_with_null() -> None:
    serializer = AvroSerializer("null", reader_schema=["null", "int"])
    assert serializer.decode_column(pa.array([b"", b""])).equals(pa.nulls(2, pa.int32()))


@pytest.mark.integration
def test_java_answers_alike() -> None:
    cases = answers(list(lines(600, seed=8)))
    wrong = [(who, answer, case) for who, case, answer in differences(cases) if not meant(who, case, answer)]
    assert wrong == []
    assert sum(by_java(case) != ERROR for case in cases) > 300
