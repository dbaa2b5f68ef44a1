"""Runs the Apache Ivy that PySpark ships, so that no Maven or Gradle is needed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

from connector.errors import JarDownloadError
from connector.local._java import Java
from connector.local._process import SupervisedProcess
from connector.local._progress import JarProgress
from pravega_serde.errors import MissingExtraError

__all__ = ["REPOSITORY_VARIABLE", "JarSet", "Module", "find_ivy", "resolve"]

REPOSITORY_VARIABLE: Final = "PRAVEGA_SERDE_MAVEN_REPOSITORY"
_RESOLVE_SECONDS: Final = 1800.0
_JAR_NAME: Final = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True, slots=True)
class Module:
    """One published module."""

    organisation: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class JarSet:
    """A server's main module and what belongs on its class path.

    ``forced`` versions win over what the published descriptions ask for. ``jars`` is how many jars come out, for the
    progress display only.
    """

    name: str
    main: Module
    forced: tuple[Module, ...]
    excluded_organisations: tuple[str, ...]
    excluded_modules: tuple[str, ...]
    jars: int

    @property
    def key(self) -> str:
        """Name of the set's folder: it changes with everything that decides which jars come out."""
        digest = hashlib.sha256(ivy_module(self).encode()).hexdigest()[:8]
        return f"{self.name}-{self.main.version}-{digest}"


def find_ivy() -> Path:
    """The Ivy jar of the installed PySpark, found without importing it; raises MissingExtraError."""
    spec = importlib.util.find_spec("pyspark")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise MissingExtraError("pyspark", "spark", purpose="fetching the embedded server")


def ivy_module(jars: JarSet) -> str:
    """The ``ivy.xml`` of a jar set."""
    wanted = [(jars.main, "false"), *((module, "true") for module in jars.forced)]
    lines = [
        '<ivy-module version="2.0">',
        f'  <info organisation="pravega-serde" module={quoteattr(jars.name)}/>',
        '  <configurations><conf name="default"/></configurations>',
        "  <dependencies>",
        *(
            f"    <dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)} "
            f'rev={quoteattr(module.version)} force="{force}" conf="default->default"/>'
            for module, force in wanted
        ),
        *(f"    <exclude org={quoteattr(name)}/>" for name in jars.excluded_organisations),
        *(f"    <exclude module={quoteattr(name)}/>" for name in jars.excluded_modules),
        "  </dependencies>",
        "</ivy-module>",
    ]
    return "\n".join(lines) + "\n"


def ivy_settings(cache: Path) -> str:
    """The ``ivysettings.xml``: one repository, and a cache of its own."""
    repository = os.environ.get(REPOSITORY_VARIABLE)
    root = f" root={quoteattr(repository)}" if repository else ""
    return (
        "<ivysettings>\n"
        f"  <caches defaultCacheDir={quoteattr(str(cache))}/>\n"
        '  <settings defaultResolver="main"/>\n'
        f'  <resolvers><ibiblio name="main" m2compatible="true"{root}/></resolvers>\n'
        "</ivysettings>\n"
    )


def resolve(jars: JarSet, java: Java, *, cache: Path, target: Path, progress: JarProgress) -> None:
    """Put the set's jars into ``target``. Raises JarDownloadError; the Ivy cache keeps what has arrived until then."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "ivy.xml").write_text(ivy_module(jars))
    (cache / "settings.xml").write_text(ivy_settings(cache))
    command = [
        str(java.path),
        "-Xmx256m",
        # Ivy would otherwise make a folder in the user's home.
        f"-Divy.default.ivy.user.dir={cache}",
        "-jar",
        str(find_ivy()),
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
            f"fetching {jars.main.name} {jars.main.version} failed: {_reason(last)}; check the network, or name a "
            f"mirror of Maven Central in {REPOSITORY_VARIABLE}"
        )


def _follow(process: SupervisedProcess, progress: JarProgress) -> list[str]:
    """Report Ivy's output line by line; the last lines that tell of trouble."""
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
    telling = [line for line in lines if "Exception" in line or "FAILED" in line or "not found" in line]
    return "; ".join(telling[:2] or lines[-1:] or ["Ivy said nothing"])[:400]
