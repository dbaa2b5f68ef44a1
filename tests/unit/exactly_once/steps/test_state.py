"""State of a log of steps: its JSON form, and which updates may follow it."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from pravega_connector.errors import StepsStateError
from pravega_connector.exactly_once.steps.state import (
    ALL,
    Life,
    Named,
    Step,
    StepsJson,
    StepsState,
    Update,
    Verdict,
    check,
    owed_item,
    undecided,
)
from pravega_serde import DeserializationError

LIFE = Life("scope/stream", 1)
ONE, TWO, THREE = (uuid.UUID(int=number) for number in (1, 2, 3))
FIRST, PART = Named("scope/stream", ONE), Named("scope/other", THREE)


def step(transaction: uuid.UUID, before: object, after: object, item: str = "a") -> Step:
    return Step(transaction, "scope/stream", {item: (before, after)})


@pytest.fixture
def state() -> StepsState:
    """Run r has claimed a, which is at 0, and recorded a step to 5."""
    state = StepsState(LIFE)
    state.apply(Update(run="r", life=LIFE, claim={"a": 0}))
    return state.apply(Update(run="r", life=LIFE, step=step(ONE, 0, 5)))


UPDATES = [
    Update(run="r", life=LIFE, decided={ONE: True}, step=replace(step(TWO, 5, 9), after=(FIRST,), note={"pid": 1})),
    Update(run="r", life=LIFE, decided={ONE: True}, step=replace(step(TWO, 5, 9), parts=(PART,), content=[["a", 5]])),
    Update(run="r", life=LIFE, decided={ONE: True}, step=replace(step(TWO, 5, 9), after=(FIRST, PART))),
    Update(run="r", life=LIFE, step=replace(step(ONE, 0, 5), parts=(PART,), content=[["a", 0]])),
    Update(run="s", life=LIFE, decided={ONE: True}, owed={ONE: ("scope/other",)}, claim={ALL: None}),
    Update(run="r", life=LIFE, decided={ONE: False}, settled={"a": (0, 7)}, note={"schema": "x"}),
    Update(run="s", life=LIFE, decided={ONE: True}, claim={ALL: None}, forget=("a",)),
    Update(run="s", life=Life("scope/stream", 2), decided={ONE: True}, claim={"a": 3}),
    Update(run="s", life=Life("scope/other", 0), claim={"folder/b.csv": None}),
]


@pytest.mark.parametrize("update", UPDATES, ids=range(len(UPDATES)))
def test_json_and_back(state: StepsState, update: Update) -> None:
    updates, states = StepsJson(Update), StepsJson(StepsState)
    assert updates.deserialize(updates.serialize(update)) == update
    after = state.copy().apply(update)
    assert states.deserialize(states.serialize(after)) == after


@pytest.mark.parametrize("update", UPDATES, ids=range(len(UPDATES)))
def test_an_update_that_was_applied_half_way_can_be_applied_again(state: StepsState, update: Update) -> None:
    """As after an interrupt: also after other assignments."""
    once = state.copy().apply(update)
    assert once.copy().apply(update) == once


def test_a_committed_step_moves_its_items_and_an_aborted_one_does_not(state: StepsState) -> None:
    assert state.copy().apply(Update(run="r", life=LIFE, decided={ONE: True})).positions == {"a": 5}
    aborted = state.copy().apply(Update(run="r", life=LIFE, decided={ONE: False}))
    assert (aborted.positions, aborted.steps) == ({"a": 0}, {})


def test_an_owed_part_is_an_item_until_a_step_ends_it(state: StepsState) -> None:
    content = [["a", 0, 5]]
    state.apply(Update(run="r", life=LIFE, step=replace(step(ONE, 0, 5), parts=(PART,), content=content)))
    state.apply(Update(run="s", life=LIFE, decided={ONE: True}, owed={ONE: (PART.stream,)}, claim={ALL: None}))
    assert (state.owed, state.positions["a"]) == ({PART.stream: content}, 5)
    again = Step(TWO, PART.stream, {owed_item(PART.stream): (content, None)})
    assert check(state, Update(run="s", life=LIFE, step=again))[0] is Verdict.WRITE
    state.apply(Update(run="s", life=LIFE, step=again))
    assert state.copy().apply(Update(run="t", life=LIFE, decided={TWO: False}, claim={ALL: None})).owed == state.owed
    state.apply(Update(run="t", life=LIFE, decided={TWO: True}, claim={ALL: None}))
    assert (state.owed, state.positions) == ({}, {"a": 5})


def test_a_later_life_begins_empty_and_remembers_the_earlier(state: StepsState) -> None:
    state.apply(Update(run="s", life=Life("scope/other"), claim={"a": 3}))
    assert (state.positions, state.owners, state.steps) == ({"a": 3}, {"a": "s"}, {})
    assert state.is_over(LIFE)
    assert check(state, Update(run="r", life=LIFE, claim={"a": 0}))[0] is Verdict.LOST


@pytest.mark.parametrize(
    ("update", "verdict"),
    [
        (Update(run="r", life=LIFE, step=step(ONE, 0, 5)), Verdict.DONE),
        (Update(run="r", life=LIFE, step=replace(step(ONE, 0, 5), parts=(PART,))), Verdict.WRITE),
        (Update(run="s", life=LIFE, step=replace(step(ONE, 0, 5), parts=(PART,))), Verdict.LOST),
        (Update(run="r", life=LIFE, step=step(TWO, 5, 9)), Verdict.UNDECIDED),
        (Update(run="r", life=LIFE, decided={ONE: True}, step=step(TWO, 5, 9)), Verdict.WRITE),
        (Update(run="r", life=LIFE, decided={ONE: True}, step=step(TWO, 0, 9)), Verdict.LOST),
        (Update(run="r", life=LIFE, decided={ONE: False}, step=step(TWO, 0, 9)), Verdict.WRITE),
        (Update(run="s", life=LIFE, step=step(TWO, 0, 9)), Verdict.LOST),
        (Update(run="s", life=LIFE, settled={"a": (0, 9)}), Verdict.LOST),
        (Update(run="r", life=LIFE, decided={ONE: True}, settled={"a": (5, 9)}), Verdict.WRITE),
        (Update(run="r", life=LIFE, decided={ONE: True}, settled={"a": (0, 9)}), Verdict.LOST),
        (Update(run="s", life=LIFE, claim={"a": 0}), Verdict.UNDECIDED),
        (Update(run="s", life=LIFE, claim={"b": 0}), Verdict.WRITE),
        (Update(run="s", life=LIFE, claim={ALL: None}), Verdict.UNDECIDED),
        (Update(run="s", life=LIFE, decided={ONE: True}, claim={ALL: None}, step=step(TWO, 5, 6)), Verdict.WRITE),
        (Update(run="s", life=Life("scope/stream", 0), claim={"b": 0}), Verdict.LOST),
        (Update(run="s", life=Life("scope/stream", 2), claim={"b": 0}), Verdict.UNDECIDED),
        (Update(run="r", life=Life("scope/stream", 2), decided={ONE: True}, step=step(TWO, 5, 6)), Verdict.LOST),
    ],
)
def test_which_update_may_follow(state: StepsState, update: Update, verdict: Verdict) -> None:
    assert check(state, update)[0] is verdict
    assert bool(undecided(state, update)) == (verdict is Verdict.UNDECIDED) or verdict is Verdict.LOST


def test_a_later_version_is_refused() -> None:
    value = StepsState(LIFE).to_json() | {"version": 2}
    with pytest.raises(StepsStateError, match="version 2"):
        StepsState.from_json(value)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"run": 1}', b'{"run": "r", "life": ["a"]}', b"\xff"])
def test_damaged_updates_are_named(data: bytes) -> None:
    with pytest.raises(DeserializationError, match="log of steps"):
        StepsJson(Update).deserialize(data)
