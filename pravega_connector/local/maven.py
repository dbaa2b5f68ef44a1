"""Archives in Maven repositories: coordinates, digest and size."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

REPOSITORY_VARIABLE: Final = "PRAVEGA_SERDE_MAVEN_REPOSITORY"
MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2/"
_NONE: Final = "-"


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """Published archive: coordinates, SHA-256 and size in bytes.

    ``classifier`` is empty for the main archive of a module.
    """

    organisation: str
    name: str
    version: str
    classifier: str
    extension: str
    sha256: str
    size: int

    @property
    def file_name(self) -> str:
        """Name in the server's folder, and last part of :attr:`path`."""
        classifier = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{classifier}.{self.extension}"

    @property
    def path(self) -> str:
        """Path below the root of a Maven repository."""
        return f"{self.organisation.replace('.', '/')}/{self.name}/{self.version}/{self.file_name}"

    @property
    def identity(self) -> str:
        """Coordinates and digest, which is the line of the lock file without the size."""
        return " ".join(
            (self.organisation, self.name, self.version, self.classifier or _NONE, self.extension, self.sha256)
        )

    def is_at(self, path: Path) -> bool:
        """Return True if the file is this jar, byte for byte."""
        try:
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256
        except OSError:
            return False

    def to_line(self) -> str:
        """Return the line of the lock file."""
        return f"{self.identity} {self.size}"

    @classmethod
    def from_line(cls, line: str) -> Jar:
        """Parse a line that :meth:`to_line` returned."""
        organisation, name, version, classifier, extension, sha256, size = line.split()
        return cls(organisation, name, version, "" if classifier == _NONE else classifier, extension, sha256, int(size))
