"""A user's program, for type checkers: it is never run.

``assert_type`` is an error where a checker knows another type, and so is a ``type: ignore`` where it finds nothing to
ignore: so what must be refused is checked as well. mypy and pyright read both the same way.
"""

# ruff: noqa: I001 - reasons stand beside each type: ignore, and each import has its own
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

import pravega_connector
from pravega_connector import PravegaClient, ScalingPolicy, StreamCut, StreamNotFoundError, export_stream
from pravega_connector import StreamManager  # type: ignore[attr-defined]  # the pravega binding's name
from pravega_connector.client import EventWriter
from pravega_serde import (
    AvroSerializer,
    DeserializationError,
    JsonSerializer,
    Serializer,
    UTF8StringSerializer,
    serializer_for,
    typed,
)
from pravega_serde import AvroSerialiser  # type: ignore[attr-defined]  # misspelt
from pyspark_pravega import PravegaDataSource, from_pravega

USED = (ScalingPolicy, StreamNotFoundError, export_stream, DeserializationError, PravegaDataSource, from_pravega)
REFUSED = (StreamManager, AvroSerialiser)


@dataclass
class Order:
    """Schema of the events."""

    number: int


def first(serializer: Serializer[str]) -> str:
    """Text of an empty event."""
    return serializer.deserialize(b"")


def any_format(name: str) -> Serializer[Any]:
    """Serializer of a format that is known when the program runs."""
    return serializer_for(name)


def main(client: PravegaClient) -> None:
    """Each call as a user makes it."""
    text, octets = serializer_for("string"), serializer_for("bytes")
    assert_type(text, UTF8StringSerializer)
    assert_type(octets.deserialize(b""), bytes)
    assert_type(serializer_for("avro", schema="{}"), AvroSerializer)
    assert_type(serializer_for("json"), JsonSerializer)
    assert_type(first(text), str)
    first(octets)  # type: ignore[arg-type]

    orders = typed(serializer_for("json"), Order)
    assert_type(orders.deserialize(b"{}"), Order)
    assert_type(client.writer("s/x", orders), EventWriter[Order])
    assert_type(client.read("s/x", orders), Iterator[Order])
    assert_type(client.read("s/x", "string"), Iterator[str])
    assert_type(client.head("s/x"), StreamCut)
    client.writer("s/x", text).write(5)  # type: ignore[arg-type]
    client.create_stream("s/x", segmants=2)  # type: ignore[call-arg]
    assert_type(pravega_connector.PravegaClient(), PravegaClient)
