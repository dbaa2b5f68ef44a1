"""Finds a Java that runs the servers."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connector.errors import JavaNotFoundError

__all__ = ["MINIMUM_VERSION", "Java", "find_java"]

MINIMUM_VERSION: Final = 17
_ANSWER_SECONDS: Final = 30
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')
_ADVICE: Final = (
    f"install Java {MINIMUM_VERSION} or newer (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless; "
    "macOS: brew install openjdk@17) or set JAVA_HOME to one"
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java launcher and its feature version (17, 21, …)."""

    path: Path
    version: int


def find_java() -> Java:
    """The Java of ``JAVA_HOME``, else the one on ``PATH``.

    Raises JavaNotFoundError where there is none or it is too old; the text says what to install.
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
        # macOS has a /usr/bin/java that only says that there is no Java.
        said = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
        raise JavaNotFoundError(f"{path} -version tells no version ({said[:200]}): {_ADVICE}")
    return int(match[1])
