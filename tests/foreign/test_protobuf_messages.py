"""Protobuf's own test types: the short form of :mod:`tests.foreign.protobuf_messages`, with Java and without."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.foreign._corpora import PROTOBUF_JAVA
from tests.foreign.protobuf_messages import SETS, Counts, compare, compare_with_java
from tests.interop.java_proto._peer import ProtoPeer

#: Types with messages, the number of messages for each, and the number of types with columns.
NUMBERS = {"conformance": (35, 4, 27), "unit tests": (228, 1, 178)}


@pytest.mark.parametrize("name", SETS)
def test_rows_and_columns_are_what_googles_library_has(name: str) -> None:
    types, messages, in_columns = NUMBERS[name]
    counts = Counts()
    assert list(compare(SETS[name](), messages, random.Random(3), counts)) == []
    assert counts == Counts(types, types * messages, in_columns * messages)


def test_editions_are_among_them() -> None:
    assert {file.edition for file in SETS["conformance"]().file if file.syntax == "editions"} == {1000}


@pytest.mark.integration
def test_java_reads_and_writes_them_alike(tmp_path: Path) -> None:
    peer = ProtoPeer(tmp_path, [jar.file() for jar in PROTOBUF_JAVA])
    for name, files in SETS.items():
        types, messages, _ = NUMBERS[name]
        counts = Counts()
        assert list(compare_with_java(peer, files(), messages, random.Random(4), counts)) == []
        assert counts.by_java == types * messages
