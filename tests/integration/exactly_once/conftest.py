"""A target stream with a ledger on the shared server, and drivers that can be stopped anywhere."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from pravega_connector.client import PravegaClient, ScalingPolicy, StreamName, TransactionStatus
from pravega_connector.config import PravegaConfig
from pravega_connector.controller.targets import target_of
from pravega_connector.exactly_once.batch_commit import (
    Commit,
    Job,
    Key,
    Ledger,
    Part,
    Phase,
    Role,
    Servers,
    TransactionId,
    carry_out,
    check,
    ledger_name,
)
from pravega_connector.exactly_once.batch_commit.digest import RowTotal


class Target:
    """One stream, and the ledger next to it."""

    def __init__(self, client: PravegaClient, stream: StreamName) -> None:
        client.create_stream(stream, ScalingPolicy.fixed(2))
        self.client, self.stream = client, stream
        self.ledger = Ledger(client.stores, ledger_name(stream))
        self.creation = target_of(client.controller, stream)

    @property
    def key(self) -> Key:
        """Key of the one query that writes to it."""
        return Key("query", self.creation)

    def write(self, *events: bytes, lease: float = 60.0) -> Part:
        """Work of a task: events in a transaction that is left open."""
        import pyarrow as pa

        transaction = self.client.transactions(self.stream, lease=lease).begin()
        column, total = pa.array(events, pa.binary()), RowTotal()
        transaction.write_column(column)
        total.add(column, None)
        transaction.detach()
        return Part(TransactionId(self.creation, transaction.id), total.content)

    def job(self, batch: int, *own: Part, run: str = "run-1", role: Role = Role.WRITER, **more: object) -> Job:
        app = "" if role is Role.BYSTANDER else "query"
        return Job(app, "query", run, str(uuid.uuid4()), batch, own, role, target=self.creation, **more)  # type: ignore[arg-type]

    def servers(self, *, ledger: Ledger | None = None) -> Servers:
        return Servers(self.client.controller, ledger or self.ledger, lease=60.0, timeout=60.0)

    def commit(self, batch: int, *own: Part, ledger: Ledger | None = None, **more: object) -> Commit:
        """Work of the driver. Raises as the sink does."""
        servers = self.servers(ledger=ledger)
        machine = carry_out(Commit(self.job(batch, *own, **more)), servers)  # type: ignore[arg-type]
        check(machine, self.stream)
        return machine

    def crash(self, at: Phase, batch: int, *own: Part, **more: object) -> Commit:
        """A driver that ends before the request of ``at``. Its pings do not count, so that it asks all."""
        machine, servers = Commit(self.job(batch, *own, **more)), self.servers()  # type: ignore[arg-type]
        while machine.phase is not at:
            assert not machine.ended, f"it ended as {machine.outcome} and never came to {at}"
            machine = machine.aged().answered(servers.answer(machine.request()))
        return machine

    def events(self) -> list[bytes]:
        return sorted(self.client.read(self.stream))

    def status(self, part: Part) -> TransactionStatus:
        return self.client.controller.transaction_status(self.stream, part.transaction.id)

    def abort(self, part: Part) -> None:
        """As a lease that ends does."""
        self.client.transaction(self.stream, part.transaction.id).abort()


@pytest.fixture
def target(config: PravegaConfig, stream_name: StreamName) -> Iterator[Target]:
    with PravegaClient(config) as client:
        client.controller.create_scope(stream_name.scope)
        target = Target(client, stream_name)
        with target.ledger:
            yield target


@pytest.fixture
def sees(target: Target, eventually: Callable[..., None]) -> Callable[..., None]:
    """Await that the stream has exactly these events: a commit is decided a moment before it is visible."""

    def wait(*events: bytes) -> None:
        eventually(lambda: len(target.events()) >= len(events))
        assert target.events() == sorted(events)

    return wait
