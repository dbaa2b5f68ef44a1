"""Readers of a group whose output is written exactly once, and the programs on it that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName, TransactionStatus
from pravega_connector.client.reader_group import ReaderGroup
from pravega_connector.config import PravegaConfig
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import ConfigError, InvalidNameError, ReaderOfflineError, TransactionAbortedError
from pravega_connector.exactly_once.group_reader import ExactlyOnceReader
from pravega_connector.exactly_once.steps import StepsState

ROOT = Path(__file__).parents[3]


@pytest.fixture
def orders(client: PravegaClient, own_scope: str) -> StreamName:
    name = StreamName(own_scope, "orders")
    client.create_stream(name, ScalingPolicy.by_events(10_000, min_segments=1))
    client.scale_stream(name, segments=3)
    return name


@pytest.fixture
def bills(client: PravegaClient, own_scope: str) -> StreamName:
    name = StreamName(own_scope, "bills")
    client.create_stream(name, 2)
    return name


@pytest.fixture
def group(client: PravegaClient, orders: StreamName) -> Iterator[ReaderGroup]:
    with client.reader_group(f"{orders.scope}/billing", orders, checkpoint_interval=0.3, refresh=0.1) as group:
        yield group


def write(client: PravegaClient, stream: StreamName, first: int, count: int) -> list[str]:
    values = [f"{number % 7}:{number}" for number in range(first, first + count)]
    with client.writer(stream, "string") as writer:
        for value in values:
            writer.write(value, routing_key=value[0])
    return values


def copy(reader: ExactlyOnceReader[str], done: Callable[[], object], seconds: float = 60.0) -> None:
    """Copy events until that is so."""
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        for event in reader.poll(0.05):
            reader.write(event.value, routing_key=str(event.value)[0])


def output(client: PravegaClient, stream: StreamName) -> list[str]:
    return list(client.read(stream, "string"))


def assert_exact(found: list[str], expected: list[str]) -> None:
    assert sorted(found) == sorted(expected)
    for key in {value[0] for value in expected}:
        of_key = [value for value in found if value[0] == key]
        assert of_key == [value for value in expected if value[0] == key], "out of order"


def steps_of(reader: ExactlyOnceReader[str]) -> StepsState:
    return reader._steps.read()


def test_an_output_without_events_is_refused(client, group):
    client.create_stream(StreamName(group.scope, "decisions"), 1, tags=[STATE_TAG])
    with pytest.raises(InvalidNameError, match="has the state of exactly-once writes"):
        group.exactly_once("a", "string", to=f"{group.scope}/decisions")
    assert group.state.readers == 0


def test_the_output_has_each_event_once_through_scaling_to_the_end(client, orders, bills, group):
    expected = write(client, orders, 0, 300)
    client.scale_stream(orders, segments=1)
    expected += write(client, orders, 300, 300)
    client.seal_stream(orders)
    with group.exactly_once("r1", "string", to=bills, output="string", interval=0.02) as reader:
        for event in reader:
            reader.write(event.value, routing_key=str(event.value)[0])
        state = steps_of(reader)
    assert_exact(output(client, bills), expected)
    assert len(state.positions) <= 1, "segments that are done with are forgotten"


def test_what_a_failed_block_did_not_commit_comes_again(client, orders, bills, group):
    expected = write(client, orders, 0, 100)

    def fail() -> None:
        with group.exactly_once("r1", "string", to=bills, output="string", interval=0.0) as reader:
            for number, event in enumerate(reader):
                reader.write(event.value, routing_key=str(event.value)[0])
                if number == 57:
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert group.online_readers() == []
    before = len(output(client, bills))
    assert before < 100
    with group.exactly_once("r1", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 100)
    assert_exact(output(client, bills), expected)


def test_an_event_may_have_no_output(client, orders, bills, group):
    write(client, orders, 0, 30)
    with group.exactly_once("r1", "string", to=bills) as reader:
        seen = 0
        while seen < 30:
            seen += len(reader.poll(1.0))
        reader.commit()
        assert {client.tail(orders).positions[s.id] - at for s, at in reader.committed.items() if at >= 0} == {0}
    with group.exactly_once("r2", "string", to=bills) as reader:
        assert reader.poll(1.0) == []
    assert output(client, bills) == []


def test_the_ledger_wins_over_the_group(client, orders, bills, group):
    """A reader that commits and dies: the group gives its segments from the last checkpoint."""
    expected = write(client, orders, 0, 50)
    dead = group.exactly_once("dead", "string", to=bills, output="string")
    copy(dead, lambda: sum(dead.committed.values()) > 0 and len(output(client, bills)) == 50)
    group.reader_offline("dead", dict.fromkeys(dead.committed, 0))
    assert set(group.state.unassigned.values()) == {0}
    expected += write(client, orders, 50, 50)
    with group.exactly_once("r2", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 100)
    with pytest.raises(ReaderOfflineError), dead:
        copy(dead, lambda: False)
    assert_exact(output(client, bills), expected)


def test_one_that_was_treated_as_dead_commits_nothing_more(client, orders, bills, group):
    expected = write(client, orders, 0, 50)
    slow = group.exactly_once("slow", "string", to=bills, output="string", interval=1000.0)
    copy(slow, lambda: slow._transaction)
    group.reader_offline("slow")
    with group.exactly_once("r2", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 50)
        with pytest.raises(ReaderOfflineError, match=r"owns .*orders"), slow:
            slow.commit()
        assert_exact(output(client, bills), expected)


@pytest.mark.parametrize("committed", [True, False])
def test_an_interrupted_claim_moves_nothing(client, orders, bills, group, monkeypatch, committed):
    """The group and the log differ, and the reader that finds out is closed before it has read anything."""
    expected = write(client, orders, 0, 50)
    first = group.exactly_once("first", "string", to=bills, output="string", interval=1000.0)
    seen = 0
    while seen < 50:
        for event in first.poll(0.05):
            first.write(event.value, routing_key=str(event.value)[0])
            seen += 1
    if committed:
        first.commit()
        group.reader_offline("first", dict.fromkeys(first.committed, 0))
    else:
        group.reader_offline("first", first._reader.position.positions)
    second = group.exactly_once("second", "string", to=bills, output="string")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(second._member, "moved", interrupt)
        with pytest.raises(KeyboardInterrupt):
            second.poll(10.0)
    second.close()
    with group.exactly_once("third", "string", to=bills, output="string") as third:
        copy(third, lambda: len(output(client, bills)) >= 50)
    assert_exact(output(client, bills), expected)
    with pytest.raises(ReaderOfflineError), first:
        raise ReaderOfflineError("its process has died")


@pytest.mark.parametrize("decided", ["open", "committed", "aborted"])
def test_a_recorded_step_is_decided_by_the_next_reader(client, orders, bills, group, monkeypatch, decided):
    expected = write(client, orders, 0, 50)
    first = group.exactly_once("first", "string", to=bills, output="string", interval=1000.0)
    copy(first, lambda: first._transaction)

    def die(_: object) -> TransactionStatus:
        raise KeyboardInterrupt

    monkeypatch.setattr(first._steps, "_commit", die)
    with pytest.raises(KeyboardInterrupt):
        first.commit()
    transaction = first._transaction
    assert transaction is not None
    assert transaction.status() is TransactionStatus.OPEN
    if decided == "committed":
        client.transaction(bills, transaction.id).commit()
    elif decided == "aborted":
        client.transaction(bills, transaction.id).abort()
    group.reader_offline("first")
    with group.exactly_once("second", "string", to=bills, output="string") as second:
        copy(second, lambda: len(output(client, bills)) >= 50)
    assert transaction.status().is_committed == (decided == "committed")
    assert_exact(output(client, bills), expected)
    with pytest.raises(ReaderOfflineError), first:
        raise ReaderOfflineError("its process has died")


def test_a_reset_restarts(client, orders, bills, group):
    expected = write(client, orders, 0, 50)
    late = group.exactly_once("late", "string", to=bills, output="string")
    copy(late, lambda: len(output(client, bills)) == 50)
    group.reset(client.head(orders))
    with group.exactly_once("r2", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 100)
        assert sorted(output(client, bills)) == sorted(expected * 2)
    with pytest.raises(ReaderOfflineError), late:
        copy(late, lambda: False)


def test_a_stream_is_added_without_a_repetition(client, orders, bills, group):
    """The readers leave first: then the group begins where the output ends."""
    returns = StreamName(orders.scope, "returns")
    client.create_stream(returns)
    expected = write(client, orders, 0, 50) + write(client, returns, 50, 30)
    with group.exactly_once("r1", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 20)
    group.reset(group.stream_cuts(), streams=[orders, returns])
    with group.exactly_once("r1", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 80)
    assert sorted(output(client, bills)) == sorted(expected)


@pytest.mark.parametrize("seen", ["by the commit", "by a ping"])
def test_a_reader_that_failed_is_done_with(client, orders, bills, group, eventually, seen):
    expected = write(client, orders, 0, 20)
    with group.exactly_once("r1", "string", to=bills, output="string", interval=1000.0) as reader:
        while not reader.poll(1.0):
            pass
        reader.write("lost", routing_key="0")
        transaction, keeper = reader._transaction, reader._keeper
        assert transaction is not None
        if seen == "by the commit":
            keeper.discard(transaction)
        client.transaction(bills, transaction.id).abort()
        if seen == "by a ping":
            keeper._interval = 0.1  # a ping is due at once
            keeper.add(transaction)
            eventually(lambda: keeper.failures)
        with pytest.raises(TransactionAbortedError):
            reader.commit()
        with pytest.raises(ConfigError, match="create a new reader"):
            reader.poll(1.0)
    with group.exactly_once("r1", "string", to=bills, output="string") as reader:
        copy(reader, lambda: len(output(client, bills)) >= 20)
    assert_exact(output(client, bills), expected)


def test_two_readers_share(client, orders, bills, group):
    expected = write(client, orders, 0, 100)
    with (
        group.exactly_once("r1", "string", to=bills, output="string", interval=0.0) as first,
        group.exactly_once("r2", "string", to=bills, output="string", interval=0.0) as second,
    ):

        def billed() -> int:
            for event in second.poll(0.02):
                second.write(event.value, routing_key=str(event.value)[0])
            return len(output(client, bills))

        copy(first, lambda: billed() == 100 and first.committed and second.committed)
        expected += write(client, orders, 100, 100)
        copy(first, lambda: billed() == 200)
    assert_exact(output(client, bills), expected)


class Program:
    """The example, as a process."""

    def __init__(self, config: PravegaConfig, orders: StreamName, bills: StreamName, name: str) -> None:
        places = ["--orders", str(orders), "--bills", str(bills), "--group", f"{orders.scope}/billing", "--name", name]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "examples.bills.bill_orders", "--controller", config.controller, *places],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(120) == -signal.SIGKILL


@pytest.mark.long  # the tests above have each way to fail, in this process
def test_bills_are_written_once_by_programs_that_are_killed(client, orders, bills, config):
    seed = int(os.environ.get("SEED", uuid.uuid4().int % 10_000))
    chance = random.Random(seed)
    expected: list[str] = []
    programs = {name: Program(config, orders, bills, name) for name in ("a", "b")}
    kills, fruitful = 0, 0
    try:
        while kills < 8:
            expected += write(client, orders, len(expected), 200)
            if kills == 4:
                client.scale_stream(orders, segments=2)
            before = len(output(client, bills))
            # At a random moment after it is seen that they work.
            end = time.monotonic() + 60
            while len(output(client, bills)) == before:
                assert time.monotonic() < end, f"nothing is billed, seed {seed}"
                time.sleep(0.02)
            fruitful += 1
            time.sleep(chance.random() * 0.5)
            name = chance.choice(["a", "b"])
            programs[name].kill()
            kills += 1
            programs[name] = Program(config, orders, bills, name)
        client.seal_stream(orders)
        for program in programs.values():
            assert program.process.wait(120) == 0
    finally:
        for program in programs.values():
            if program.process.poll() is None:
                program.kill()
    assert (kills, fruitful) == (8, 8)
    assert_exact(output(client, bills), expected)
