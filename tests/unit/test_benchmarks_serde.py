"""The benchmark of the serializers: everybody reads the same from the same bytes, and a run of it works."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from benchmarks.serde import _run, _subject
from benchmarks.serde._peers import plain_peer
from benchmarks.serde._subject import Subject, ours
from benchmarks.serde.avro import _mapped

#: More than one batch, and what is left.
COUNT = 60


@pytest.fixture(scope="module")
def subjects() -> dict[str, Subject]:
    return {subject.name: subject for subject in _run.all_subjects(COUNT)}


NAMES = [
    *("Java strings", "Java longs", "Java flat objects", "Avro flat", "Avro nested"),
    *("Protobuf flat", "Protobuf nested"),
    *("JSON flat", "JSON sparse, shuffled", "JSON nested, skewed", "JSON flat, 50 at a time"),
]


def rows(made: Any) -> list[Any]:
    """Values of any of the libraries' outputs, comparable."""
    if isinstance(made, list) and made and isinstance(made[0], pa.Array | pa.Table | pa.RecordBatch):
        return [value for part in made for value in rows(part)]
    if isinstance(made, pa.Table | pa.RecordBatch):
        made = made.to_pylist()
    return [_plain(value) for value in (made.to_pylist() if isinstance(made, pa.Array) else made)]


def _plain(value: Any) -> Any:
    """Maps are mappings, zones are left out, enums are names, what is empty is nothing."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in _mapped(value).items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.replace(tzinfo=None) if hasattr(value, "tzinfo") else value


def test_all_are_there(subjects: dict[str, Subject]) -> None:
    assert list(subjects) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_libraries_read_what_we_read(name: str, subjects: dict[str, Subject]) -> None:
    subject = subjects[name]
    mine = ours(subject)
    for way in ("decode rows", "decode columns"):
        wanted = rows(mine[way]())
        assert len(wanted) == len(subject.events)
        for library, work in subject.libraries.get(way, {}).items():
            if library == "ptars" and "nested" in name:
                continue  # its enums are numbers
            assert rows(work()) == wanted, (library, way)


@pytest.mark.parametrize("name", NAMES)
def test_libraries_write_what_we_write(name: str, subjects: dict[str, Subject]) -> None:
    subject = subjects[name]
    mine = ours(subject)
    for way in ("encode rows", "encode columns"):
        written = _events(mine[way]())
        if way == "encode columns" and "sparse" in name:  # a column has no absent keys, and one order of keys
            written = [json.dumps({k: v for k, v in json.loads(event).items() if v is not None}) for event in written]
            assert list(map(json.loads, written)) == list(map(json.loads, subject.events))
            continue
        assert written == subject.events
        for library, work in subject.libraries.get(way, {}).items():
            if "json" not in name.lower():  # spaces, and how numbers look
                assert [bytes(event) for event in _events(work())] == subject.events, library


def _events(made: Any) -> list[bytes]:
    if isinstance(made, list) and made and isinstance(made[0], pa.Array):
        made = pa.concat_arrays(made)
    return made.to_pylist() if isinstance(made, pa.Array) else list(made)


def test_javaobj_reads_them(subjects: dict[str, Subject]) -> None:
    subject = subjects["Java strings"]
    count, make = subject.slow["decode rows"]
    assert make(subject.events[:count])() == ours(subject)["decode rows"]()


def test_ours_without_extras_answers() -> None:
    with plain_peer(COUNT) as peer:
        for way in _subject.WAYS:
            answer = peer.ask("run", subject="Avro flat", way=way)
            assert answer["events"] % COUNT == 0 < answer["seconds"]


def test_every_library_is_named_in_the_readme() -> None:
    page = (Path(_run.__file__).parents[1] / "README.md").read_text()
    assert all(package in page for module in _run._FORMATS for package in module.PACKAGES)
