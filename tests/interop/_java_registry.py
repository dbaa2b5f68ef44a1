"""The Java side of the registry serializers' tests: compiled here, each run its own JVM."""

from __future__ import annotations

import itertools
import json
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pravega_connector.local import registry_jars
from pravega_connector.local.jvm import find_java
from pravega_serde.registry import SchemaInfo, event_type
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

__all__ = ["JavaRegistry"]

_TESTS: Final = Path(__file__).parents[1]
_SOURCES: Final = Path(__file__).parent / "java_registry"
_SECONDS: Final = 180


class JavaRegistry:
    """The compiled programs of ``java_registry``. Events travel through files in ``folder``, one a group.

    ``few`` is how many events the smaller groups have, ``groups`` are those that are wanted: all if none is named.
    """

    def __init__(self, uri: str, folder: Path, *, few: int = 500, groups: Iterable[str] = ()) -> None:
        java = find_java()
        self._few, self._groups = few, [",".join(groups)] if groups else []
        self._uri, self._folder, self._java = uri, folder, java.path
        jars = registry_jars()
        self._classes = f"{folder}/classes:{jars}/*"
        compile_java(java, _SOURCES.glob("*.java"), folder / "classes", jars)
        (folder / "gold.pb").write_bytes(self.alarm_schema().data)

    def alarm_schema(self) -> SchemaInfo:
        """The schema of ``AlarmP`` from its ``.proto``."""
        made, source = self._folder / "gold.set", _TESTS / "integration" / "registry"
        options = [f"-I{source}", f"--descriptor_set_out={made}", "gold.proto"]
        subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True, timeout=_SECONDS)
        return event_type(made.read_bytes(), format="protobuf", type="com.example.proto.AlarmP").info

    def write(self) -> None:
        """Let Java write its events."""
        self.run("RegistryPeer", "write", self._uri, str(self._folder), *self._groups)

    def events(self, group: str) -> list[bytes]:
        """Events that Java wrote."""
        data, events, place = (self._folder / f"{group}.java").read_bytes(), [], 0
        while place < len(data):
            (size,) = struct.unpack_from(">i", data, place)
            events.append(data[place + 4 : place + 4 + size])
            place += 4 + size
        return events

    def give(self, group: str, events: Iterable[bytes]) -> None:
        """Put events where Java will read them."""
        parts = (struct.pack(">i", len(event)) + event for event in events)
        (self._folder / f"{group}.python").write_bytes(b"".join(parts))

    def read(self) -> list[dict[str, Any]]:
        """Results of Java's readers for them: group, reader, events, how many are wrong, and the first of those."""
        arguments = ("RegistryPeer", "read", self._uri, str(self._folder), *self._groups)
        return [json.loads(line) for line in self.run(*arguments)]

    def show(self, groups: Mapping[str, Sequence[bytes]]) -> dict[str, list[Any]]:
        """Return the JSON that Java's generic reader of all formats decodes from the events of each group."""
        for group, events in groups.items():
            self.give(group, events)
        lines = self.run("RegistryPeer", "show", self._uri, str(self._folder), ",".join(groups))
        assert len(lines) == sum(map(len, groups.values()))
        shown = map(json.loads, lines)
        return {group: list(itertools.islice(shown, len(events))) for group, events in groups.items()}

    def texts(self, schemas: Iterable[str]) -> list[tuple[str, str] | None]:
        """Full name and text of Avro schemas; None where Java finds no schema."""
        lines = self.run("SchemaText", text="".join(f"{schema}\n" for schema in schemas))
        return [(line.partition("\t")[0], line.partition("\t")[2]) if line else None for line in lines]

    def run(self, *arguments: str, text: str = "") -> list[str]:
        """The lines that a program prints."""
        logback = f"-Dlogback.configurationFile={_SOURCES.parent / 'java' / 'logback.xml'}"
        command = [str(self._java), "-Xmx512m", *SOON_READY, logback, "-Dfile.encoding=UTF-8"]
        command += [f"-Dfew={self._few}"]
        command += ["-Dstdout.encoding=UTF-8", "-cp", self._classes, *arguments]
        done = subprocess.run(
            command, input=text, check=True, timeout=_SECONDS, stdout=subprocess.PIPE, encoding="utf-8"
        )
        return done.stdout.splitlines()
