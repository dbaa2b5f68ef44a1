"""The compiler of the Java that starts the servers, or else the one on the path."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from connector.local.jvm import Java

__all__ = ["compile_java"]

_SECONDS: Final = 180


def compile_java(java: Java, sources: Iterable[Path], classes: Path, jars: Path | None = None) -> None:
    """Compile source files into a folder of classes; ``jars`` is a folder with what they need besides the JDK."""
    beside = java.path.with_name("javac")
    javac = str(beside) if beside.exists() else "javac"
    needed = [] if jars is None else ["-cp", f"{jars}/*"]
    command = [javac, "-nowarn", *needed, "-d", str(classes), *sorted(map(str, sources))]
    subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True)
