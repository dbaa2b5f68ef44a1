"""Avro files of other implementations: each value by row and by column, and as fastavro reads it."""

from __future__ import annotations

import io
import json
import tarfile
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from pravega_serde import SchemaError
from pravega_serde.avro import AvroSerializer
from tests.foreign._corpora import AVRO_FILES


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    with tarfile.open(AVRO_FILES.file()) as package:
        found = {}
        for member in package.getmembers():
            if member.name.endswith(".avro") and (file := package.extractfile(member)) is not None:
                found[member.name.rpartition("/")[2]] = file.read()
        return found


def _events(reader: Any, data: bytes) -> list[bytes]:
    """The values of a container as events, written by fastavro under the file's schema."""
    schema = fastavro.parse_schema(json.loads(reader.metadata["avro.schema"]))
    events = []
    for value in fastavro.reader(io.BytesIO(data), return_record_name=True):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, value)
        events.append(out.getvalue())
    return events


def test_every_value_is_read_and_written_again(files: dict[str, bytes]) -> None:
    counts = {"files": 0, "values": 0, "columns": 0, "refused schemas": 0}
    for name, data in files.items():
        try:
            reader = fastavro.reader(io.BytesIO(data))
            events = _events(reader, data)
        except (ValueError, KeyError, EOFError):
            continue  # broken on purpose, or with a codec that is not installed
        try:
            serializer = AvroSerializer(json.loads(reader.metadata["avro.schema"]))
        except SchemaError:
            counts["refused schemas"] += 1
            continue
        counts["files"] += 1
        for event in events:
            assert serializer.serialize(serializer.deserialize(event)) == event, name
            counts["values"] += 1
        try:
            column = serializer.decode_column(pa.array(events, pa.binary()))
        except SchemaError:
            continue  # a record inside itself
        assert serializer.encode_column(column).to_pylist() == events, name
        counts["columns"] += 1
    # One schema holds itself, and has no columns.
    assert counts == {"files": 36, "values": 3470, "columns": 35, "refused schemas": 0}
