"""The Java side of the Protobuf tests: javac, and protobuf-java from the jars of the schema registry."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from pravega_connector.local import registry_jars
from pravega_connector.local.jvm import find_java
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

__all__ = ["ProtoPeer"]

_SOURCE: Final = Path(__file__).parent / "ProtoPeer.java"
_SECONDS: Final = 120


class ProtoPeer:
    """The compiled program; ``newer`` are jars before the registry's."""

    def __init__(self, folder: Path, newer: Sequence[Path] = ()) -> None:
        self._folder = folder
        java, jars = find_java(), registry_jars()
        self._java, self._classpath = java.path, ":".join([str(folder), *map(str, newer), f"{jars}/*"])
        compile_java(java, [_SOURCE], folder, jars)

    def _run(self, mode: str, files: FileDescriptorSet, *arguments: object, text: str = "") -> list[dict[str, Any]]:
        target = self._folder / "set"
        target.write_bytes(files.SerializeToString())
        command = [str(self._java), "-Xmx256m", *SOON_READY, "-cp", self._classpath, "ProtoPeer", mode]
        command += [str(target), *map(str, arguments)]
        done = subprocess.run(command, input=text, check=False, timeout=_SECONDS, capture_output=True, encoding="ascii")
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def verify(self, files: FileDescriptorSet, events: Sequence[tuple[str, bytes]]) -> list[dict[str, Any]]:
        """Values that Java reads in each event, with the message name: ``value`` as JSON and ``hex``, or ``error``."""
        return self._run("verify", files, text="".join(f"{name} {event.hex()}\n" for name, event in events))

    def generate(self, files: FileDescriptorSet, seed: int, count: int, *names: str) -> list[dict[str, Any]]:
        """Random messages of these types: ``message``, ``hex``, ``value``."""
        return self._run("generate", files, seed, count, *names)
