"""Comparison of our client with the Java client and the Rust binding."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

from benchmarks._alternate import Case, run_case
from benchmarks._drive import Peer, PeerError
from benchmarks._server import SCOPE, Server
from benchmarks._stats import Result
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.wire import StreamName
from tests.interop._rust import rust_python

__all__ = ["run_client"]

KEYS: Final = 4096
_JAVA_FOLDER: Final = Path(__file__).parent / "java"
_JAVA: Final = "Java client"
_RUST: Final = "Rust binding"
_ROWS: Final = "ours, events"
_COLUMNS: Final = "ours, columns"
# (size, events written, events read): about the same number of bytes at each size
_LOADS: Final = ((100, 1_000_000, 2_000_000), (1024, 150_000, 300_000))
_QUICK_PART: Final = 10
_WRITE_AIMS: Final = {_ROWS: 2.0, _COLUMNS: 2.0}
_READ_AIMS: Final = {_ROWS: 1.0, _COLUMNS: 1.0}

Note = Callable[[str], None]


def run_client(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure writing and reading at each size, case by case. Only cases whose name contains `only` are run."""
    with ExitStack() as stack:
        server = stack.enter_context(Server(note))
        java = stack.enter_context(_java_peer())
        rust = _rust_peer(stack, note)
        ours = stack.enter_context(Peer("ours", [sys.executable, "-m", "benchmarks.peers.ours"]))
        note("; ".join(f"{peer.name}: {peer.version}" for peer in (java, rust, ours) if peer is not None))
        suite = _Suite(server, java, rust, ours, part=_QUICK_PART if quick else 1, only=only)
        for case in suite.cases():
            yield run_case(case, rounds=rounds, note=note)


def _java_peer() -> Peer:
    java = find_java()
    command = [
        str(java.path),
        "-Xmx2g",
        f"-Dlogback.configurationFile={_JAVA_FOLDER / 'logback.xml'}",
        "-cp",
        f"{pravega_jars()}/*",
        str(_JAVA_FOLDER / "Peer.java"),  # Java compiles this source file at the start
    ]
    return Peer(_JAVA, command)


def _rust_peer(stack: ExitStack, note: Note) -> Peer | None:
    python = rust_python()
    if python is None:
        note("the Rust binding is left out: it needs Python 3.11 on x86-64, and ./run bench found none")
        return None
    return stack.enter_context(Peer(_RUST, [str(python), "-m", "benchmarks.peers.rust"]))


class _Suite:
    """Cases, and the single runs of each."""

    def __init__(self, server: Server, java: Peer, rust: Peer | None, ours: Peer, *, part: int, only: str) -> None:
        self._server, self._java, self._rust, self._ours = server, java, rust, ours
        self._part, self._only = part, only

    def cases(self) -> Iterator[Case]:
        """Yield the cases. Reads of a size follow its writes. Each case is created after the previous one."""
        for size, written, read in _LOADS:
            if self._only in (name := f"write {size} B"):
                yield self._write_case(name, size, written // self._part)
            if self._only in (name := f"read {size} B"):
                yield self._read_case(name, size, read // self._part)

    def _write_case(self, name: str, size: int, events: int) -> Case:
        return Case(
            name=name,
            event_size=size,
            baseline=_JAVA,
            peers=self._peers("write", partial(self._write_once, events, size)),
            aims=_WRITE_AIMS,
        )

    def _read_case(self, name: str, size: int, events: int) -> Case:
        stream = self._server.stream(events, size)
        self._ask(self._ours, "write_columns", stream, events=events, size=size, keys=KEYS)
        return Case(
            name=name,
            event_size=size,
            baseline=_JAVA,
            peers=self._peers("read", partial(self._read_once, stream, events, size)),
            aims=_READ_AIMS,
        )

    def _peers(
        self, verb: str, once: Callable[[Peer, str], Mapping[str, Any]]
    ) -> dict[str, Callable[[], Mapping[str, Any]]]:
        others = [peer for peer in (self._java, self._rust) if peer is not None]
        runs: dict[str, Callable[[], Mapping[str, Any]]] = {peer.name: partial(once, peer, verb) for peer in others}
        runs[_ROWS] = partial(once, self._ours, f"{verb}_rows")
        runs[_COLUMNS] = partial(once, self._ours, f"{verb}_columns")
        return runs

    def _write_once(self, events: int, size: int, peer: Peer, do: str) -> Mapping[str, Any]:
        stream = self._server.stream(events, size)
        answer = self._timed(peer, do, stream, events=events, size=size, keys=KEYS)
        self._server.drop(stream)
        return answer

    def _read_once(self, stream: StreamName, events: int, size: int, peer: Peer, do: str) -> Mapping[str, Any]:
        answer = self._timed(peer, do, stream, events=events)
        if answer["bytes"] != events * size:
            raise PeerError(f"{peer.name} read {answer['bytes']} bytes of {events * size}")
        return answer

    def _timed(self, peer: Peer, do: str, stream: StreamName, **request: Any) -> dict[str, Any]:
        self._server.settle()
        before = self._server.cpu_seconds()
        answer = self._ask(peer, do, stream, **request)
        return {**answer, "server_cpu": self._server.cpu_seconds() - before}

    def _ask(self, peer: Peer, do: str, stream: StreamName, **request: Any) -> dict[str, Any]:
        return peer.ask(do, controller=self._server.uri, scope=SCOPE, stream=stream.stream, **request)
