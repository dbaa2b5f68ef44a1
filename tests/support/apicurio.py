"""A real Apicurio Registry in memory, from Maven Central. It also has the interface of Confluent's registry."""

from __future__ import annotations

import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

import httpx2

from pravega_connector.local.file_lock import file_lock
from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.local.launch import HOST, Launched, NotReadyError, start_in_folder, start_until_ready
from pravega_connector.local.maven import Jar
from pravega_connector.tcp_ports import free_ports

__all__ = ["CONFLUENT_PATH", "apicurio_registry"]

#: Path of the interface of Confluent's registry.
CONFLUENT_PATH: Final = "/apis/ccompat/v7"

_VERSION: Final = "3.0.9"
_ARCHIVE: Final = Jar(
    "io.apicurio",
    "apicurio-registry-app",
    _VERSION,
    "all",
    "tar.gz",
    "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43",
    108_860_403,
)
_JARS: Final = JarSet("apicurio-registry-app", _VERSION, (_ARCHIVE,))
_MAIN: Final = f"apicurio-registry-app-{_VERSION}-runner.jar"
#: Half of it is for one attempt, and less than the timeout of a test.
_START_SECONDS: Final = 400.0
_UNPACK_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Server(Launched):
    title: ClassVar[str] = "Apicurio registry"

    port: int

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}"


@contextmanager
def apicurio_registry() -> Iterator[str]:
    """Yield the address of a registry that ends with the block."""
    java, program = find_java(), _unpacked()

    def spawn() -> _Server:
        (port,) = free_ports(1)

        def prepare(folder: Path) -> list[str]:
            settings = {
                "quarkus.http.host": HOST,
                "quarkus.http.port": port,
                "apicurio.storage.kind": "sql",
                "apicurio.storage.sql.kind": "h2",
                "quarkus.http.access-log.enabled": "false",
                "quarkus.log.level": "WARN",
                "java.io.tmpdir": folder,
            }
            return [
                str(java.path),
                *("-Xmx256m", "-XX:+ExitOnOutOfMemoryError", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
                *(f"-D{name}={value}" for name, value in settings.items()),
                *("-jar", str(program / _MAIN)),
            ]

        return _Server(*start_in_folder("apicurio-", prepare), port)

    server = start_until_ready(spawn, _await_answer, seconds=_START_SECONDS)
    try:
        yield server.uri
    finally:
        server.process.close()


def _unpacked() -> Path:
    """Return the folder with the program, which the first caller unpacks next to its archive."""
    folder = ensure_jars(_JARS)
    program = folder.with_name(f"{folder.name}-unpacked")
    with file_lock(folder.with_name(f"{program.name}.lock"), _UNPACK_SECONDS):
        if not (program / _MAIN).exists():
            partial = folder.with_name(f"{program.name}.partial")
            with tarfile.open(folder / _ARCHIVE.file_name) as archive:
                archive.extractall(partial, filter="data")
            partial.rename(program)
    return program


def _await_answer(server: _Server, deadline: float) -> None:
    while time.monotonic() < deadline:
        server.check()
        try:
            if httpx2.get(f"{server.uri}{CONFLUENT_PATH}/subjects", timeout=10).status_code == httpx2.codes.OK:
                return server.check()
        except httpx2.HTTPError:
            pass
        time.sleep(0.05)
    raise NotReadyError("the Apicurio registry was not ready in time")
