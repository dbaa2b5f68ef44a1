"""Compile the reader inside Spark's JVM: ``python -m tools.jvm``.

It needs ``javac`` 17 or newer and the jars of an installed PySpark. The result is in the package, next to its loader.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

import pyspark

from pravega_connector.spark.jvm.session import JAR
from pravega_connector.spark.versions import HAS_REAL_TIME

_SOURCES: Final = JAR.with_name("java")
#: Sources of real-time mode, in their own folder. A Spark without it does not load their classes.
_REAL_TIME: Final = "real_time"
_REAL_TIME_CLASS: Final = "pravegaserde/spark/RealTimeStream.class"
_SERVICE: Final = "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister"
#: Every entry has the same date, so equal sources give an equal file.
_DATE: Final = (1980, 1, 1, 0, 0, 0)


def compiler() -> str | None:
    """Return the path of ``javac``, of JAVA_HOME or on the path; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return (shutil.which("javac", path=f"{home}/bin") if home else None) or shutil.which("javac")


def is_current() -> bool:
    """Return True if the jar is newer than its sources, and has all that this Spark can use.

    A jar of a newer Spark is also for an older one.
    """
    if not JAR.is_file() or any(JAR.stat().st_mtime < each.stat().st_mtime for each in _SOURCES.rglob("*.java")):
        return False
    with zipfile.ZipFile(JAR) as jar:
        return not HAS_REAL_TIME or _REAL_TIME_CLASS in jar.namelist()


def build(javac: str) -> None:
    """Compile the sources into the jar. Raises CalledProcessError, with the compiler's text on standard error."""
    sources = sorted(str(each) for each in _SOURCES.rglob("*.java") if HAS_REAL_TIME or each.parent.name != _REAL_TIME)
    jars = Path(pyspark.__file__).with_name("jars")
    with tempfile.TemporaryDirectory() as folder:
        checks = "-Xlint:all,-processing,-classfile,-path,-serial"
        command = [javac, "--release", "17", checks, "-Werror", "-cp", f"{jars}/*", "-d", folder, *sources]
        subprocess.run(command, check=True)
        entries = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(Path(folder).rglob("*.class"))}
    entries[_SERVICE] = b"pravegaserde.spark.PravegaSource\n"
    part = JAR.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, data in sorted(entries.items()):
            jar.writestr(zipfile.ZipInfo(name, _DATE), data, zipfile.ZIP_DEFLATED)
    part.replace(JAR)


def main() -> int:
    """Compile if necessary; 1 without a compiler."""
    if is_current():
        return 0
    javac = compiler()
    if javac is None:
        print("no javac: install a JDK 17 or newer, or set JAVA_HOME; raw events are read by Python", file=sys.stderr)
        return 1
    build(javac)
    return 0


if __name__ == "__main__":
    sys.exit(main())
