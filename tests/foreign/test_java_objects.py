"""Serialized objects of other projects: read, written again, and read back by Java.

Some corpora are files that are in a project's tests; the others are made here by a library's own classes.
"""

from __future__ import annotations

import collections
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from pravega_connector.local.jvm import find_java
from pravega_serde.java import NOT_WRITTEN, JavaObject, JavaSerializer
from tests.foreign._corpora import (
    COMMONS,
    COMMONS_3,
    COMMONS_3_TESTS,
    COMMONS_TESTS,
    HARMONY_TESTS,
    JODA,
    JODA_TESTS,
    LOG4J,
    LOG4J_TESTS,
    SPRING_SECURITY,
    Corpus,
)
from tests.interop._javac import compile_java
from tests.support.jvm import SOON_READY

SERIALIZER = JavaSerializer()
_SOURCES = Path(__file__).parent / "java"
_MAGIC = b"\xac\xed\x00\x05"
_SECONDS = 120
_BY_IDENTITY = ("Reference", "Identity")
"""Maps that Java itself does not make the same twice: soft references, hashes by identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Serialized objects of one project, and what is found in them."""

    stored: Corpus | None = None
    """The package that has them; None if ``program`` writes them."""
    wanted: str = ""
    program: str = ""
    classes: tuple[Corpus, ...] = ()
    """Jars of the classes."""
    count: int
    same_bytes: int
    """Objects that are written again byte for byte."""
    not_in_java: int = 0
    """Objects that Java cannot read itself: it lacks the class, or the class refuses them."""

    def read(self) -> dict[str, bytes]:
        """Objects of the package, by a name that can be a file's."""
        assert self.stored is not None
        members = self.stored.members(self.wanted)
        return {re.sub(r"\W", "_", path): data for path, data in members.items() if data.startswith(_MAGIC)}


CORPORA: Mapping[str, Objects] = {
    # Objects with other bytes hold hashed collections, and Java too writes their capacity differently.
    "commons-collections 4": Objects(
        # The library refuses four of its functors as unsafe.
        stored=COMMONS_TESTS,
        wanted=r"\.obj$",
        classes=(COMMONS, COMMONS_TESTS),
        count=176,
        same_bytes=116,
        not_in_java=4,
    ),
    "commons-collections 3": Objects(
        stored=COMMONS_3_TESTS, wanted=r"\.obj$", classes=(COMMONS_3,), count=146, same_bytes=93, not_in_java=1
    ),
    "joda-time": Objects(
        stored=JODA_TESTS, wanted=r"test/resources/.*\.dat$", classes=(JODA,), count=32, same_bytes=32, not_in_java=1
    ),
    # Harmony's own writer repeats a descriptor's signatures, which the JDK's and ours write once.
    "Harmony": Objects(stored=HARMONY_TESTS, wanted=r"\.ser$", count=169, same_bytes=137, not_in_java=18),
    "log4j": Objects(
        stored=LOG4J_TESTS, wanted=r"witness/serialization/.*\.bin$", classes=(LOG4J,), count=6, same_bytes=5
    ),
    "JDK": Objects(program="JdkObjects", count=184, same_bytes=178),
    "Spring Security": Objects(program="SpringObjects", classes=SPRING_SECURITY, count=28, same_bytes=22),
}
STORED = [name for name, objects in CORPORA.items() if objects.stored is not None]


def _again(event: bytes) -> bytes:
    written = SERIALIZER.serialize(SERIALIZER.deserialize(event))
    # Written values are read as equal values.
    assert SERIALIZER.serialize(SERIALIZER.deserialize(written)) == written
    return written


@pytest.mark.parametrize("corpus", STORED)
def test_every_object_is_read_and_written_again(corpus: str) -> None:
    objects = CORPORA[corpus]
    events = objects.read()
    assert len(events) == objects.count
    written = {name: _again(event) for name, event in events.items()}
    same = {name for name, event in events.items() if written[name] == event}
    assert len(same) == objects.same_bytes
    shorter = {name for name, event in events.items() if len(written[name]) < len(event)}
    assert all(len(written[name]) <= len(event) for name, event in events.items())
    assert not shorter or corpus == "Harmony"


@pytest.mark.parametrize(
    ("name", "field"), [("DateMidnight", "monthOfYear"), ("DateTime", "hourOfDay"), ("MutableDateTime", "hourOfDay")]
)
def test_properties_of_joda_write_their_fields_themselves(name: str, field: str) -> None:
    """The two objects that they write could as well be their two fields: only the hook tells."""
    (event,) = JODA_TESTS.members(rf"/{name}Property\.dat$").values()
    guessed = SERIALIZER.deserialize(event)
    assert guessed["iField"].class_name == f"org.joda.time.{name}"
    told = JavaSerializer(write_object={f"org.joda.time.{name}$Property": None})
    value = told.deserialize(event)
    assert (value["iField"], value["iInstant"]) == (NOT_WRITTEN, NOT_WRITTEN)
    ((instant, kind),) = value.annotations
    assert isinstance(instant, JavaObject)
    assert (instant.class_name, kind["iName"]) == (f"org.joda.time.{name}", field)
    assert SERIALIZER.serialize(guessed) == told.serialize(value) == event


def test_fields_that_were_written_by_a_deprecated_method_are_seen_not_to_be_there() -> None:
    (event,) = HARMONY_TESTS.members(r"/testFieldsDeprecated\.ser$").values()
    value = SERIALIZER.deserialize(event)
    assert set(value.data) == {NOT_WRITTEN}
    ((numbers, absent, inside, also_absent),) = value.annotations
    assert (len(numbers), absent, also_absent) == (30, None, None)
    assert inside["b"] == "A Space Odyssey"
    assert SERIALIZER.serialize(value) == event


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled programs of ``tests/foreign/java``."""
    jars, target = tmp_path_factory.mktemp("jars"), tmp_path_factory.mktemp("classes")
    for corpus in SPRING_SECURITY:
        (jars / corpus.file().name).symlink_to(corpus.file())
    compile_java(find_java(), _SOURCES.glob("*.java"), target, jars)
    return target


def _run(path: str, program: str, folder: Path) -> list[str]:
    options = [
        "-Xmx256m",
        *SOON_READY,
        "-Djava.awt.headless=true",
        "-Dorg.apache.commons.collections.enableUnsafeSerialization=true",
    ]
    command = [str(find_java().path), *options, "-cp", path, program, str(folder)]
    done = subprocess.run(command, check=True, timeout=_SECONDS, capture_output=True, text=True)
    return done.stdout.splitlines()


@pytest.mark.integration
@pytest.mark.parametrize("corpus", CORPORA)
def test_java_makes_the_same_of_our_bytes(corpus: str, classes: Path, tmp_path: Path) -> None:
    objects = CORPORA[corpus]
    path = ":".join([str(classes), *(str(jar.file()) for jar in objects.classes)])
    if objects.stored is None:
        _run(path, objects.program, tmp_path)
    else:
        for name, event in objects.read().items():
            (tmp_path / f"{name}.theirs").write_bytes(event)
    same_bytes = 0
    for theirs in tmp_path.glob("*.theirs"):
        event = theirs.read_bytes()
        written = _again(event)
        theirs.with_suffix(".ours").write_bytes(written)
        same_bytes += written == event
    verdicts = [line.split("\t") for line in _run(path, "ReadBack", tmp_path)]
    found = collections.Counter(verdict.partition(" ")[0] for verdict, _ in verdicts)
    unlike = [name for verdict, name in verdicts if verdict in ("different", "unstable")]
    assert all(any(word in name for word in _BY_IDENTITY) for name in unlike), unlike
    odd = [line for line in verdicts if line[0] != "same"]
    assert (len(verdicts), same_bytes, found["theirs"]) == (objects.count, objects.same_bytes, objects.not_in_java), odd
    assert found["same"] == objects.count - objects.not_in_java - len(unlike), odd


@pytest.mark.integration
def test_java_reads_what_classes_wrote_in_their_own_order(classes: Path, tmp_path: Path) -> None:
    _run(str(classes), "OwnOrders", tmp_path)
    said = JavaSerializer(write_object={"OwnOrders$Before": 1})
    for theirs in sorted(tmp_path.glob("*.theirs")):
        event = theirs.read_bytes()
        value = said.deserialize(event)
        assert said.serialize(value) == event, theirs.stem
        theirs.with_suffix(".ours").write_bytes(said.serialize(value))
        if theirs.stem == "Before":
            assert (value["number"], value["text"]) == (5, "text")
            assert value.annotations == ((b"\0\0\0\x09", "after"),)
        else:
            assert NOT_WRITTEN in value.data
            assert SERIALIZER.serialize(SERIALIZER.deserialize(event)) == event
    verdicts = dict(reversed(line.split("\t")) for line in _run(str(classes), "ReadBack", tmp_path))
    assert verdicts == dict.fromkeys(("Before", "Nothing", "Numbers", "Objects", "Sub"), "same")


@pytest.mark.integration
def test_java_reads_what_columns_write_by_a_sample(classes: Path, tmp_path: Path) -> None:
    _run(str(classes), "Samples", tmp_path)
    event = (tmp_path / "Cart.theirs").read_bytes()
    serializer = JavaSerializer(sample=event)
    column = serializer.decode_column(pa.array([event]))
    (row,) = column.to_pylist()
    assert (row["color"], row["first"]) == ("RED", {"count": 1, "color": "BLUE"})
    assert row["lines"] == [{"count": 2, "color": "RED"}, {"count": 3, "color": "BLUE"}]
    assert (row["byName"], row["all"], row["numbers"]) == ([("k", "BLUE")], ["BLUE"], [5])
    (tmp_path / "Cart.ours").write_bytes(serializer.encode_column(column)[0].as_py())
    assert _run(str(classes), "ReadBack", tmp_path) == ["same\tCart"]
