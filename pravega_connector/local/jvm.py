"""Java: its path, the servers' command lines, and the configuration files in their folders."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pravega_connector.errors import JavaNotFoundError

MINIMUM_VERSION: Final = 17
_ANSWER_SECONDS: Final = 30
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_ADVICE: Final = (
    f"install Java {MINIMUM_VERSION} or newer (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; "
    "macOS: brew install openjdk@17) or set JAVA_HOME to one"
)
_LOGBACK: Final = """\
<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{ISO8601} %-5level [%thread] %logger{36}: %msg%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"""


@dataclass(frozen=True, slots=True)
class Java:
    """Java launcher and its feature version (17, 21, …)."""

    path: Path
    version: int

    def command(
        self,
        jars: Path,
        folder: Path,
        main: Iterable[str],
        *,
        heap_mb: int,
        direct_mb: int | None = None,
        quick: bool = False,
        options: Iterable[str] = (),
    ) -> list[str]:
        """Return the command line of a server. ``main`` is its class and the arguments.

        ``folder`` has its configuration. ``heap_mb`` and ``direct_mb`` limit its memory in MiB, on the heap and outside
        of it. Set ``quick`` for a server that is started often and does little work. It then starts faster and compiles
        less.
        """
        return [
            str(self.path),
            f"-Xmx{heap_mb}m",
            *([] if direct_mb is None else [f"-XX:MaxDirectMemorySize={direct_mb}m"]),
            # A server without memory does not answer or recover. The end of a server is noticed.
            "-XX:+ExitOnOutOfMemoryError",
            *(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"] if quick else []),
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={folder / 'temp'}",
            f"-Dlogback.configurationFile={folder / 'logback.xml'}",
            *options,
            *("-cp", f"{jars}/*"),
            *main,
        ]


def write_configuration(folder: Path, settings: Mapping[str, object]) -> Path:
    """Write ``server.properties`` and ``logback.xml`` into the folder of a server, and create ``temp``.

    Return the path of ``server.properties``.
    """
    (folder / "temp").mkdir()
    (folder / "logback.xml").write_text(_LOGBACK)
    properties = folder / "server.properties"
    # Java's properties have the same escapes as JSON.
    properties.write_text("".join(f"{name}={json.dumps(str(value))[1:-1]}\n" for name, value in settings.items()))
    return properties


def find_java() -> Java:
    """Return the Java of ``JAVA_HOME``, or else the one on ``PATH``.

    Raises JavaNotFoundError if Java is missing or too old. The text says which version to install.
    """
    path = _launcher()
    version = _version(path)
    if version < MINIMUM_VERSION:
        raise JavaNotFoundError(f"{path} is Java {version}, the Pravega server needs {MINIMUM_VERSION}: {_ADVICE}")
    return Java(path, version)


def _launcher() -> Path:
    home = os.environ.get("JAVA_HOME")
    if home:
        path = Path(home, "bin", "java")
        if not os.access(path, os.X_OK):
            raise JavaNotFoundError(f"JAVA_HOME is {home}, which has no bin/java: {_ADVICE}")
        return path
    found = shutil.which("java")
    if found is None:
        raise JavaNotFoundError(f"no Java on PATH and JAVA_HOME is not set: {_ADVICE}")
    return Path(found)


def _version(path: Path) -> int:
    try:
        done = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaNotFoundError(f"{path} -version does not run ({error}): {_ADVICE}") from error
    match = _VERSION.search(done.stderr + done.stdout)
    if done.returncode != 0 or match is None:
        # The /usr/bin/java of macOS may only print that Java is not installed.
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise JavaNotFoundError(f"{path} -version tells no version ({said[:200]}): {_ADVICE}")
    return int(match[1])
