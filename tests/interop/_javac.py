"""The compiler of the Java that starts the servers, or else the one on the path; what it has compiled is kept."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pravega_connector.local.file_lock import file_lock
from pravega_connector.local.jars import cache_dir
from pravega_connector.local.jvm import Java

__all__ = ["compile_java"]

_SECONDS: Final = 180


def compile_java(java: Java, sources: Iterable[Path], classes: Path, jars: Path | None = None) -> None:
    """Compile source files into a folder of classes; ``jars`` is a folder with what they need besides the JDK.

    The same sources are compiled once per user: their classes stay in the cache folder, by the digest of the sources,
    the compiler and the names of the jars, which have their versions in them.
    """
    beside = java.path.with_name("javac")
    javac = str(beside) if beside.exists() else "javac"
    files = sorted(sources)
    kept = cache_dir() / "compiled" / _digest(f"{javac} {java.version}", files, jars)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(kept.with_suffix(".lock")):
        if not kept.exists():
            needed = [] if jars is None else ["-cp", f"{jars}/*"]
            with tempfile.TemporaryDirectory(dir=kept.parent) as made:
                command = [javac, "-nowarn", *needed, "-d", made, *map(str, files)]
                subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True)
                shutil.copytree(made, kept.with_suffix(".new"), dirs_exist_ok=True)
            kept.with_suffix(".new").rename(kept)
    shutil.copytree(kept, classes, dirs_exist_ok=True)


def _digest(compiler: str, sources: Iterable[Path], jars: Path | None) -> str:
    digest = hashlib.sha256(compiler.encode())
    for name in [] if jars is None else sorted(jar.name for jar in jars.glob("*.jar")):
        digest.update(f"\0{name}".encode())
    for source in sources:
        digest.update(f"\0{source.name}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:32]
