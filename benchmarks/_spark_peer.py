"""Scala connector: its jar, the Python with a matching PySpark, and Spark's functions to decode events there."""

from __future__ import annotations

import subprocess
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pravega_connector.local.jars import JarSet, ensure_jars
from pravega_connector.local.jvm import find_java
from pravega_connector.local.maven import Jar

__all__ = ["HOW_TO_POINT", "ScalaPeer"]

HOW_TO_POINT: Final = (
    "The Scala connector is left out. To compare with it, build its jar and make an environment with PySpark 3.5, as "
    "benchmarks/README.md says, and give both: --peer-jar JAR and --peer-python PYTHON, or the variables "
    "PRAVEGA_PEER_JAR and PRAVEGA_PEER_PYTHON."
)
_ROOT: Final = Path(__file__).parent
#: Spark's own functions for Avro and Protobuf, which are not part of PySpark. Maven Central has no matching
#: spark-protobuf 3.5; version 3.4.1 runs on 3.5.
_SPARK: Final = JarSet(
    "spark-formats",
    "3.5.7",
    (
        Jar(
            "org.apache.spark",
            "spark-avro_2.12",
            "3.5.7",
            "",
            "jar",
            "b0660bc224cbd1eb3ae144001c1328863060e64f1834dd7bbadc1ddbf09d2b15",
            207233,
        ),
        Jar(
            "org.apache.spark",
            "spark-protobuf_2.12",
            "3.4.1",
            "",
            "jar",
            "a4813e9aa0e2982196a8c7bafeabed1ea5a746654e2e87668857201e187411cc",
            1793080,
        ),
    ),
)
_COMPILE_SECONDS: Final = 300.0


@dataclass(frozen=True, slots=True)
class ScalaPeer:
    """Built Scala connector, and the Python with a PySpark that can load it."""

    jar: Path
    python: Path

    def jars(self, folder: Path) -> str:
        """Return all jars that its Spark must load, separated by commas.

        Jars that are built for it are written to the folder.
        """
        formats = sorted(ensure_jars(_SPARK).glob("*.jar"))
        return ",".join(map(str, (self.jar, *formats, self._functions(folder))))

    def _functions(self, folder: Path) -> Path:
        """Return the jar of ObjectColumns.java, which reads Java objects for Spark SQL."""
        classes = folder / "functions"
        classes.mkdir()
        javac = find_java().path.with_name("javac")
        source = _ROOT / "java" / "ObjectColumns.java"
        command = [str(javac), "--release", "11", "-cp", f"{self._spark_jars()}/*", "-d", str(classes), str(source)]
        subprocess.run(command, check=True, timeout=_COMPILE_SECONDS)
        jar = folder / "functions.jar"
        with zipfile.ZipFile(jar, "w") as out:
            for file in sorted(classes.glob("*.class")):
                out.write(file, file.name)
        return jar

    def _spark_jars(self) -> Path:
        command = [str(self.python), "-c", "import pyspark; print(pyspark.__path__[0])"]
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
        return Path(found.stdout.strip()) / "jars"
