"""A little of what ``python -m tests.fuzz`` does at length."""

from __future__ import annotations

import itertools

import pytest

from tests.fuzz import FORMATS, load
from tests.fuzz._run import Finding, Totals, explode, fuzz
from tests.fuzz._target import Target

#: Inputs of a format: a few, and more of them in the long test.
FEW, MORE = 150, 500

#: Those whose failure would be plain, and which are soon done; Java's have their own test.
BOMBS = {
    ("avro", "boxes of a byte"),
    ("avro", "defaults"),
    ("avro", "members"),
    ("avro", "nested lists"),
    ("avro", "nulls, sized"),
    ("avro", "tree in a tree"),
    ("avro", "wide and null, less"),
    ("json", "exponents"),
    ("json", "nested objects"),
    ("json", "numbers of one hash as keys"),
}


def told(totals: Totals) -> list[str]:
    return [
        f"{each.target}: {each.what}: {each.detail:.200}: {each.event[:99].hex()}" for each in totals.findings.values()
    ]


@pytest.mark.parametrize("inputs", [FEW, pytest.param(MORE, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FORMATS)
def test_mutated_inputs(name: str, inputs: int) -> None:
    totals = Totals(longest=5.0)
    *_, last = fuzz(load(name), inputs, 20261121, totals)
    assert last is totals
    assert totals.inputs >= inputs
    assert totals.good > inputs // 50
    assert told(totals) == []


@pytest.mark.long
@pytest.mark.parametrize(("name", "bomb"), sorted(BOMBS))
def test_bombs(name: str, bomb: str) -> None:
    totals, found = Totals(longest=5.0), 0
    for target in load(name).targets:
        if bomb in target.bombs:
            explode(
                Target(
                    name=bomb,
                    serializer=target.serializer,
                    corpus=target.corpus,
                    bombs={bomb: target.bombs[bomb]},
                    columns=target.columns,
                ),
                totals,
            )
            found += 1
    assert found
    assert told(totals) == []
    assert 0 < totals.seconds < 5


class Careless:
    """A serializer that breaks every promise."""

    def __init__(self) -> None:
        self._calls = itertools.count()

    def deserialize(self, data: bytes) -> object:
        if data == b"hang":
            while True:
                next(self._calls)
        if data == b"grow":
            return list(range(4_000_000))
        return {}[data]


@pytest.mark.parametrize(
    ("event", "what"), [(b"hang", "takes too long"), (b"grow", "takes too much"), (b"x", "KeyError")]
)
def test_what_breaks_a_promise_is_found(event: bytes, what: str) -> None:
    target = Target(name="careless", serializer=Careless(), corpus=[], bombs={"bomb": lambda: event}, columns=False)  # type: ignore[arg-type]
    totals = Totals(longest=0.02)
    explode(target, totals)
    found = list(totals.findings.values())
    assert any(each.what == f"bomb as a row{': ' if what == 'KeyError' else ' '}{what}" for each in found), found
    assert all(isinstance(each, Finding) and each.event == event for each in found)
