"""Framings of registries: events of Confluent's and Apicurio's registries, and of Pravega's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks._alternate import Case, run_case
from benchmarks._stats import Result
from benchmarks.serde._subject import WAYS, Subject, Work, ours, timed
from benchmarks.serde.avro import SENSOR, sensor
from benchmarks.serde.protobuf import sensor_message
from pravega_serde.registry import serializer
from tests.support.apicurio import CONFLUENT_PATH, apicurio_registry

__all__ = ["run_registries"]

_EVENTS: Final = 40_000
_QUICK_EVENTS: Final = 2_000
_PRAVEGA: Final = "Pravega"
_FOREIGN: Final = ("Confluent", "Apicurio")
_AIMS: Final = dict.fromkeys(_FOREIGN, 0.9)
_JSON: Final = {
    "title": "Sensor",
    "type": "object",
    "properties": {
        **{key: {"type": "integer"} for key in ("id", "count", "ts")},
        "name": {"type": "string"},
        "temp": {"type": "number"},
        "ok": {"type": "boolean"},
    },
}
_SCHEMAS: Final[Mapping[str, Any]] = {"avro": SENSOR, "protobuf": sensor_message(), "json": _JSON}

Note = Callable[[str], None]


def run_registries(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure the same values in each framing. Only cases whose name contains ``only`` are run.

    A real Apicurio registry has the schemas of both foreign framings, and a registry in this process has Pravega's. The
    serializers have found all schemas before the clock starts, and make no calls afterwards.
    """
    count = _QUICK_EVENTS if quick else _EVENTS
    note("starting an Apicurio registry")
    with apicurio_registry() as foreign:
        uris = {
            _PRAVEGA: "mock://benchmark",
            "Confluent": f"confluent+{foreign}{CONFLUENT_PATH}",
            "Apicurio": f"apicurio+{foreign}",
        }
        for name in _SCHEMAS:
            wanted = [way for way in WAYS if only in f"{name}, {way}"]
            if wanted:
                works = {peer: _works(uri, name, _values(name, count)) for peer, uri in uris.items()}
                for way in wanted:
                    peers = {peer: timed(work[way], count) for peer, work in works.items()}
                    case = Case(name=f"{name}, {way}", event_size=0, baseline=_PRAVEGA, peers=peers, aims=_AIMS)
                    yield run_case(case, rounds=rounds, warm_ups=2, note=note)


def _values(name: str, count: int) -> list[dict[str, Any]]:
    """Return flat records. Their time is a timestamp in Avro, and a number otherwise."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=i) for i in range(count)]
    return [sensor(i) | {"ts": at if name == "avro" else int(at.timestamp() * 1000)} for i, at in enumerate(times)]


def _works(uri: str, name: str, values: list[dict[str, Any]]) -> dict[str, Work]:
    new = {"create_group": True} if uri.startswith("mock:") else {}
    made = serializer(uri, group=f"sensor-{name}", schema=_SCHEMAS[name], format=name, register_schema=True, **new)
    return ours(Subject(name=name, serializer=made, events=[made.serialize(value) for value in values]))
