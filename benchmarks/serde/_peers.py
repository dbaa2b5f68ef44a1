"""Other processes: a warm JVM, and our serializers without the extra packages."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks._drive import Peer
from pravega_connector.local import registry_jars
from pravega_connector.local.jvm import find_java

__all__ = ["JavaPeer", "plain_peer"]

_PROGRAM: Final = Path(__file__).parents[1] / "java" / "SerdePeer.java"
_LOGBACK: Final = f"-Dlogback.configurationFile={_PROGRAM.with_name('logback.xml')}"


class JavaPeer:
    """SerdePeer.java in one JVM, as a context manager. ``folder`` holds the events that are passed to it."""

    def __init__(self, folder: Path) -> None:
        java = find_java()
        jars = registry_jars()
        # The serial collector, because all peers use one thread. The program is compiled at the start.
        command = [str(java.path), "-Xmx1g", "-XX:+UseSerialGC", _LOGBACK, "-cp", f"{jars}/*", str(_PROGRAM)]
        self.peer = Peer("Java", command)
        self._folder = folder

    def runs(self, name: str, form: str, events: Sequence[bytes], schema: str) -> Callable[[str], Mapping[str, Any]]:
        """Return a function that runs ``read`` or ``write`` over events. Java reads them from a file the first time."""
        file = self._folder / f"{name.replace(' ', '-')}.events"
        file.write_bytes(b"".join(struct.pack(">i", len(event)) + event for event in events))
        return lambda verb: self.peer.ask(verb, format=form, file=str(file), schema=schema)

    def __enter__(self) -> JavaPeer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.peer.close()


def plain_peer(count: int) -> Peer:
    """Return our serializers in a process in which the ``fast`` extra seems not to be installed."""
    return Peer("ours, no extras", [sys.executable, "-m", "benchmarks.peers.plain_serde", str(count)])
