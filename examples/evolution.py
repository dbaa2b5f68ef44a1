"""Two versions of a schema in one stream, and a reader of each: a registry makes the change safe.

pravega-serde local up --registry          # in a separate terminal
python -m examples.evolution --stream shop/trips

Version 2 adds a field with a default. The old reader does not see the field. The new reader returns the default for old
events.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from pravega_connector.client import PravegaClient
from pravega_serde.registry import deserializer, serializer

ID: dict[str, Any] = {"name": "id", "type": "long"}
TIP: dict[str, Any] = {"name": "tip", "type": "double", "default": 0.0}
VERSIONS: list[dict[str, Any]] = [
    {"type": "record", "name": "taxi.Trip", "fields": [ID]},
    {"type": "record", "name": "taxi.Trip", "fields": [ID, TIP]},
]
EVENTS: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "tip": 1.5}]


def write(client: PravegaClient, stream: str, registry: str) -> None:
    """Write an event of each version. The registry refuses a version that readers could not decode."""
    group = stream.split("/")[1]
    for schema, event in zip(VERSIONS, EVENTS, strict=True):
        made = serializer(registry, group=group, schema=schema, format="avro", create_group=True, register_schema=True)
        with client.writer(stream, made) as writer:
            writer.write(event, routing_key="trips")


def read(client: PravegaClient, stream: str, registry: str, version: int) -> list[Any]:
    """Return all events of the stream, decoded with this version of the schema."""
    known = deserializer(registry, group=stream.split("/")[1], schema=VERSIONS[version - 1], format="avro")
    return [known.deserialize(event) for event in client.read(stream)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Write two versions of a schema, and read them with each")
    parser.add_argument("--controller", default="tcp://localhost:9090")
    parser.add_argument("--registry", default="http://localhost:9092")
    parser.add_argument("--stream", required=True, help="scope/stream; made if it does not exist")
    given = parser.parse_args(arguments)
    with PravegaClient(given.controller) as client:
        client.create_stream(given.stream)
        write(client, given.stream, given.registry)
        for version in (1, 2):
            print(f"reader of version {version}: {read(client, given.stream, given.registry, version)}")


if __name__ == "__main__":
    main()
