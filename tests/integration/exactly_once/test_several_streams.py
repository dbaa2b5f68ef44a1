"""Batches over several streams: in all of them or in none, wherever a driver ends."""

import uuid
from collections.abc import Iterator

import pytest

from pravega_connector.client import PravegaClient, StreamName, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.targets import target_of
from pravega_connector.errors import TornBatchError
from pravega_connector.exactly_once.batch_commit import (
    SEVERAL_STREAMS,
    AppState,
    Commit,
    Content,
    Job,
    Ledger,
    Outcome,
    Part,
    Phase,
    Recovery,
    Role,
    Servers,
    TransactionId,
    await_visible,
    carry_out,
    check,
    stream_of,
)

ORDERS, AUDIT, LETTERS = "orders", "audit", "letters"


class Batches:
    """Three streams with one ledger, and what drivers and their tasks do."""

    def __init__(self, client: PravegaClient, scope: str) -> None:
        self.client, self.scope = client, scope
        for stream in (ORDERS, AUDIT, LETTERS):
            client.create_stream(self.name(stream), 2)
        self.ledger = Ledger(client.stores, self.name("decisions"))

    def name(self, stream: str) -> StreamName:
        return StreamName(self.scope, stream)

    def write(self, stream: str, *events: bytes) -> Part:
        transaction = self.client.transactions(self.name(stream), lease=60.0).begin()
        for event in events:
            transaction.write(event, "key")
        transaction.detach()
        id_ = TransactionId(target_of(self.client.controller, self.name(stream)), transaction.id)
        return Part(id_, Content(len(events), sum(map(len, events)), sum(map(hash, events)) % 2**64))

    def job(self, batch: int, *own: Part, app: str = "query", run: str = "run-1") -> Job:
        return Job(app, app, run, str(uuid.uuid4()), batch, own, target=SEVERAL_STREAMS)

    def servers(self) -> Servers:
        return Servers(self.client.controller, self.ledger, lease=60.0, timeout=60.0)

    def commit(self, batch: int, *own: Part, app: str = "query", run: str = "run-1") -> Outcome | None:
        return self.carry_out(self.job(batch, *own, app=app, run=run)).outcome

    def carry_out(self, job: Job) -> Commit:
        return carry_out(Commit(job), self.servers())

    def crash(self, at: Phase, batch: int, *own: Part) -> None:
        """A driver that ends before the request of ``at``."""
        machine, servers = Commit(self.job(batch, *own)), self.servers()
        while machine.phase is not at:
            machine = machine.answered(servers.answer(machine.request()))

    def status(self, part: Part) -> TransactionStatus:
        return self.client.controller.transaction_status(stream_of(part.transaction), part.transaction.id)

    def abort(self, part: Part) -> None:
        """As a lease that ends does."""
        self.client.transaction(stream_of(part.transaction), part.transaction.id).abort()

    def seal(self, stream: str) -> None:
        self.client.controller.seal_stream(self.name(stream))

    def recreate(self, stream: str) -> None:
        self.client.delete_stream(self.name(stream))
        self.client.create_stream(self.name(stream), 2)

    def await_visible(self) -> None:
        """Return when the last batches of all applications can be read."""
        _, state = self.ledger.read()
        await_visible(self.client.controller, [id_ for app in state.values() for id_ in app.last_set])

    def seen(self) -> dict[str, list[bytes]]:
        self.await_visible()
        return {stream: sorted(self.client.read(self.name(stream))) for stream in (ORDERS, AUDIT, LETTERS)}

    def recovery(self, stream: str) -> Recovery:
        return Recovery(self.client.stores, self.name(stream), self.ledger)

    def app(self, name: str = "query") -> AppState:
        _, state = self.ledger.read()
        return next(app for key, app in state.items() if key.app == name)


@pytest.fixture
def batches(config: PravegaConfig, stream_name: StreamName) -> Iterator[Batches]:
    with PravegaClient(config) as client:
        scope = f"{stream_name.scope}-{stream_name.stream}"
        client.create_scope(scope)
        batches = Batches(client, scope)
        with batches.ledger:
            yield batches


def test_a_batch_is_in_all_its_streams(batches: Batches):
    first = batches.write(ORDERS, b"a", b"b"), batches.write(AUDIT, b"a"), batches.write(AUDIT, b"b")
    assert batches.commit(0, *first) is Outcome.COMMITTED
    assert batches.commit(1, batches.write(LETTERS, b"c")) is Outcome.COMMITTED
    assert batches.seen() == {"orders": [b"a", b"b"], "audit": [b"a", b"b"], "letters": [b"c"]}
    assert {id_.stream for id_ in batches.app().last_set} == {
        target_of(batches.client.controller, batches.name(LETTERS))
    }


@pytest.mark.parametrize("at", [Phase.PREPARE, Phase.COMMIT_PILOT, Phase.COMMIT_REST, Phase.RECORD])
def test_a_batch_is_in_all_streams_or_in_none_wherever_its_driver_ends(batches: Batches, at: Phase):
    parts = [batches.write(stream, b"row") for stream in (ORDERS, AUDIT, LETTERS)]
    batches.crash(at, 0, *parts)
    again = [batches.write(stream, b"row") for stream in (LETTERS, AUDIT, ORDERS)]
    assert batches.commit(0, *again, run="run-2") is Outcome.COMMITTED
    assert batches.seen() == {"orders": [b"row"], "audit": [b"row"], "letters": [b"row"]}


def test_a_batch_that_is_committed_in_one_stream_only_is_repaired(batches: Batches):
    """The replay has the rows of the lost stream in other partitions."""
    pilot, lost = batches.write(ORDERS, b"a"), [batches.write(AUDIT, row) for row in (b"x", b"y")]
    batches.crash(Phase.COMMIT_REST, 0, pilot, *lost)
    for part in lost:
        batches.abort(part)
    assert batches.commit(0, batches.write(ORDERS, b"a"), batches.write(AUDIT, b"x", b"y"), run="run-2") is (
        Outcome.COMMITTED
    )
    assert batches.seen() == {"orders": [b"a"], "audit": [b"x", b"y"], "letters": []}


def test_a_part_that_is_lost_permanently_is_reported_with_its_stream(batches: Batches):
    pilot, lost, kept = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"x"), batches.write(LETTERS, b"l")
    batches.crash(Phase.COMMIT_REST, 0, pilot, lost, kept)
    batches.abort(lost)
    own = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"other"), batches.write(LETTERS, b"l")
    machine = batches.carry_out(batches.job(0, *own, run="run-2"))
    with pytest.raises(TornBatchError, match=rf"{lost.transaction.id} of .*/audit \(1 rows, aborted\)"):
        check(machine, batches.name(ORDERS))
    assert batches.seen() == {"orders": [b"a"], "audit": [], "letters": [b"l"]}, "what was open is saved"
    recovery = batches.recovery(ORDERS)
    recovery.resolve("query", "accept")
    assert (batches.app().last, batches.app().open) == (0, None)


def test_a_row_that_moves_to_another_stream_is_refused(batches: Batches):
    assert batches.commit(0, batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")) is Outcome.COMMITTED
    moved = batches.write(ORDERS, b"a", b"a")
    assert batches.commit(0, moved, run="run-2") is Outcome.OTHER_ROWS
    assert batches.status(moved).is_aborted
    assert batches.seen() == {"orders": [b"a"], "audit": [b"a"], "letters": []}


def test_queries_that_share_a_stream_do_not_fence_each_other(batches: Batches):
    """Both take turns at each call, and each has batches of the same numbers."""
    machines = {}
    for app, streams in (("one", (ORDERS, AUDIT)), ("two", (AUDIT, LETTERS))):
        own = [batches.write(stream, app.encode()) for stream in streams]
        machines[app] = Commit(batches.job(0, *own, app=app, run=f"run of {app}"))
    servers = {app: batches.servers() for app in machines}
    while any(not machine.ended for machine in machines.values()):
        for app, machine in machines.items():
            if not machine.ended:
                machines[app] = machine.answered(servers[app].answer(machine.request()))
    assert {machine.outcome for machine in machines.values()} == {Outcome.COMMITTED}
    assert batches.seen() == {"orders": [b"one"], "audit": [b"one", b"two"], "letters": [b"two"]}
    assert {batches.app(app).last for app in machines} == {0}


def test_a_stream_that_is_sealed_before_the_pilot_commits_leaves_nothing(batches: Batches):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    batches.crash(Phase.COMMIT_PILOT, 0, *parts)
    batches.seal(AUDIT)
    only = batches.write(ORDERS, b"a")
    assert batches.commit(0, only, run="run-2") is Outcome.COMMITTED
    assert batches.status(parts[0]).is_aborted
    assert batches.seen() == {"orders": [b"a"], "audit": [], "letters": []}


@pytest.mark.parametrize("deleted", [ORDERS, AUDIT])
def test_a_stream_that_is_deleted_after_the_pilot_was_committed_holds_nothing_up(batches: Batches, deleted: str):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a"), batches.write(LETTERS, b"a")
    batches.crash(Phase.COMMIT_REST, 0, *parts)
    if deleted == ORDERS:  # what else shows that the pilot was committed
        batches.client.transaction(batches.name(LETTERS), parts[2].transaction.id).commit()
    batches.recreate(deleted)
    again = [batches.write(stream, b"a") for stream in (ORDERS, AUDIT, LETTERS)]
    assert batches.commit(0, *again, run="run-2") is Outcome.COMMITTED
    assert batches.seen() == {"orders": [b"a"], "audit": [b"a"], "letters": [b"a"]} | {deleted: []}
    assert batches.commit(1, batches.write(deleted, b"b"), run="run-2") is Outcome.COMMITTED
    assert batches.seen()[deleted] == [b"b"]


def test_a_batch_whose_pilot_was_deleted_is_in_the_other_streams_once(batches: Batches):
    """The servers may know the pilot's status after its deletion: then it decides, otherwise the batch is rewritten."""
    batches.crash(Phase.COMMIT_REST, 0, batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a"))
    batches.recreate(ORDERS)
    again = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    assert batches.commit(0, *again, run="run-2") is Outcome.COMMITTED
    assert batches.seen()["audit"] == [b"a"]


def test_an_operator_sees_and_finishes_batches_over_several_streams(batches: Batches):
    parts = batches.write(ORDERS, b"a"), batches.write(AUDIT, b"a")
    batches.crash(Phase.COMMIT_REST, 0, *parts)
    for stream in (ORDERS, AUDIT):
        (finding,) = batches.recovery(stream).survey()
        assert finding.verdict == "all live"
    recovery = batches.recovery(LETTERS)
    assert recovery.finish("query") is Outcome.COMMITTED
    assert batches.seen() == {"orders": [b"a"], "audit": [b"a"], "letters": []}
    assert batches.job(1).role is Role.WRITER
