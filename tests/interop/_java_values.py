"""The Java side of the object stream tests: javac and java of the JDK, no jar."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pravega_connector.local.jvm import find_java
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

__all__ = ["JavaValues"]

_SOURCES: Final = Path(__file__).parent / "java_serde"
_SECONDS: Final = 120


class JavaValues:
    """The compiled programs of ``java_serde``: one writes events, one reads ours, one prints class descriptors.

    ``with_sources`` are classes to use instead of the ones in ``Model.java``: :meth:`verify` is what reads them.
    """

    def __init__(self, folder: Path, *, with_sources: Sequence[Path] = ()) -> None:
        self._folder = folder
        java = find_java()
        self._java, self.version = java.path, java.version
        if with_sources:
            compile_java(java, [*with_sources, _SOURCES / "Verify.java", _SOURCES / "Canonical.java"], folder)
        else:
            compile_java(java, _SOURCES.glob("*.java"), folder)

    def _run(self, *arguments: str, text: str = "") -> list[str]:
        command = [str(self._java), "-Xmx256m", *SOON_READY, "-cp", str(self._folder), *arguments]
        done = subprocess.run(command, input=text, check=True, timeout=_SECONDS, capture_output=True, encoding="ascii")
        return done.stdout.splitlines()

    def generate(self) -> list[dict[str, Any]]:
        """Events that Java wrote: case, hex, value as Java reads it, stable (Java writes the same bytes again)."""
        return [json.loads(line) for line in self._run("Generate")]

    def verify(self, events: Sequence[bytes]) -> list[dict[str, Any]]:
        """Values that Java reads in each event: value and identical, or error."""
        return [json.loads(line) for line in self._run("Verify", text="".join(f"{event.hex()}\n" for event in events))]

    def descriptors(self, names: Sequence[str]) -> dict[str, bytes]:
        """Serialized ``ObjectStreamClass`` of each class."""
        return {
            name: bytes.fromhex(raw) for name, raw in (line.split(" ") for line in self._run("DumpDescriptors", *names))
        }
