"""JSONTestSuite: what has to be read, what must not, and the same answer by every way."""

from __future__ import annotations

import json
import tarfile

import pyarrow as pa
import pytest

from pravega_serde import DeserializationError
from pravega_serde.json import JsonSerializer
from pravega_serde.json.rows import parse_plainly
from tests.foreign._corpora import JSON_TEXTS

ROWS = JsonSerializer()


@pytest.fixture(scope="module")
def texts() -> dict[str, bytes]:
    with tarfile.open(JSON_TEXTS.file()) as package:
        member = package.extractfile("package/data/parsing.js")
        assert member is not None
        module = member.read().decode("utf-8")
    cases = json.loads(module[module.index("[") : module.rindex("]") + 1])
    return {case["name"]: case["input"].encode("utf-8", "surrogatepass") for case in cases}


def _read(text: bytes) -> object:
    try:
        return ROWS.deserialize(text)
    except DeserializationError:
        return DeserializationError


def test_what_must_be_read_is_and_what_must_not_is_not(texts: dict[str, bytes]) -> None:
    assert {kind: sum(name.startswith(kind) for name in texts) for kind in "yni"} == {"y": 95, "n": 188, "i": 35}
    refused = sorted(name for name, text in texts.items() if name[0] == "y" and _read(text) is DeserializationError)
    assert refused == []
    taken = sorted(name for name, text in texts.items() if name[0] == "n" and _read(text) is not DeserializationError)
    # Zeros behind an event are forgiven, because some of Java's writers pad.
    assert taken == ["n_multidigit_number_then_00.json"]


def test_both_parsers_say_the_same(texts: dict[str, bytes]) -> None:
    for name, text in texts.items():
        try:
            plain: object = parse_plainly(text)
        except DeserializationError:
            plain = DeserializationError
        assert repr(_read(text)) == repr(plain), name


def test_what_was_read_is_written_and_read_as_the_same(texts: dict[str, bytes]) -> None:
    read = {name: value for name, text in texts.items() if (value := _read(text)) is not DeserializationError}
    written = 0
    for name, value in read.items():
        if "surrogate" in name or "invalid_codepoint" in name or "escaped_surrogate" in name:
            continue  # half a character has no UTF-8
        again = ROWS.deserialize(ROWS.serialize(value))
        assert repr(again) == repr(value) or "Infinity" in repr(again), name
        written += 1
    assert written > 100


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.list_(pa.string()), pa.struct([("a", pa.string())])], ids=str
)
def test_columns_refuse_what_rows_refuse(texts: dict[str, bytes], kind: pa.DataType) -> None:
    serializer = JsonSerializer(arrow_type=kind)
    names = list(texts)
    wrong: list[int | None] = []
    values = serializer.decode_column(
        pa.array([texts[name] for name in names], pa.binary()), on_error=lambda error: wrong.append(error.row)
    )
    assert len(values) == len(names)
    bad = {names[row] for row in wrong if row is not None}
    assert {name for name, text in texts.items() if _read(text) is DeserializationError} <= bad
