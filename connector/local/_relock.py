"""Makes the list of a server's jars anew: ``python -m connector.local._relock NAME``. For maintainers only.

Here, and nowhere else, stands what is asked for and what is left out; Ivy follows the published
descriptions from there.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

from connector.local._ivy import resolve
from connector.local._jarset import Jar, lock_file
from connector.local._java import find_java
from connector.local._progress import JarProgress

__all__ = ["main"]


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


_REGISTRY_VERSION: Final = "0.6.0"
_REGISTRY_JACKSON: Final = "2.12.7"

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
            # Logging goes through logback alone.
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
        # The first was never published; logging goes through logback alone.
        excluded_modules=("pravega-keycloak-client", "slf4j-simple"),
    ),
}


def main(name: str) -> None:
    """Resolve the recipe of that name and write its list."""
    recipe = _RECIPES[name]
    with tempfile.TemporaryDirectory() as folder, JarProgress(f"Jars of {name}") as progress:
        cache, target = Path(folder, "ivy"), Path(folder, "jars")
        resolve(_ivy_module(recipe), find_java(), cache=cache, target=target, progress=progress, follow_poms=True)
        (report,) = cache.glob("*-default.xml")
        jars = sorted(_jars(report, target))
    head = f"# {name} {recipe.server.version} and all that it needs; made by python -m connector.local._relock {name}"
    path = lock_file(name, recipe.server.version)
    path.write_text("\n".join([head, *(jar.to_line() for jar in jars)]) + "\n")
    print(f"{len(jars)} jars in {path}")  # noqa: T201


def _jars(report: Path, folder: Path) -> list[Jar]:
    """What Ivy's report says was resolved, with the digests of the files."""
    jars = []
    for module in ElementTree.parse(report).getroot().iter("module"):  # noqa: S314 - Ivy has just written it
        for revision in module.iter("revision"):
            for artifact in revision.iter("artifact"):
                place = module.attrib["organisation"], artifact.attrib["name"], revision.attrib["name"]
                classifier = artifact.get("extra-1.m.classifier", "")
                jar = Jar(*place, classifier, artifact.attrib["ext"], "")
                digest = hashlib.sha256((folder / jar.file_name).read_bytes()).hexdigest()
                jars.append(Jar(*place, classifier, jar.extension, digest))
    return jars


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


if __name__ == "__main__":
    main(*sys.argv[1:])
