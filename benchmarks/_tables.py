"""Key-value tables: our client and the Java client, which read each other's entries."""

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
from pravega_connector.client import PravegaClient
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java

__all__ = ["run_tables"]

_ENTRIES: Final = 1_000_000
_CHANGES: Final = 5_000
_QUICK_PART: Final = 20
_BATCH: Final = 250  # entries of an update, and keys of a call
_SIZE: Final = 100  # of a value
_PARTITIONS: Final = 4
_JAVA_FOLDER: Final = Path(__file__).parent / "java"
_JAVA: Final = "Java client"
_OURS: Final = "ours"

Note = Callable[[str], None]


def run_tables(*, rounds: int, quick: bool, only: str, note: Note) -> Iterator[Result]:
    """Measure updates, look-ups, iterations and conditional updates. Only cases whose name contains `only` are run.

    Each client makes one call after the other. Both use the same tables: segments of different tables are in different
    containers of the server, which have different costs.
    """
    part = _QUICK_PART if quick else 1
    with ExitStack() as stack:
        server = stack.enter_context(Server(note))
        java = stack.enter_context(_java_peer())
        ours = stack.enter_context(Peer(_OURS, [sys.executable, "-m", "benchmarks.peers.tables"]))
        suite = _Suite(server, (java, ours))
        entries = _ENTRIES // part
        server.make_room(2 * (rounds + 2) * entries * _SIZE)  # the tables must fit into one server
        suite.fill(entries)
        for do, name, count in (
            ("put", f"put, {_BATCH} entries a call", entries // 5),
            ("get", f"get, {_BATCH} keys a call", entries // 5),
            ("entries", "iterate over all entries", entries),
            ("change", "put with a version, one entry a call", _CHANGES // part),
        ):
            if only in name:
                case = Case(
                    name=name, event_size=_SIZE, baseline=_JAVA, peers=suite.peers(do, count), aims={_OURS: 1.0}
                )
                yield run_case(case, rounds=rounds, note=note)


def _java_peer() -> Peer:
    logback = f"-Dlogback.configurationFile={_JAVA_FOLDER / 'logback.xml'}"
    program = str(_JAVA_FOLDER / "TablesPeer.java")
    return Peer(_JAVA, [str(find_java().path), "-Xmx2g", logback, "-cp", f"{pravega_jars()}/*", program])


class _Suite:
    """Single runs of each case."""

    def __init__(self, server: Server, peers: tuple[Peer, Peer]) -> None:
        self._server, self._peers = server, peers

    def fill(self, entries: int) -> None:
        """Create the tables. Each client writes a half of the one that both read."""
        with PravegaClient(self._server.uri) as client:
            client.create_scope(SCOPE)
            for table in ("read", "written"):
                client.create_table(f"{SCOPE}/{table}", primary_key=8, secondary_key=8, partitions=_PARTITIONS)
        java, ours = self._peers
        self._ask(java, "put", "read", 0, entries // 2)
        self._ask(ours, "put", "read", entries // 2, entries)

    def peers(self, do: str, count: int) -> dict[str, Callable[[], Mapping[str, Any]]]:
        """Return both clients by name."""
        table = "read" if do in ("get", "entries") else "written"
        if do == "change":
            self._ask(self._peers[0], "put", table, 0, _BATCH)
        return {peer.name: partial(self._ask, peer, do, table, 0, count) for peer in self._peers}

    def _ask(self, peer: Peer, do: str, table: str, first: int, last: int) -> Mapping[str, Any]:
        before = self._server.cpu_seconds()
        load = {"from": first, "to": last, "batch": _BATCH, "size": _SIZE}
        answer = peer.ask(do, controller=self._server.uri, scope=SCOPE, table=table, **load)
        if (answer["events"], answer["bytes"]) != (last - first, (last - first) * _SIZE):
            raise PeerError(f"{peer.name}: {answer['events']} entries of {last - first}, {answer['bytes']} bytes")
        self._server.settle()  # the server moves what was written to storage, also after the answers
        return {**answer, "server_cpu": self._server.cpu_seconds() - before}
