"""Runs the Apache Ivy that PySpark ships, so that no Maven or Gradle is needed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import threading
from collections import deque
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from connector.errors import JarDownloadError
from connector.local._java import Java
from connector.local._process import SupervisedProcess
from connector.local._progress import JarProgress
from pravega_serde.errors import MissingExtraError

__all__ = ["REPOSITORY_VARIABLE", "find_ivy", "resolve"]

REPOSITORY_VARIABLE: Final = "PRAVEGA_SERDE_MAVEN_REPOSITORY"
_RESOLVE_SECONDS: Final = 1800.0
_JAR_NAME: Final = "[artifact]-[revision](-[classifier]).[ext]"


def find_ivy() -> Path:
    """The Ivy jar of the installed PySpark, found without importing it; raises MissingExtraError."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise MissingExtraError("pyspark", "spark", purpose="fetching the embedded server")


def resolve(
    module: str, java: Java, *, cache: Path, target: Path, progress: JarProgress, follow_poms: bool = False
) -> None:
    """Put what the ``ivy.xml`` text ``module`` asks for into ``target``, through an Ivy cache that may be half full.

    ``follow_poms`` also takes what the published descriptions depend on. Raises JarDownloadError.
    """
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "ivy.xml").write_text(module)
    (cache / "settings.xml").write_text(_settings(cache, follow_poms=follow_poms))
    command = [
        str(java.path),
        "-Xmx256m",
        # Ivy would otherwise make a folder in the user's home.
        f"-Divy.default.ivy.user.dir={cache}",
        *("-jar", str(find_ivy())),
        *("-settings", str(cache / "settings.xml")),
        *("-ivy", str(cache / "ivy.xml")),
        *("-confs", "default"),
        *("-retrieve", f"{target}/{_JAR_NAME}"),
    ]
    process = SupervisedProcess(command, output=subprocess.PIPE)
    stop = threading.Timer(_RESOLVE_SECONDS, process.close)
    stop.start()
    try:
        last = _follow(process, progress)
        code = process.wait(_RESOLVE_SECONDS)
    finally:
        stop.cancel()
        process.close()
    if code != 0 or not target.is_dir():
        raise JarDownloadError(
            f"fetching the server's jars failed: {_reason(last)}; check the network, or name a mirror of Maven Central "
            f"in {REPOSITORY_VARIABLE}"
        )


def _settings(cache: Path, *, follow_poms: bool) -> str:
    repository = os.environ.get(REPOSITORY_VARIABLE)
    root = f" root={quoteattr(repository)}" if repository else ""
    # Digests of our own are checked afterwards; Ivy's would cost a request for each jar.
    poms = "" if follow_poms else ' usepoms="false" checksums=""'
    return (
        "<ivysettings>\n"
        f"  <caches defaultCacheDir={quoteattr(str(cache))}/>\n"
        '  <settings defaultResolver="main"/>\n'
        f'  <resolvers><ibiblio name="main" m2compatible="true"{poms}{root}/></resolvers>\n'
        "</ivysettings>\n"
    )


def _follow(process: SupervisedProcess, progress: JarProgress) -> list[str]:
    """Report each jar that Ivy says has arrived; the last lines of what else it says."""
    last: deque[str] = deque(maxlen=200)
    for raw in process.output:
        line = raw.decode(errors="replace").strip()
        if line.startswith("found "):
            progress.found()
        elif line.startswith("[SUCCESSFUL"):
            progress.arrived()
        elif line:
            last.append(line)
    return list(last)


def _reason(lines: list[str]) -> str:
    """The most telling line: a network's failure rather than the missing jar that follows from it."""
    for sign in ("Exception", "FAILED DOWNLOADS", "not found"):
        telling = [line for line in lines if sign in line]
        if telling:
            return telling[0][:300]
    return lines[-1][:300] if lines else "Ivy said nothing"
