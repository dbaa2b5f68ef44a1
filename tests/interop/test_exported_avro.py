"""Avro's Java reads exported files: with the schema of the events, so times and enums are what they were."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyspark
import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.local.jvm import find_java
from pravega_connector.operations.export import export_stream
from pravega_connector.wire import StreamName
from pravega_serde.avro import AvroSerializer
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

_SOURCE: Final = Path(__file__).parent / "java_export" / "AvroRows.java"
_JARS: Final = Path(pyspark.__file__).parent / "jars"
_SECONDS: Final = 120

READING: Final[dict[str, Any]] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["HOT", "COLD"]}},
        {"name": "until", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}], "default": None},
    ],
}
START: Final = datetime(2024, 2, 29, 12, 34, 56, 789_000, tzinfo=UTC)


def _java_rows(path: Path, folder: Path) -> list[str]:
    java = find_java()
    compile_java(java, [_SOURCE], folder, _JARS)
    command = [str(java.path), "-Xmx256m", *SOON_READY, "-cp", f"{folder}:{_JARS}/*", "AvroRows", str(path)]
    done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, encoding="utf-8")
    return done.stdout.splitlines()


@pytest.mark.parametrize("compression", [pytest.param("deflate", marks=pytest.mark.long), "none"])
def test_times_and_enums_are_read_by_java(
    client: PravegaClient, config: PravegaConfig, stream_name: StreamName, tmp_path: Path, compression: str
) -> None:
    times = [START + timedelta(milliseconds=number) for number in range(300)]
    values = [
        {"at": at, "kind": "COLD" if number % 3 else "HOT", "until": None if number % 2 else at + timedelta(days=1)}
        for number, at in enumerate(times)
    ]
    serializer = AvroSerializer(READING)
    client.create_stream(stream_name)
    with client.writer(stream_name) as writer:
        events = pa.array([serializer.serialize(value) for value in values], pa.large_binary())
        writer.write_column(events, pa.array(["key"] * len(values)))
    path = tmp_path / "readings.avro"
    reading = {"format": "avro", "avro_schema": json.dumps(READING), "controller": config.controller}
    export_stream(str(stream_name), path, compression=compression, **reading)

    schema, *rows = _java_rows(path, tmp_path)
    assert json.loads(schema) == READING
    assert rows == [_expected(value) for value in values]


def _expected(value: dict[str, Any]) -> str:
    until = "null null" if value["until"] is None else f"Instant {_instant(value['until'])}"
    return f"Instant {_instant(value['at'])}\tEnumSymbol {value['kind']}\t{until}"


def _instant(at: datetime) -> str:
    """As ``java.time.Instant`` writes it: without a fraction that is nought."""
    return at.isoformat(timespec="milliseconds" if at.microsecond else "seconds").replace("+00:00", "Z")
