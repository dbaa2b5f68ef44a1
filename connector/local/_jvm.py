"""What the servers' JVMs have in common: configuration files, a log of warnings, and how their end is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from connector.errors import LocalServerError
from connector.local._ports import is_free
from connector.local._process import SupervisedProcess

__all__ = [
    "HOST",
    "LOG_NAME",
    "PortTakenError",
    "check_port",
    "check_running",
    "last_words",
    "port_taken",
    "with_log",
    "write_configuration",
]

HOST: Final = "127.0.0.1"
LOG_NAME: Final = "server.log"
_LOGBACK: Final = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level [%thread] %logger{36}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


class PortTakenError(LocalServerError):
    """Another process was faster; the server has to be started on other ports."""


def check_port(port: int) -> None:
    """Raise LocalServerError for a port that was asked for and is in use; 0 is any free one."""
    if port and not is_free(port):
        raise LocalServerError(f"port {port} is in use; end what listens there, or use port 0 for any free one")


def write_configuration(folder: Path, settings: Mapping[str, object]) -> None:
    """Write ``server.properties`` and ``logback.xml`` into a server's folder, with a folder ``temp`` beside them."""
    (folder / "temp").mkdir()
    (folder / "logback.xml").write_text(_LOGBACK)
    # The escapes of Java's properties are those of JSON.
    lines = [f"{name}={json.dumps(str(value))[1:-1]}\n" for name, value in settings.items()]
    (folder / "server.properties").write_text("".join(lines))


def check_running(name: str, process: SupervisedProcess, log: Path) -> None:
    """Raise LocalServerError if the server has ended, PortTakenError if it cannot have its ports."""
    code = process.exit_code()
    printed = log.read_bytes()
    if port_taken(printed):
        raise PortTakenError(f"a port of the {name} was taken by another process; see {log}")
    if code is not None:
        raise LocalServerError(f"the {name} ended with exit code {code} ({last_words(printed)}); see {log}")


def port_taken(printed: bytes) -> bool:
    """Whether a JVM said that it cannot have a port."""
    return b"Address already in use" in printed


def last_words(printed: bytes) -> str:
    """What a JVM said before it ended: the cause of its last exception rather than a line of the stack."""
    lines = [line for line in printed.decode(errors="replace").strip().splitlines() if not line.startswith("\tat ")]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["it said nothing"])[-1][:200]


def with_log(message: str, log: Path) -> str:
    """The message, with the log's name if it is not in it already."""
    return message if str(log) in message else f"{message}; see {log}"
