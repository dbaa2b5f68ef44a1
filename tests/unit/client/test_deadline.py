"""Times: of a call, of its attempts, of the pauses between them and between two looks."""

import itertools
import logging
import math
import random
import re
import threading
import time

import pytest

from pravega_connector.controller import methods as calls
from pravega_connector.controller.rpc import Rpc
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.retry import Attempts, ClusterHealth
from pravega_connector.errors import (
    ConnectionLostError,
    ControllerFailureError,
    ControllerUnavailableError,
    DeadlineExceededError,
    OutcomeUnknownError,
    PravegaError,
    StreamSealedError,
)

LOST = ConnectionLostError("lost")


@pytest.fixture
def again_soon() -> None:
    """The pauses themselves are what is tested here."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only sleeping moves; the pauses that were slept. Other threads keep the real one."""
    pauses: list[float] = []
    here, now, pause = threading.get_ident(), time.monotonic, time.sleep

    def sleep(seconds: float) -> None:
        (pauses.append if threading.get_ident() == here else pause)(seconds)

    monkeypatch.setattr(
        time, "monotonic", lambda: 1000.0 + math.fsum(pauses) if threading.get_ident() == here else now()
    )
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr("pravega_connector.core.retry._CHANCE.uniform", lambda low, high: high)
    return pauses


def attempts(seconds: float | None = None, health: ClusterHealth | None = None) -> Attempts:
    deadline = None if seconds is None else Deadline(seconds)
    return (health or ClusterHealth(15, 300)).attempts(logging.getLogger("pravega_connector.test"), "it", deadline)


# ---------------------------------------------------------------- shares


@pytest.mark.parametrize(
    ("seconds", "troubled", "share"),
    [
        (300, 0, 5.0),  # what a healthy server may be silent
        (300, 49, 5.0),
        (300, 100, 10.0),  # a tenth of the attempts
        (9, 0, 3.0),  # a third of a short time
        (2, 0, 1.0),  # but a second
        (0.5, 0, 0.5),  # and never more than there is
    ],
)
def test_an_attempt_has_its_share(clock, seconds, troubled, share):
    assert Deadline(seconds).share(troubled).left == pytest.approx(share)


@pytest.mark.parametrize(
    ("rpc", "again", "others", "seconds"),
    [
        (calls.SCOPE_EXISTS, False, False, 5.0),
        (calls.SCOPE_EXISTS, True, False, 5.0),
        (calls.SCOPE_EXISTS, True, True, 2.5),
        (calls.CREATE_STREAM, False, False, 5.0),
        (calls.CREATE_STREAM, False, True, 2.5),  # one that stands still must not have the time that work takes
        (calls.CREATE_STREAM, True, True, 7.0),
        (calls.SCALE, False, True, 15.0),  # it cannot be asked for again
    ],
)
def test_each_method_says_how_long_a_controller_may_be_silent(rpc: Rpc, again, others, seconds):
    assert rpc.quiet(again=again, others=others) == seconds


# ---------------------------------------------------------------- pauses


def test_a_pause_keeps_what_is_left_for_later(clock):
    deadline = Deadline(1.0)
    assert deadline.pause(0.25)
    assert deadline.pause(5, keep=0.25)
    assert not deadline.pause(5, keep=0.25)
    assert deadline.pause(5)
    assert not deadline.pause(5)
    assert clock == [0.25, 0.5, 0.25]


def test_looks_are_soon_at_first_and_end_where_none_can_be_done_in_time(clock):
    polls = Polls(Deadline(1.0), longest=0.1)
    assert list(itertools.takewhile(bool, (polls.again() for _ in range(100)))) == [True] * 12
    assert clock == pytest.approx([0.02, 0.03, 0.045, 0.0675] + [0.1] * 8)


def test_looks_with_their_own_deadlines_continue_to_the_end(clock):
    polls = Polls(Deadline(0.5), 0.1, 1.0, to_the_end=True)
    assert list(itertools.takewhile(bool, (polls.again() for _ in range(10)))) == [True] * 4
    assert clock == pytest.approx([0.1, 0.15, 0.225, 0.025])
    assert not Polls(Deadline(0), to_the_end=True).again()


# ---------------------------------------------------------------- attempts


def test_pauses_between_attempts_double_up_to_two_seconds(clock):
    with attempts(300) as many:
        for _ in range(8):
            many.again(LOST)
    assert clock == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0])


def test_pauses_leave_the_sequence_of_a_seeded_program_alone(monkeypatch):
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    random.seed(7)
    expected = random.random()
    random.seed(7)
    with attempts(300) as many:
        many.again(LOST)
    assert slept
    assert random.random() == expected


def test_the_last_attempt_has_some_time(clock):
    with attempts(0.2) as many:
        many.failed(LOST)
        many.again(LOST)
        assert many.deadline.left == pytest.approx(0.1)
        many.again(LOST)
        assert many.deadline.left == pytest.approx(0.05)
        with pytest.raises(ConnectionLostError):
            many.again(LOST)


def test_attempts_without_an_end_stay_short(clock):
    with attempts(math.inf) as many:
        for _ in range(3000):
            many.again(LOST)
        assert sum(clock) > 5000
        assert many.share().left == pytest.approx(30)
        assert re.match(r"it: unreachable for 5\d\d\d s, retrying without a time limit; last error: ", many.describe())


@pytest.mark.parametrize("late", [DeadlineExceededError("late"), ControllerUnavailableError("late")])
def test_what_had_no_time_hides_no_reason(clock, late):
    with attempts(0.1) as many:
        many.again(ControllerFailureError("the reason"))
        time.sleep(1)
        with pytest.raises(ControllerFailureError, match="the reason"):
            many.again(late)


def test_another_error_may_take_its_place(clock):
    with attempts(0) as many, pytest.raises(OutcomeUnknownError):
        many.again(LOST, OutcomeUnknownError("unknown"))


def test_a_function_is_called_until_it_does_not_fail(clock):
    outcomes, seen, health = iter([LOST, LOST, None]), list[PravegaError](), ClusterHealth(15, 300)

    def attempt(share: Deadline) -> str:
        if (error := next(outcomes)) is not None:
            raise error
        return f"done, with {share.left:g} s"

    assert attempts(300, health).run(attempt, seen.append) == "done, with 5 s"
    assert seen == [LOST, LOST]
    assert health.counters.as_dict()["retries"] == 2


def test_what_cannot_pass_is_raised_at_once(clock):
    def attempt(_: Deadline) -> None:
        raise StreamSealedError.of("scope/stream")

    with pytest.raises(StreamSealedError, match="stream scope/stream is sealed; it accepts no more events"):
        attempts(300).run(attempt, lambda error: None)
    assert clock == []


def test_each_time_of_trouble_has_its_own_time(clock):
    many = attempts(health=ClusterHealth(10, 10))
    for _ in range(3):
        many.failed(LOST)
        assert many.deadline.left == pytest.approx(10)
        assert many.due == pytest.approx(time.monotonic() + 0.05)
        time.sleep(8)
        assert many.in_trouble
        many.done()
        assert not many.in_trouble
