"""Readers that share a stream in a group: one and four of ours, and one and four of the Java client's."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer, PeerError
from benchmarks._server import SCOPE, Server
from benchmarks._stats import Result
from pravega_connector.client import PravegaClient
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.wire import StreamName

__all__ = ["run_groups"]

KEYS: Final = 4096
SEGMENTS: Final = 4
_MOST: Final = 4  # readers
_JAVA_FOLDER: Final = Path(__file__).parent / "java"
_JAVA: Final = "Java, 1 reader"
_LOADS: Final = ((100, 2_000_000), (1024, 300_000))
_QUICK_PART: Final = 10

Note = Callable[[str], None]


def run_groups(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure reading at each size. Only cases whose name contains `only` are run.

    Java's readers are threads of one JVM. Ours are separate processes. ``follow`` reads without a group. The difference
    between it and one reader is the cost of a group.
    """
    with ExitStack() as stack:
        server = stack.enter_context(Server(note))
        java = stack.enter_context(_java_peer())
        command = [sys.executable, "-m", "benchmarks.peers.group"]
        ours = [stack.enter_context(Peer(f"reader {n + 1}", command)) for n in range(_MOST)]
        writer = stack.enter_context(Peer("writer", [sys.executable, "-m", "benchmarks.peers.ours"]))
        suite = _Suite(server, java, ours)
        for size, all_ in _LOADS:
            events = all_ // (_QUICK_PART if quick else 1)
            if only in (name := f"group reads {size} B"):
                stream = server.stream(events, size, segments=SEGMENTS)
                place = {"controller": server.uri, "scope": SCOPE, "stream": stream.stream}
                writer.ask("write_columns", **place, events=events, size=size, keys=KEYS)
                case = Case(name=name, event_size=size, baseline=_JAVA, peers=suite.peers(stream, events, size))
                yield run_case(case, rounds=rounds, note=note)


def _java_peer() -> Peer:
    logback = f"-Dlogback.configurationFile={_JAVA_FOLDER / 'logback.xml'}"
    program = str(_JAVA_FOLDER / "ReaderGroupPeer.java")
    return Peer("Java client", [str(find_java().path), "-Xmx2g", logback, "-cp", f"{pravega_jars()}/*", program])


class _Suite:
    """Single runs of each case."""

    def __init__(self, server: Server, java: Peer, ours: list[Peer]) -> None:
        self._server, self._java, self._ours = server, java, ours

    def peers(self, stream: StreamName, events: int, size: int) -> dict[str, Callable[[], Mapping[str, Any]]]:
        """Return all peers by name."""
        runs: dict[str, Callable[[], Mapping[str, Any]]] = {}
        for count in (1, _MOST):
            readers = f"{count} reader" + "s" * (count > 1)
            runs[f"Java, {readers}"] = partial(self._read_java, stream, count, events)
            for form in ("rows", "columns"):
                runs[f"ours, {readers}, {form}"] = partial(self._read_ours, stream, count, f"read_{form}")
        runs["ours, follow, columns"] = partial(self._follow, stream)
        return {name: partial(self._checked, name, run, events, size) for name, run in runs.items()}

    def _checked(self, name: str, run: Callable[[], Mapping[str, Any]], events: int, size: int) -> Mapping[str, Any]:
        self._server.settle()
        before = self._server.cpu_seconds()
        answer = run()
        if (answer["events"], answer["bytes"]) != (events, events * size):
            raise PeerError(f"{name}: {answer['events']} events of {events}, {answer['bytes']} bytes")
        return {**answer, "server_cpu": self._server.cpu_seconds() - before}

    def _read_java(self, stream: StreamName, count: int, events: int) -> Mapping[str, Any]:
        place = {"controller": self._server.uri, "scope": SCOPE, "stream": stream.stream}
        return self._java.ask("read", **place, events=events, readers=count)

    def _read_ours(self, stream: StreamName, count: int, do: str) -> Mapping[str, Any]:
        name = f"ours{uuid.uuid4().hex}"
        peers = self._ours[:count]
        with PravegaClient(self._server.uri) as client, ThreadPoolExecutor(count) as threads:
            group = client.reader_group(f"{SCOPE}/{name}", stream)
            for number, peer in enumerate(peers):
                peer.ask("join", controller=self._server.uri, scope=SCOPE, group=name, reader=f"reader{number}")
            answers = list(threads.map(lambda peer: peer.ask(do, group=name), peers))
            for peer in peers:
                peer.ask("leave", group=name)
            group.delete()
        return _summed(answers)

    def _follow(self, stream: StreamName) -> Mapping[str, Any]:
        place = {"controller": self._server.uri, "scope": SCOPE, "stream": stream.stream}
        return _summed([self._ours[0].ask("follow", **place)])


def _summed(answers: list[dict[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(answer[name] for answer in answers) for name in ("events", "bytes", "cpu")}
    seconds = max(answer["end"] for answer in answers) - min(answer["begin"] for answer in answers)
    return {**sums, "seconds": seconds}
