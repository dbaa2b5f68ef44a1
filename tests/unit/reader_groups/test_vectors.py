"""The golden vectors of Java's own classes: values of a reader group, and the bytes that they are written as again."""

import json
from pathlib import Path

import pytest

from pravega_connector.reader_groups.protocol import (
    InitSerializer,
    StateSerializer,
    decode_checkpoint,
    decode_config,
    decode_position,
    encode_checkpoint,
    encode_config,
    encode_position,
)
from pravega_connector.reader_groups.protocol.serialization import TYPES
from pravega_serde.errors import DeserializationError
from tests.support.each import each_case
from tests.support.group_values import plain, plain_checkpoint

VECTORS = [
    json.loads(line) for line in (Path(__file__).parents[2] / "vectors/reader_groups.jsonl").read_text().splitlines()
]
BEGINS = bytes.fromhex("00000001")  # how an entry of the group's stream says that it is an initial value


def read_and_write(kind, data):
    """Plain values of bytes, and the bytes that come of them again."""
    if kind == "config":
        return plain(config := decode_config(data)), encode_config(config)
    if kind == "position":
        return plain(position := decode_position(data)), encode_position(position)
    if kind == "checkpoint":  # the vectors have no cut of several segments, whose order would be lost
        return plain_checkpoint(*(checkpoint := decode_checkpoint(data))), encode_checkpoint(*checkpoint)
    serializer = StateSerializer() if kind == "update" else InitSerializer()
    return plain(value := serializer.deserialize(data)), serializer.serialize(value)


def test_what_java_wrote_is_read_and_written_again():
    def check(vector):
        data = bytes.fromhex(vector["hex"])
        if vector["kind"] != "entry":
            assert read_and_write(vector["kind"], data) == (vector["value"], data)
            return
        assert data.startswith(BEGINS)
        value, again = read_and_write("init", data[len(BEGINS) :])
        assert value == vector["value"]
        assert data[len(BEGINS) :].startswith(again)

    names = (f"line {number} {vector['kind']}" for number, vector in enumerate(VECTORS, 1))
    each_case(zip(names, VECTORS, strict=True), check)


def test_the_vectors_have_what_there_is():
    kinds = {(vector["kind"], vector["value"]["type"]) for vector in VECTORS}
    assert {("update", cls.__name__) for cls in TYPES} <= kinds
    assert {(kind, cls.__name__) for kind in ("init", "entry") for cls in TYPES[:2]} <= kinds
    assert {("config", "GroupConfig"), ("position", "Ranged"), ("checkpoint", "Checkpoint")} <= kinds


def test_entries_of_initial_values_are_longer_than_what_java_writes_into_them():
    """Otherwise the vector could be unread without a failure."""
    entries = [bytes.fromhex(vector["hex"]) for vector in VECTORS if vector["kind"] == "entry"]
    assert any(entry.endswith(bytes(20)) for entry in entries)
    padded = entries[0][len(BEGINS) :]
    with pytest.raises(DeserializationError, match="other bytes than zeros follow its end"):
        InitSerializer().deserialize(padded + b"\1")
    with pytest.raises(DeserializationError, match="bytes follow its end"):
        StateSerializer().deserialize(padded)
