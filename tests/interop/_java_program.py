"""Runs a program of java/ in one JVM, and asks it, each request with a deadline."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from benchmarks._drive import Peer
from pravega_connector.local import pravega_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.wire import StreamName
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

__all__ = ["JavaProgram", "java_command"]

_SOURCES: Final = Path(__file__).parent / "java"
_SECONDS: Final = 120.0


class JavaProgram:
    """The Java client against one controller, or without: the program ``name``. Context manager.

    It takes credentials from the environment variables of the Java client.
    """

    def __init__(self, name: str, controller: str = "", *, env: Mapping[str, str] | None = None) -> None:
        self._peer = Peer(name, java_command(name), env=env)
        self._controller = controller

    @property
    def pid(self) -> int:
        """The process, to be killed or held up."""
        return self._peer.pid

    def close(self) -> None:
        """End the JVM."""
        self._peer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _ask(self, do: str, stream: StreamName, **request: Any) -> Any:
        server = {"controller": self._controller, "scope": stream.scope, "stream": stream.stream}
        return self._answer(do, **request, **server)

    def _answer(self, do: str, **request: Any) -> Any:
        """To a request that needs no server."""
        return self._peer.ask(do, timeout=_SECONDS, **request)["value"]


def java_command(name: str) -> list[str]:
    """The command line that starts a program of java/."""
    logback = f"-Dlogback.configurationFile={_SOURCES / 'logback.xml'}"
    classes = f"{_classes()}:{pravega_jars()}/*"
    return [str(find_java().path), "-Xmx512m", *SOON_READY, logback, "-cp", classes, name]


@functools.cache
def _classes() -> Path:
    """All programs, compiled once for this process."""
    folder = Path(tempfile.mkdtemp(prefix="java-programs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    java = find_java()
    compile_java(java, _SOURCES.glob("*.java"), folder, pravega_jars())
    return folder
