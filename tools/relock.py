"""Recreate a lock file: ``python -m tools.relock python``, or the jars of a server.

``python`` locks the newest Python packages that ``pyproject.toml`` allows, for each supported Python and platform, with
the hashes of their files. ``./run`` installs from that file. Run it after a change of a requirement.

The others, ``pravega-standalone``, ``schemaregistry`` and ``kafka``, lock the jars of a server. Run them after a change
of a recipe below, the only place that says which jars are requested and which are left out. The Ivy that PySpark ships
follows the published descriptions from there, which takes a few minutes; it needs Java, the extra ``spark`` and Maven
Central. Afterwards, raise the version that ``pravega_connector.local`` uses, or for Kafka the tests.

``--check`` writes nothing and fails if the file would change.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import pyspark

from pravega_connector.local.jars import JarSet
from pravega_connector.local.jvm import find_java
from pravega_connector.local.maven import Jar

__all__ = ["main"]

_SECONDS: Final = 1800.0
_ROOT: Final = Path(__file__).resolve().parents[1]
_PYTHON: Final = "python"
_PYTHON_LOCK: Final = _ROOT / "requirements-lock.txt"
# uv installs from the lock; PySpark, an sdist, is built with setuptools.
_INSTALLERS: Final = ("setuptools", "uv")
#: Those that ./run installs.
_EXTRAS: Final = ("demo", "docs", "test", "dev")
_JAR_NAME: Final = "[artifact]-[revision](-[classifier]).[ext]"


@dataclass(frozen=True, slots=True)
class _Module:
    organisation: str
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class _Recipe:
    """``beside`` is asked for with the server; ``forced`` versions win over what the published descriptions ask for."""

    server: _Module
    forced: tuple[_Module, ...]
    excluded_organisations: tuple[str, ...]
    excluded_modules: tuple[str, ...]
    beside: tuple[_Module, ...] = ()
    folder: Path | None = None
    """Folder of the lock file; None: next to ``pravega_connector.local``."""


_REGISTRY_VERSION: Final = "0.6.0"
_REGISTRY_JACKSON: Final = "2.12.7"
_SERDES_VERSION: Final = "3.1.4"
_FLINK_VERSION: Final = "2.1.0"

_RECIPES: Final = {
    "pravega-standalone": _Recipe(
        server=_Module("io.pravega", "pravega-standalone", "0.13.0"),
        # The published description leaves protobuf-java at 2.5.0, which the controller cannot run with.
        forced=(_Module("com.google.protobuf", "protobuf-java", "3.19.6"),),
        excluded_organisations=(
            # Long-term storage on other systems, which a server on one machine never touches.
            "org.apache.hadoop",
            "com.azure",
            "com.google.cloud",
            "software.amazon.awssdk",
            "com.emc.ecs",
            # Its old ASM breaks the REST server on Java 17.
            "com.sun.jersey",
            # Logging goes only through logback.
            "log4j",
        ),
        excluded_modules=("slf4j-reload4j",),
    ),
    "schemaregistry": _Recipe(
        server=_Module("io.pravega", "schemaregistry-server", _REGISTRY_VERSION),
        # With which Java programs write and read what the registry describes.
        beside=(
            _Module("io.pravega", "schemaregistry-client", _REGISTRY_VERSION),
            _Module("io.pravega", "schemaregistry-serializers", _REGISTRY_VERSION),
        ),
        # The versions that wrote the vectors under tests/vectors: those which the serializers ask for.
        forced=(
            _Module("org.apache.avro", "avro", "1.11.1"),
            _Module("com.google.protobuf", "protobuf-java", "3.21.7"),
            _Module("com.google.protobuf", "protobuf-java-util", "3.21.7"),
            *(
                _Module("com.fasterxml.jackson.core", name, _REGISTRY_JACKSON)
                for name in ("jackson-annotations", "jackson-core", "jackson-databind")
            ),
        ),
        excluded_organisations=(),
        # The first was never published; logging goes only through logback.
        excluded_modules=("pravega-keycloak-client", "slf4j-simple"),
    ),
    # A broker for tests of the ingestion from Kafka.
    "kafka": _Recipe(
        server=_Module("org.apache.kafka", "kafka_2.13", "4.1.2"),
        forced=(),
        excluded_organisations=(),
        excluded_modules=(),
        folder=_ROOT / "tests" / "support",
    ),
    # Serializers of Apicurio for Kafka: the other side of the tests of its events, and of Confluent's.
    "apicurio-serdes": _Recipe(
        server=_Module("io.apicurio", "apicurio-registry-avro-serde-kafka", _SERDES_VERSION),
        beside=(
            _Module("io.apicurio", "apicurio-registry-protobuf-serde-kafka", _SERDES_VERSION),
            # This version was not published for JSON.
            _Module("io.apicurio", "apicurio-registry-jsonschema-serde-kafka", "3.0.7"),
        ),
        forced=tuple(
            _Module("io.apicurio", f"apicurio-registry-{name}", _SERDES_VERSION)
            for name in ("serde-kafka-common", "serde-common", "schema-resolver", "java-sdk", "common")
        ),
        excluded_organisations=(),
        excluded_modules=(),
        folder=_ROOT / "tests" / "support",
    ),
    # Flink's formats for Confluent's registry, with the registry's own client in Java.
    "flink-confluent": _Recipe(
        server=_Module("org.apache.flink", "flink-sql-avro-confluent-registry", _FLINK_VERSION),
        beside=(_Module("org.apache.flink", "flink-core", _FLINK_VERSION),),
        forced=(),
        excluded_organisations=(),
        excluded_modules=(),
        folder=_ROOT / "tests" / "support",
    ),
}


def main(arguments: list[str]) -> int:
    """Resolve requirements and write their lock file; with --check, return 1 if it would change."""
    parser = argparse.ArgumentParser(prog="python -m tools.relock", description="Recreate a lock file.")
    parser.add_argument("name", choices=(_PYTHON, *_RECIPES))
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if the file would change")
    chosen = parser.parse_args(arguments)
    if chosen.name == _PYTHON:
        path, text = _PYTHON_LOCK, _python_packages(upgrade=not chosen.check)
    else:
        path, text = _server_jars(chosen.name)
    if chosen.check:
        same = path.read_text() == text
        print(f"{path} {'is up to date' if same else 'would change'}")
        return 0 if same else 1
    path.write_text(text)
    print(f"wrote {path}")
    return 0


def _python_packages(*, upgrade: bool) -> str:
    """Return the lock of all extras and of the build tools; without ``upgrade``, versions stay.

    Its first lines name the packages of each extra that ``./run`` installs.
    """
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    tools = "\n".join([*project["build-system"]["requires"], *_INSTALLERS])
    oldest = project["project"]["requires-python"].removeprefix(">=")

    def compile_to(file: Path, *options: str, more: str) -> str:
        uv = Path(sys.prefix, "bin", "uv")
        command = [str(uv), "pip", "compile", "--quiet", "--no-config", "--universal", "--python-version", oldest]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", *options, "-o", str(file)]
        subprocess.run(
            [*command, "pyproject.toml", "-"], cwd=_ROOT, input=more, text=True, check=True, timeout=_SECONDS
        )
        return file.read_text()

    with tempfile.TemporaryDirectory() as folder:
        whole = Path(folder, "lock.txt")
        if not upgrade:
            shutil.copy(_PYTHON_LOCK, whole)
        text = compile_to(whole, "--all-extras", "--generate-hashes", more=tools)
        head = [
            "# The Python packages of the extras, with the hashes of their files; made by python -m tools.relock python"
        ]
        for extra in _EXTRAS:
            part = compile_to(Path(folder, extra), "--extra", extra, "--constraints", str(whole), more="")
            head.append(f"# {extra}: {' '.join(sorted(set(re.findall('^([^ =]+)==', part, re.MULTILINE))))}")
    return "\n".join([*head, text])


def _server_jars(name: str) -> tuple[Path, str]:
    """Return a server's lock file and its text."""
    recipe = _RECIPES[name]
    with tempfile.TemporaryDirectory() as folder:
        jars = sorted(_resolve(_ivy_module(recipe), Path(folder)))
    title = f"# {name} {recipe.server.version} and all that it needs, with SHA-256 and bytes"
    head = f"{title}; made by python -m tools.relock {name}"
    text = "\n".join([head, *(jar.to_line() for jar in jars)]) + "\n"
    return JarSet.lock_file(name, recipe.server.version, recipe.folder), text


def _ivy_module(recipe: _Recipe) -> str:
    asked = (recipe.server, *recipe.beside)
    wanted = [*((module, "false") for module in asked), *((module, "true") for module in recipe.forced)]
    return "\n".join(
        [
            '<ivy-module version="2.0">',
            f'  <info organisation="pravega-serde" module={quoteattr(recipe.server.name)}/>',
            '  <configurations><conf name="default"/></configurations>',
            "  <dependencies>",
            *(
                f"    <dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)} "
                f'rev={quoteattr(module.version)} force="{force}" conf="default->default"/>'
                for module, force in wanted
            ),
            *(f"    <exclude org={quoteattr(name)}/>" for name in recipe.excluded_organisations),
            *(f"    <exclude module={quoteattr(name)}/>" for name in recipe.excluded_modules),
            "  </dependencies>",
            "</ivy-module>\n",
        ]
    )


def _resolve(module: str, folder: Path) -> list[Jar]:
    """Jars that the ``ivy.xml`` text asks for and all that these depend on, fetched into the folder."""
    cache, target = folder / "ivy", folder / "jars"
    cache.mkdir()
    (cache / "ivy.xml").write_text(module)
    (cache / "settings.xml").write_text(
        "<ivysettings>\n"
        f"  <caches defaultCacheDir={quoteattr(str(cache))}/>\n"
        '  <settings defaultResolver="main"/>\n'
        '  <resolvers><ibiblio name="main" m2compatible="true"/></resolvers>\n'
        "</ivysettings>\n"
    )
    (ivy,) = Path(pyspark.__file__).with_name("jars").glob("ivy-*.jar")
    command = [
        str(find_java().path),
        # Ivy would otherwise make a folder in the user's home.
        f"-Divy.default.ivy.user.dir={cache}",
        *("-jar", str(ivy)),
        *("-settings", str(cache / "settings.xml")),
        *("-ivy", str(cache / "ivy.xml")),
        *("-confs", "default"),
        *("-retrieve", f"{target}/{_JAR_NAME}"),
    ]
    subprocess.run(command, check=True, timeout=_SECONDS, stdout=sys.stderr)
    (report,) = cache.glob("*-default.xml")
    return _jars(report, target)


def _jars(report: Path, folder: Path) -> list[Jar]:
    """Jars that Ivy's report names, with the digests and sizes of the files."""
    jars = []
    for module in ElementTree.parse(report).getroot().iter("module"):
        for revision in module.iter("revision"):
            for artifact in revision.iter("artifact"):
                place = module.attrib["organisation"], artifact.attrib["name"], revision.attrib["name"]
                classifier = artifact.get("extra-1.m.classifier", "")
                jar = Jar(*place, classifier, artifact.attrib["ext"], sha256="", size=0)
                data = (folder / jar.file_name).read_bytes()
                digest = hashlib.sha256(data).hexdigest()
                jars.append(Jar(*place, classifier, jar.extension, digest, len(data)))
    return jars


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
