"""Transactions over several streams: events in all of them or in none, wherever the process ends."""

import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from pravega_connector.aio.client import AsyncPravegaClient
from pravega_connector.client import PravegaClient, StreamCut, StreamsTransaction, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import (
    ConfigError,
    DeadlineExceededError,
    FencedError,
    InvalidNameError,
    LeaseExpiredError,
    StreamNotFoundError,
    TornBatchError,
)
from pravega_connector.exactly_once.batch_commit import Ledger, Outcome, Phase, Recovery, decided_cut, servers
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import OpenTransaction, TransactionalWriter

ORDERS, AUDIT = "orders", "audit"


class Killed(BaseException):
    """End of a process."""


class Program:
    """A program that writes to two streams. Each process of it has a client."""

    def __init__(self, config: PravegaConfig, scope: str) -> None:
        self.config, self.scope, self.clients = config, scope, list[PravegaClient]()
        self.client = self.process()
        self.client.create_scope(scope)
        for stream in (ORDERS, AUDIT):
            self.client.create_stream(f"{scope}/{stream}", 2)

    def process(self) -> PravegaClient:
        """A process of the program."""
        self.clients.append(PravegaClient(self.config))
        return self.clients[-1]

    def begin(self, client: PravegaClient | None = None, **options: object) -> StreamsTransaction:
        named = {"ledger": f"{self.scope}/decisions", "app_id": "checkout"} | options
        streams = [f"{self.scope}/{stream}" for stream in (ORDERS, AUDIT)]
        return (client or self.client).transaction_over(streams, "string", **named)  # type: ignore[arg-type]

    def write(self, transaction: StreamsTransaction, *texts: str) -> None:
        for text in texts:
            for stream in (ORDERS, AUDIT):
                transaction.write(f"{self.scope}/{stream}", text, "key")

    def seen(self) -> dict[str, list[str]]:
        return {stream: list(self.client.read(f"{self.scope}/{stream}", "string")) for stream in (ORDERS, AUDIT)}

    def has(self, *texts: str) -> bool:
        return self.seen() == {ORDERS: [*texts], AUDIT: [*texts]}


@pytest.fixture
def program(config, stream_name) -> Iterator[Program]:
    program = Program(config, f"{stream_name.scope}-{stream_name.stream}")
    yield program
    for client in program.clients:
        client.close()


@pytest.fixture
def ends(monkeypatch) -> Callable[[Phase], None]:
    """End the process before the call of a phase."""
    answer = servers._answer

    def at(phase: Phase) -> None:
        def until(machine, served):
            if machine.phase is phase:
                monkeypatch.setattr(servers, "_answer", answer)
                raise Killed
            return answer(machine, served)

        monkeypatch.setattr(servers, "_answer", until)

    return at


def test_events_are_in_all_streams(program: Program):
    with program.begin() as transaction:
        assert transaction.version == 0
        program.write(transaction, "a", "b")
        assert program.has()
    assert program.has("a", "b")
    with program.begin() as transaction:
        assert transaction.version == 1
        transaction.write(f"{program.scope}/audit", "only here", "key")
    assert program.seen() == {ORDERS: ["a", "b"], AUDIT: ["a", "b", "only here"]}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[OpenTransaction[bytes]]:
    """Transactions that begin, in their order."""
    begun: list[OpenTransaction[bytes]] = []
    begin = TransactionalWriter.begin

    def recorded(writer: TransactionalWriter[bytes]) -> OpenTransaction[bytes]:
        begun.append(begin(writer))
        return begun[-1]

    monkeypatch.setattr(TransactionalWriter, "begin", recorded)
    return begun


def test_the_streams_of_the_last_transaction_begin_side_by_side(program: Program, monkeypatch: pytest.MonkeyPatch):
    with program.begin() as transaction:
        program.write(transaction, "a")
    both, begin = threading.Barrier(2, timeout=30), TransactionalWriter.begin

    def with_the_other(writer: TransactionalWriter[bytes]) -> OpenTransaction[bytes]:
        both.wait()  # an error if the other one does not begin as well
        return begin(writer)

    monkeypatch.setattr(TransactionalWriter, "begin", with_the_other)
    with program.begin() as transaction:
        program.write(transaction, "b")
    assert program.has("a", "b")


def test_a_transaction_without_events_is_aborted(program: Program, begun: list[OpenTransaction[bytes]]):
    orders = f"{program.scope}/orders"
    with program.begin() as transaction:
        program.write(transaction, "a")
    with program.begin() as transaction:
        transaction.write(orders, "b", "key")
    assert program.seen() == {ORDERS: ["a", "b"], AUDIT: ["a"]}
    statuses = {str(each.stream): program.client.transaction(each.stream, each.id).status() for each in begun[2:]}
    assert statuses.pop(orders) is TransactionStatus.COMMITTED
    assert [status.is_aborted for status in statuses.values()] == [True]
    with program.begin() as transaction:
        transaction.write(orders, "c", "key")
    assert [str(each.stream) for each in begun[4:]] == [orders], "a stream without events begins with its first event"


def test_a_stream_that_is_not_written_this_time_may_be_deleted(program: Program):
    orders, audit = (f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT))
    with program.begin() as transaction:
        program.write(transaction, "a")
    program.client.delete_stream(audit)
    with program.begin() as transaction:
        transaction.write(orders, "b", "key")
    transaction = program.begin()
    transaction.write(orders, "c", "key")
    with pytest.raises(StreamNotFoundError):
        transaction.write(audit, "c", "key")
    transaction.abort()
    assert list(program.client.read(orders, "string")) == ["a", "b"]


def test_a_begin_that_fails_leaves_no_transaction_open(program: Program, begun: list[OpenTransaction[bytes]]):
    orders, audit = (f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT))
    with program.begin() as transaction:
        program.write(transaction, "a")
    program.client.delete_stream(audit)
    transaction = program.begin()
    with pytest.raises(StreamNotFoundError):
        transaction.write(audit, "b", "key")
    transaction.abort()
    (other,) = begun[2:]
    assert str(other.stream) == orders
    assert program.client.transaction(orders, other.id).status().is_aborted


def test_an_error_leaves_nothing_in_any_stream(program: Program):
    transaction = program.begin()
    program.write(transaction, "a")
    with pytest.raises(ConfigError, match="routing key"), transaction:
        transaction.write(f"{program.scope}/orders", "b", 1)  # type: ignore[arg-type]
    aborted = program.begin()
    program.write(aborted, "b")
    aborted.abort()
    with pytest.raises(ConfigError, match="was aborted"):
        aborted.commit()
    assert program.has()
    assert program.begin().version == 0


def test_a_stream_has_its_serializer_and_columns(program: Program):
    orders, audit = (f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT))
    with program.client.transaction_over(
        {orders: "json", audit: None}, ledger=f"{program.scope}/decisions", app_id="checkout"
    ) as transaction:
        transaction.write(orders, {"id": 1}, "ann")
        transaction.write_column(audit, pa.array([b"1", b"2"]), pa.array(["ann", None]))
    assert list(program.client.read(orders, "json")) == [{"id": 1}]
    assert sorted(program.client.read(audit)) == [b"1", b"2"]


@pytest.mark.parametrize("phase", [Phase.COMMIT_PILOT, Phase.COMMIT_REST, Phase.RECORD], ids=lambda phase: phase.name)
def test_the_next_run_finishes_what_a_crash_has_left(program: Program, ends, phase: Phase):
    ends(phase)
    with pytest.raises(Killed), program.begin() as transaction:
        program.write(transaction, "a")
    following = program.begin(program.process())
    assert following.version == 1
    with following:
        program.write(following, "b")
    assert program.has("a", "b")


def test_what_a_crash_has_left_unrecorded_is_written_again(program: Program, ends):
    ends(Phase.PREPARE)
    with pytest.raises(Killed), program.begin() as transaction:
        program.write(transaction, "a")
    with program.begin(program.process()) as again:
        assert again.version == 0
        program.write(again, "a")
    assert program.has("a")


def _lose(transaction: StreamsTransaction, stream: str) -> None:
    """Abort a part of a transaction, as the end of its lease does."""
    share = next(share for name, share in transaction._shares.items() if name.stream == stream)
    share.transaction.abort()


def test_a_transaction_whose_leases_have_ended_is_written_again(program: Program, ends):
    ends(Phase.COMMIT_PILOT)
    lost = program.begin()
    program.write(lost, "a")
    with pytest.raises(Killed):
        lost.commit()
    _lose(lost, AUDIT)
    with program.begin(program.process()) as again:
        assert again.version == 0
        program.write(again, "other")
    assert program.has("other")


def test_a_part_that_is_lost_after_the_decision_is_repaired_by_the_same_events(program: Program, ends):
    ends(Phase.COMMIT_REST)
    lost = program.begin()
    program.write(lost, "a", "b")
    with pytest.raises(Killed):
        lost.commit()
    _lose(lost, AUDIT)
    other = program.begin(program.process())
    program.write(other, "c")
    with pytest.raises(TornBatchError, match=r"write the same events again .* recover .*/orders --ledger .*/decisions"):
        other.commit()
    with program.begin(program.process()) as again:
        assert again.version == 0
        program.write(again, "a", "b")
    assert program.has("a", "b")


def test_an_operator_finishes_what_a_crash_has_left(program: Program, ends):
    ends(Phase.COMMIT_REST)
    with pytest.raises(Killed), program.begin() as transaction:
        program.write(transaction, "a")
    target, ledger = (program.client.name(f"{program.scope}/{name}") for name in (AUDIT, "decisions"))
    with Ledger(program.client.stores, ledger) as opened:
        assert Recovery(program.client.stores, target, opened).finish("checkout") is Outcome.COMMITTED
    assert program.begin().version == 1
    assert program.has("a")


def test_a_commit_can_be_repeated(program: Program, ends):
    transaction = program.begin()
    program.write(transaction, "a")
    ends(Phase.COMMIT_REST)
    with pytest.raises(Killed):
        transaction.commit()
    with pytest.raises(ConfigError, match="accepts no more events"):
        program.write(transaction, "b")
    with pytest.raises(ConfigError, match="its commit has begun"):
        transaction.abort()
    for _ in range(2):
        assert transaction.commit() is TransactionStatus.COMMITTED
    assert program.has("a")


def test_two_transactions_of_an_application_are_not_both_committed(program: Program):
    one, other = program.begin(), program.begin(program.process())
    for transaction in (one, other):
        program.write(transaction, "same")
    assert one.commit() is TransactionStatus.COMMITTED
    with pytest.raises(FencedError, match=r"Nothing of this transaction is visible\. Use an application id in one"):
        other.commit()
    late = program.begin()
    program.write(late, "late")
    with program.begin(program.process()) as newer:
        program.write(newer, "new")
    with pytest.raises(FencedError, match="another transaction of this application has taken over"):
        late.commit()
    assert program.has("same", "new")


def test_a_process_that_was_overtaken_learns_that_its_transaction_is_committed(program: Program, ends):
    suspended = program.begin()
    program.write(suspended, "a")
    ends(Phase.COMMIT_REST)
    with pytest.raises(Killed):
        suspended.commit()
    with program.begin(program.process()) as following:
        program.write(following, "b")
    assert suspended.commit() is TransactionStatus.COMMITTED
    assert program.has("a", "b")


def test_a_lease_that_ends_before_the_commit_is_reported(program: Program):
    transaction = program.begin()
    program.write(transaction, "a")
    transaction.ping()
    _lose(transaction, AUDIT)
    with pytest.raises(LeaseExpiredError, match="Nothing of it is visible"):
        transaction.commit()
    assert program.has()


def test_a_stream_without_events_is_refused(program: Program):
    with program.begin() as transaction:
        program.write(transaction, "a")
    ledger = f"{program.scope}/decisions"
    for stream, reason in (
        (ledger, "has the state of exactly-once writes"),
        (f"{program.scope}/_MARKx", "is internal"),
    ):
        with pytest.raises(InvalidNameError, match=f"{stream} {reason}"):
            program.client.transaction_over([stream], ledger=f"{program.scope}/other", app_id="other")
    assert not program.client.stream_exists(f"{program.scope}/other")
    assert program.begin().version == 1, "the ledger is not damaged"


def test_a_transaction_without_events_has_a_version(program: Program):
    with program.begin() as transaction:
        transaction.flush()
    assert program.begin().version == 1


def test_wrong_arguments_are_refused(program: Program):
    with pytest.raises(ConfigError, match="cannot be its own ledger"):
        program.begin(ledger=f"{program.scope}/{AUDIT}")
    with pytest.raises(ConfigError, match="identifies the program"):
        program.begin(app_id="")
    with pytest.raises(ConfigError, match="is not one of the transaction: list it with"):
        program.begin().write(f"{program.scope}/decisions", "a")
    missing = f"{program.scope}/missing"
    other = program.client.transaction_over([missing], ledger=f"{program.scope}/decisions", app_id="other")
    with pytest.raises(StreamNotFoundError):
        other.write(missing, b"a")
    with pytest.raises(ConfigError, match="leave out the argument 'serializer'"):
        program.client.transaction_over({missing: "json"}, "json", ledger="a/b", app_id="other")  # type: ignore[dict-item]


def _cut(program: Program, **options: float) -> list[StreamCut]:
    streams = [f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT)]
    return program.client.decided_cut(streams, ledger=f"{program.scope}/decisions", **options)  # type: ignore[arg-type]


def _before(program: Program, cuts: list[StreamCut]) -> list[list[str]]:
    """The events of each stream before its cut."""
    return [list(program.client.read(cut.stream, "string", end=cut)) for cut in cuts]


def test_a_cut_divides_no_transaction(program: Program, ends):
    with program.begin() as transaction:
        program.write(transaction, "a")
    transaction = program.begin()
    program.write(transaction, "b")
    ends(Phase.COMMIT_PILOT)
    with pytest.raises(Killed):
        transaction.commit()
    assert _before(program, _cut(program)) == [["a"], ["a"]]
    ends(Phase.COMMIT_REST)
    with pytest.raises(Killed):
        transaction.commit()
    with pytest.raises(
        DeadlineExceededError, match=r"may be partially visible\. .* recover .*/orders --ledger .*--finish"
    ):
        _cut(program, timeout=0.2)
    transaction.commit()
    assert _before(program, _cut(program)) == [["a", "b"], ["a", "b"]]


def test_cuts_are_whole_while_transactions_follow_each_other(program: Program):
    count, failures = 15, list[BaseException]()

    def work() -> None:
        try:
            client = program.process()
            for number in range(count):
                with program.begin(client) as transaction:
                    program.write(transaction, str(number))
        except BaseException as error:
            failures.append(error)
            raise

    with program.begin() as transaction:
        program.write(transaction, "first")
    writing, seen = threading.Thread(target=work), []
    writing.start()
    while writing.is_alive():
        orders, audit = _before(program, _cut(program))
        assert orders == audit
        seen.append(len(orders))
    writing.join()
    assert not failures
    assert len(set(seen)) > 2, "the cuts are of different moments"
    assert list(map(len, _before(program, _cut(program)))) == [count + 1, count + 1]


def test_a_cut_divides_no_transaction_that_one_in_other_streams_has_followed(
    program: Program, monkeypatch: pytest.MonkeyPatch
):
    """Between the two tails, the program commits to both streams, and then to a third one."""
    other, orders_read, commits = f"{program.scope}/other", threading.Event(), list[int]()
    program.client.create_stream(other, 1)
    every = [f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT, "other")]

    def commit(*streams: str) -> None:
        ledger = f"{program.scope}/decisions"
        with program.client.transaction_over(every, "string", ledger=ledger, app_id="checkout") as transaction:
            for stream in streams:
                transaction.write(stream, str(len(commits)), "key")
        commits.append(1)

    def tail_late(stores: SegmentStores, stream: StreamName) -> StreamCut:
        if stream.stream == AUDIT and len(commits) < 4:
            assert orders_read.wait(120)
            commit(*every[:2])
            commit(other)
        tail = tail_cut(stores, stream)
        orders_read.set()
        return tail

    commit(*every[:2])
    commit(other)
    monkeypatch.setattr(decided_cut, "tail_cut", tail_late)
    orders, audit = _before(program, _cut(program))
    assert orders == audit == ["0", "2"]


_PROCESS = """
import os, signal, sys
from pravega_connector import PravegaClient
from pravega_connector.exactly_once.batch_commit import servers

controller, scope, commits = sys.argv[1], sys.argv[2], int(sys.argv[3])
commit = servers.Servers._commit

def until(self, id_):
    global commits
    if not commits:
        os.kill(os.getpid(), signal.SIGKILL)
    commits -= 1
    return commit(self, id_)

servers.Servers._commit = until
servers.Servers._each = lambda self, call, ids: {id_: call(id_) for id_ in ids}
client = PravegaClient(controller)
streams = [f"{scope}/orders", f"{scope}/audit"]
with client.transaction_over(streams, "string", ledger=f"{scope}/decisions", app_id="checkout") as transaction:
    for stream in streams:
        transaction.write(stream, "a", "key")
"""


def test_a_killed_process_leaves_its_decision(program: Program, eventually: Callable[..., None]):
    """It is killed between the commits of its streams."""
    command = [sys.executable, "-c", _PROCESS, program.config.controller, program.scope, "1"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert program.seen()[AUDIT] == []
    assert program.begin().version == 1
    eventually(lambda: program.has("a"))  # a decided commit is not yet visible on a busy server


def test_coroutines_write_to_several_streams(program: Program):
    streams = [f"{program.scope}/{stream}" for stream in (ORDERS, AUDIT)]

    async def write(client: AsyncPravegaClient, app_id: str, texts: list[str]) -> int:
        async with client.transaction_over(
            streams, "string", ledger=f"{program.scope}/decisions", app_id=app_id
        ) as transaction:
            for text in texts:
                for stream in streams:
                    await transaction.write(stream, text, "key")
        return transaction.version

    async def main() -> list[int]:
        async with AsyncPravegaClient(program.config) as client:
            apps = [write(client, f"app-{number}", [f"{number}:{text}" for text in range(300)]) for number in range(3)]
            versions = await asyncio.gather(*apps)
            aborted = await client.transaction_over(
                streams, "string", ledger=f"{program.scope}/decisions", app_id="app-0"
            )
            await aborted.write(streams[0], "aborted")
            await aborted.abort()
            return [*versions, aborted.version]

    assert asyncio.run(main()) == [0, 0, 0, 1]
    for texts in program.seen().values():
        for number in range(3):
            assert [text for text in texts if text.startswith(f"{number}:")] == [f"{number}:{n}" for n in range(300)]
        assert len(texts) == 900
