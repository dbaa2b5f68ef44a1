"""The public methods of Java's clients, and the table of their counterparts here, ``coverage.toml``.

The methods come from the jars, with ``javap``. ``python -m tools.java_api`` lists methods without a line in the table,
and lines without a method. ``tools.pages`` writes the table to ``docs/reference/java-coverage.md``.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from pravega_connector.local.jars import registry_jars
from pravega_connector.local.jvm import find_java
from tests.support.jvm import SOON_READY

__all__ = ["JARS", "Line", "Status", "differences", "java_methods", "lines"]

_TABLE: Final = Path(__file__).with_name("coverage.toml")
_SECONDS: Final = 120

#: Jar -> packages and single classes that applications use.
JARS: Final[Mapping[str, tuple[str, ...]]] = {
    "pravega-client-0.13.0.jar": ("io.pravega.client.",),
    "schemaregistry-client-0.6.0.jar": ("io.pravega.schemaregistry.client.",),
    "schemaregistry-serializers-0.6.0.jar": ("io.pravega.schemaregistry.serializers.",),
    "schemaregistry-serializers-shared-0.6.0.jar": (
        "io.pravega.schemaregistry.serializer.shared.codec.",
        "io.pravega.schemaregistry.serializer.shared.credentials.",
        "io.pravega.schemaregistry.serializer.shared.schemas.",
        "io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig$SerializerConfigBuilder",
    ),
    "schemaregistry-serializers-avro-0.6.0.jar": ("io.pravega.schemaregistry.serializer.avro.schemas.",),
    "schemaregistry-serializers-json-0.6.0.jar": ("io.pravega.schemaregistry.serializer.json.schemas.",),
    "schemaregistry-serializers-protobuf-0.6.0.jar": ("io.pravega.schemaregistry.serializer.protobuf.schemas.",),
}
# Methods that every class of a kind has: of objects, enums, builders and closeable objects.
_OF_EVERY_CLASS: Final = frozenset(
    {"equals", "hashCode", "toString", "canEqual", "compareTo"}
    | {"values", "valueOf", "builder", "toBuilder", "build", "close", "asImpl"}
)

Status = Literal["yes", "partly", "no"]


@dataclass(frozen=True, slots=True)
class Line:
    """Line of the table: methods of a Java class, and their counterpart or the reason that there is none."""

    java_class: str
    """Full name of the class; a class inside another one follows a dot."""
    methods: tuple[str, ...]
    """Names with the simple types of their parameters; empty for the whole class."""
    status: Status
    here: str


def lines(table: Path = _TABLE) -> Iterator[Line]:
    """Yield the lines of the table, in its order. Raises ValueError for one of another form."""
    for java_class, found in tomllib.loads(table.read_text()).items():
        for status, given in found.items():
            if status not in ("yes", "partly", "no"):
                raise ValueError(f"{java_class}: {status!r} is not yes, partly or no")
            yield from (_line(java_class, status, each) for each in ([[given]] if isinstance(given, str) else given))


def _line(java_class: str, status: Status, given: Any) -> Line:
    if not (isinstance(given, list) and all(isinstance(each, str) for each in given) and given):
        raise ValueError(f"{java_class}: a line is a list of methods and a text, not {given!r}")
    *methods, here = given
    return Line(java_class, tuple(methods), status, here)


def java_methods() -> dict[str, set[str]]:
    """Return the public methods and constructors of each class of the jars. Exceptions have none.

    The jars are downloaded if they are missing.
    """
    folder, javap = registry_jars(), _javap()  # it has Pravega's client, too
    found: dict[str, set[str]] = {}
    for jar, prefixes in JARS.items():
        options = [*(f"-J{option}" for option in SOON_READY), "-public", "-cp", f"{folder}/*"]
        command = [javap, *options, *_classes(folder / jar, prefixes)]
        done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, text=True)
        found |= parsed(done.stdout)
    return found


def _javap() -> str:
    beside = find_java().path.with_name("javap")
    return str(beside) if beside.exists() else "javap"


def _classes(jar: Path, prefixes: Iterable[str]) -> Iterator[str]:
    """Yield the classes of a jar, without its implementation packages and anonymous classes."""
    with zipfile.ZipFile(jar) as archive:
        for file in archive.namelist():
            name = file.removesuffix(".class").replace("/", ".")
            if name == file or re.search(r"\$\d", name):
                continue
            for prefix in prefixes:
                if name == prefix or (prefix.endswith(".") and name.startswith(prefix) and ".impl." not in name):
                    yield name


def parsed(text: str) -> dict[str, set[str]]:
    """Return the methods and constructors of each public class in the output of ``javap -public``."""
    found: dict[str, set[str]] = {}
    methods: set[str] | None = None
    for line in text.splitlines():
        if not line.startswith(" "):
            declared = re.match(r"public (?:\w+ )*?(?:class|interface) ([\w.$]+)(.*)", line)
            methods = None
            if declared:
                methods = found.setdefault(declared[1].replace("$", "."), set())
            is_error = bool(declared) and _is_error(line)
        elif methods is not None and not is_error and (named := re.search(r"([\w.$]+)\((.*)\)", _erased(line))):
            name = _simple(named[1])
            if name not in _OF_EVERY_CLASS:
                methods.add(f"{name}({', '.join(map(_simple, filter(None, named[2].split(','))))})")
    return found


def _is_error(declaration: str) -> bool:
    return re.search(r"extends \S*(Exception|Exceptions|Error)\b", declaration) is not None


def _erased(text: str) -> str:
    """Remove the type parameters."""
    while (shorter := re.sub(r"<[^<>]*>", "", text)) != text:
        text = shorter
    return text


def _simple(name: str) -> str:
    return re.split(r"[.$]", name.strip())[-1]


def differences(methods: Mapping[str, set[str]], table: Iterable[Line]) -> list[str]:
    """Return the methods and classes without exactly one line, and the lines without a method or a class."""
    left = {name: set(found) for name, found in methods.items()}
    faults = []
    for line in table:
        if line.java_class not in methods:
            faults.append(f"no such class: {line.java_class}")
            continue
        if not line.methods:
            left[line.java_class].clear()
        for method in line.methods:
            if method in left[line.java_class]:
                left[line.java_class].remove(method)
            else:
                faults.append(f"no such method, or two lines: {line.java_class}.{method}")
    named = {line.java_class for line in table}
    faults += [f"no line: {name}" for name in methods if "Exception" in name and name not in named]
    return faults + [f"no line: {name}.{each}" for name, found in left.items() for each in sorted(found)]
