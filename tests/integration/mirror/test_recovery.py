"""Runs of a mirror that are killed at any point, or that overlap: the next run continues."""

import threading
import uuid
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import pytest

from pravega_connector.client import StreamName
from pravega_connector.errors import ConfigError, InvalidNameError, StepUndecidedError
from pravega_connector.exactly_once.steps import ALL, Life, Outcome, Step, StepLog, Turn, Update
from pravega_connector.exactly_once.steps.leader import Leader
from pravega_connector.operations.mirror import mirror
from pravega_connector.operations.mirror.copier import Copier
from pravega_connector.operations.mirror.destination import Destination
from pravega_connector.wire import segment_name
from pravega_connector.writer.transactions import OpenTransaction, TransactionalWriter
from tests.integration.mirror.conftest import each
from tests.integration.mirror.test_mirror import bounds_of, scale
from tests.support.ingest_steps import ENDED

#: Methods after which a run is killed, in the order in which it reaches them.
POINTS: list[tuple[type, str]] = [
    (Destination, "_scale"),
    (TransactionalWriter, "begin"),
    (Copier, "_record"),
    (OpenTransaction, "write_frames"),
    (Copier, "_flush"),
    (Copier, "_await_before"),
    (StepLog, "_commit"),
    (Destination, "pass_barrier"),
    (Copier, "_pass_barrier"),
]


class _KilledError(BaseException):
    """Ends a run like a kill: nothing is cleaned up."""


@pytest.fixture
def kill_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str, int], None]:
    """``kill_after(cls, method, nth)``: kill the run after that call of a method."""
    monkeypatch.setattr(Leader, "_leave", lambda _self: None)
    # Its thread ends, and the transaction stays open.
    monkeypatch.setattr(Leader, "_drop", lambda _self, *ones: [each._end() for each in ones])

    def arm(cls: type, name: str, nth: int) -> None:
        method, calls = getattr(cls, name), iter(range(1, nth + 1))

        @wraps(method)
        def killing(*args: Any, **options: Any) -> Any:
            result = method(*args, **options)
            if next(calls, nth) == nth:
                monkeypatch.setattr(cls, name, method)
                if isinstance(result, OpenTransaction):
                    result._end()
                raise _KilledError
            return result

        monkeypatch.setattr(cls, name, killing)

    return arm


def test_a_run_is_killed_at_each_point(client, other, source, target, run, write, copied, kill_after):
    bounds = [(0.0, 0.3, 1.0), (0.0, 1.0), (0.0, 0.5, 0.6, 1.0), (0.0, 0.25, 1.0)]
    for number, (cls, name) in enumerate(POINTS):
        write(2)
        scale(client, source, *bounds[number % len(bounds)])
        write(2)
        if number % 3 == 2:
            scale(other, target, 0.0, 0.4, 0.8, 1.0)
        kill_after(cls, name, 1 + number % 2)
        with pytest.raises(_KilledError):
            run(transaction_bytes=150)
    run(transaction_bytes=150)
    assert copied() == each(4 * len(POINTS))


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """Events: the first run has written a step and is paused; it may continue."""
    reached, resumed = threading.Event(), threading.Event()
    flush = Copier._flush

    def pausing(self: Copier, transaction: OpenTransaction[bytes]) -> None:
        flush(self, transaction)
        if not reached.is_set():
            reached.set()
            assert resumed.wait(120)

    monkeypatch.setattr(Copier, "_flush", pausing)
    yield reached, resumed
    resumed.set()


def test_a_run_that_was_taken_over_copies_nothing_twice(run, write, copied, paused):
    write(4)
    summaries = []
    slow = threading.Thread(target=lambda: summaries.append(run(transaction_bytes=200)))
    slow.start()
    reached, resumed = paused
    assert reached.wait(120)
    assert run(takeover_after=0.1).counts.recovered == 1
    resumed.set()
    slow.join()
    assert summaries[0].counts.events == 0
    assert copied() == each(4)


@pytest.mark.usefixtures("soon_sure")
def test_a_forgotten_transaction_is_decided_by_an_operator(client, other, source, target, run, write, copied):
    write(1)
    run()
    write(1)
    ends = {segment_name(source, segment_id): end for segment_id, end in client.tail(source).positions.items()}
    with StepLog(other.stores, StreamName(target.scope, f"{target.stream}-mirror"), Life("")) as steps:
        moves = {item: (at, ends[item]) for item, at in steps.read().positions.items() if item in ends}
        step = Step(uuid.uuid4(), str(target), moves, note=ENDED.to_json())
        update = Update(run=ENDED.run, life=steps.life, claim={ALL: None}, step=step)
        assert steps.carry_out(Turn(update, deciding=frozenset())).outcome is Outcome.WRITTEN
    with pytest.raises(
        StepUndecidedError, match=rf"{step.transaction}.*the events of {source}/.* from offset .*resolve="
    ):
        run()
    assert copied() == each(1)
    run(resolve={step.transaction: "aborted"})
    assert copied() == each(2)


@pytest.mark.parametrize("begun", [False, True])
def test_a_slow_run_does_not_begin_segments_again(client, source, run, write, copied, monkeypatch, begun):
    """It is slow between a barrier and its record; in the meantime, another run copies and drops the segments."""
    write(1)
    if begun:
        run()
        scale(client, source, 0.0, 1.0)
        write(1)
    passed, calls = Destination.pass_barrier, []

    def slow(self: Destination, before: Any, after: Any) -> int:
        count = passed(self, before, after)
        calls.append(before)
        if len(calls) == (2 if begun else 1):
            scale(client, source, 0.0, 0.5, 1.0)
            write(1)
            run()
        return count

    monkeypatch.setattr(Destination, "pass_barrier", slow)
    run()
    monkeypatch.undo()
    run()
    assert copied() == each(3 if begun else 2)


def test_a_stream_with_state_is_not_a_destination(client, other, source, target, run, write):
    write(1)
    run()
    state = StreamName(target.scope, f"{target.stream}-mirror")
    with pytest.raises(InvalidNameError, match=rf"stream {state} has the state of exactly-once writes"):
        mirror(source, state, source_client=client, destination_client=other)
    run()


def test_another_client_scales_the_destination_in_the_middle_of_a_barrier(
    client, other, source, target, run, write, copied, monkeypatch
):
    write(2)
    run()
    scale(client, source, 0.0, 0.3, 0.6, 1.0)
    write(2)
    scaled, refusals = Destination._scale, []

    def late(self: Destination, *given: Any) -> None:
        if not refusals:
            scale(other, target, 0.0, 0.1, 0.9, 1.0)
        try:
            scaled(self, *given)
        except ConfigError as error:
            refusals.append(error.message)
            raise

    monkeypatch.setattr(Destination, "_scale", late)
    run()
    assert len(refusals) == 1
    assert copied() == each(4)
    assert bounds_of(other, target) == bounds_of(client, source)
