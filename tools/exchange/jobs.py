"""Flink next to Python: jobs that copy exactly once, fail and restart from a checkpoint; tables of Flink's SQL.

``python -m tools.exchange.jobs JARS``, with the jars of benchmarks/results/exchange.md. Each printed line was checked.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import click

from benchmarks._drive import Peer
from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega
from pravega_connector.local.jvm import find_java
from pravega_connector.wire import StreamName
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY
from tools.exchange._parties import FLINK_OPENS
from tools.exchange._trips import trip

_HERE: Final = Path(__file__).parent
_SCOPE: Final = "jobs"
_SECONDS: Final = 120.0
_TRIPS: Final = 100
_TABLE: Final = (
    "`number` BIGINT, zone STRING, fare DOUBLE, stops ARRAY<STRING>, extras MAP<STRING, DOUBLE>, "
    "driver ROW<name STRING, rating INT>"
)


def _copy(client: PravegaClient, flink: Peer, api: str, place: dict[str, str]) -> str:
    """Let a job copy what is written in the meantime, until it has failed once and all exists."""
    name = api.replace("-", "").lower()
    source, target = StreamName(_SCOPE, f"from-{name}"), StreamName(_SCOPE, f"to-{name}")
    for stream in (source, target):
        client.create_stream(stream, 2)
    flink.ask("copy", timeout=_SECONDS, api=api, **place, **{"from": source.stream, "to": target.stream})
    written, seen = 0, list[str]()
    end = time.monotonic() + _SECONDS
    with client.writer(source, "string") as writer, client.follow(target, "string", start="earliest") as follower:
        while time.monotonic() < end:
            if written < 2_000:
                for number in range(written, written + 20):
                    writer.write(f"k{number % 7} {number}", routing_key=f"k{number % 7}")
                written += 20
                writer.flush()
            seen += follower.poll(0.2)
            if len(seen) >= written == 2_000:
                break
        seen += follower.poll(3.0)  # what exists twice
    told = flink.ask("stop", timeout=_SECONDS)["value"]
    assert told["failures"] == 1, f"the job has failed {told['failures']} times"
    assert len(seen) == len(set(seen)) == written, f"{written} written, {len(seen)} found, {len(set(seen))} different"
    last: dict[str, int] = {}
    for key, number in (event.split() for event in seen):
        assert last.get(key, -1) < int(number), f"event {number} of {key} came after {last[key]}"
        last[key] = int(number)
    return f"{api}: {written} events copied exactly once; 1 failure, {told['checkpoints']} checkpoints"


def _row(number: int) -> list[Any]:
    value = trip(number)
    return [*(value[name] for name in ("number", "zone", "fare", "stops", "extras")), list(value["driver"].values())]


def _select(client: PravegaClient, flink: Peer, place: dict[str, str]) -> str:
    stream = StreamName(_SCOPE, "selected")
    client.create_stream(stream, 2)
    with client.writer(stream, "json") as writer:
        for number in range(_TRIPS):
            writer.write(trip(number), routing_key=trip(number)["zone"])
    rows = flink.ask("select", timeout=_SECONDS, **place, stream=stream.stream, table=_TABLE, count=_TRIPS)["value"]
    assert sorted(rows) == [_row(number) for number in range(_TRIPS)]
    return f"SQL: {_TRIPS} events of Python's, each right, by SELECT"


def _insert(client: PravegaClient, flink: Peer, place: dict[str, str]) -> str:
    stream = StreamName(_SCOPE, "inserted")
    client.create_stream(stream, 2)
    rows = [
        f"(CAST({number} AS BIGINT), '{value['zone']}', CAST({value['fare']!r} AS DOUBLE), "
        f"ARRAY['{number}', 'é😀'], MAP['e', CAST({number / 4} AS DOUBLE)], ROW('{value['driver']['name']}', {number}))"
        for number, value in ((number, trip(number)) for number in range(_TRIPS))
    ]
    flink.ask(
        "insert", timeout=_SECONDS, **place, stream=stream.stream, table=_TABLE, select=f"VALUES {', '.join(rows)}"
    )
    found = sorted(client.read(stream, "json"), key=lambda value: value["number"])
    assert found == [
        {
            **{name: trip(number)[name] for name in ("number", "zone", "fare")},
            "stops": [str(number), "é😀"],
            "extras": {"e": number / 4},
            "driver": {"name": trip(number)["driver"]["name"], "rating": number},
        }
        for number in range(_TRIPS)
    ]
    return f"SQL: {_TRIPS} events of INSERT, exactly once, each right in Python"


@click.command(help=__doc__)
@click.argument("jars", type=click.Path(path_type=Path, exists=True))
def main(jars: Path) -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="exchange-jobs-")))
        server = stack.enter_context(LocalPravega(heap_mb=768, cache_mb=256, java_options=SOON_READY))
        client = stack.enter_context(PravegaClient(server.config))
        client.create_scope(_SCOPE)
        java = find_java()
        peer = _HERE.parents[1] / "tests" / "interop" / "java" / "JsonPeer.java"
        sources = [*(_HERE / "java").glob("Trip*.java"), *(_HERE / "flink").glob("*.java"), peer]
        compile_java(java, sources, folder, jars)
        command = [str(java.path), "-Xmx1g", *SOON_READY, *FLINK_OPENS, "-cp", f"{folder}:{jars}/*", "FlinkJobs"]
        flink = stack.enter_context(Peer("FlinkJobs", command))
        place = {"controller": server.controller_uri, "scope": _SCOPE}
        print(_select(client, flink, place), flush=True)
        print(_insert(client, flink, place), flush=True)
        for api in ("legacy", "FLIP-27"):
            print(_copy(client, flink, api, place), flush=True)


if __name__ == "__main__":
    main()
