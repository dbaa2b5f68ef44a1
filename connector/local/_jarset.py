"""Which jars a server needs: a list of exact versions with their digests, one file per server beside this one.

The list replaces the search through some two hundred published descriptions (measured: 19 s instead of 140 s for a
first start), and no jar that differs from the one tested is ever run. ``python -m connector.local._relock NAME`` makes
the list.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import quoteattr

__all__ = ["Jar", "JarSet"]

_NONE: Final = "-"


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """One published archive and the SHA-256 of its bytes; ``classifier`` is empty for a module's main one."""

    organisation: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the server's folder."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    def is_at(self, path: Path) -> bool:
        """Whether the file is this jar, byte for byte."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False

    def to_line(self) -> str:
        """Its line in a list."""
        words = (self.organisation, self.name, self.version, self.classifier or _NONE, self.extension, self.sha256)
        return " ".join(words)

    @classmethod
    def from_line(cls, line: str) -> Jar:
        """The inverse of :meth:`to_line`."""
        organisation, name, version, classifier, extension, sha256 = line.split()
        return cls(organisation, name, version, "" if classifier == _NONE else classifier, extension, sha256)


@dataclass(frozen=True, slots=True)
class JarSet:
    """A server's class path."""

    name: str
    version: str
    jars: tuple[Jar, ...]

    @classmethod
    def load(cls, name: str, version: str) -> JarSet:
        """Read the list that ships with this package."""
        lines = lock_file(name, version).read_text().splitlines()
        return cls(name, version, tuple(Jar.from_line(line) for line in lines if not line.startswith("#")))

    @property
    def key(self) -> str:
        """Name of the set's folder in the cache: it changes with every jar."""
        text = "\n".join(jar.to_line() for jar in self.jars)
        return f"{self.name}-{self.version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def ivy_module(self) -> str:
        """The ``ivy.xml`` that asks for exactly these jars."""
        return "\n".join(
            [
                '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">',
                f'  <info organisation="pravega-serde" module={quoteattr(self.name)}/>',
                '  <configurations><conf name="default"/></configurations>',
                "  <dependencies>",
                *map(_dependency, self.jars),
                "  </dependencies>",
                "</ivy-module>\n",
            ]
        )


def lock_file(name: str, version: str) -> Path:
    """Where a set's list is kept."""
    return Path(__file__).with_name(f"{name}-{version}.lock")


def _dependency(jar: Jar) -> str:
    classifier = f" m:classifier={quoteattr(jar.classifier)}" if jar.classifier else ""
    return (
        f"    <dependency org={quoteattr(jar.organisation)} name={quoteattr(jar.name)} rev={quoteattr(jar.version)} "
        f'transitive="false" conf="default->default"><artifact name={quoteattr(jar.name)} '
        f"type={quoteattr(jar.extension)} ext={quoteattr(jar.extension)}{classifier}/></dependency>"
    )
