"""Transactions of programs over several streams: their events are in all of the streams, or in none.

A transaction of Pravega is of one stream. So a :class:`StreamsTransaction` has a transaction for each stream of its
events, and commits them by the protocol of Spark's batches (:mod:`pravega_connector.exactly_once.batch_commit`). The
application id is the counterpart of a query. Its transactions are numbered: their *version* is the batch number.

A new transaction first finishes the one that an earlier process has left. If that is committed, the new version follows
it. Otherwise the new transaction has the same version, and replaces it.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import pyarrow as pa

from pravega_connector.controller.targets import check_target, target_of
from pravega_connector.core import arguments, io
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.events import MAX_EVENT_SIZE, RawEvents, SupportsSerialize, as_binary, as_bytes
from pravega_connector.core.values import TransactionStatus
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import ConfigError, ConnectorError, DeadlineExceededError
from pravega_connector.exactly_once.batch_commit.digest import RowTotal
from pravega_connector.exactly_once.batch_commit.entries import SEVERAL_STREAMS, Key, Part, TransactionId
from pravega_connector.exactly_once.batch_commit.machine import Commit, Job, Role
from pravega_connector.exactly_once.batch_commit.outcomes import check_program, is_taken
from pravega_connector.exactly_once.batch_commit.servers import MAX_CALLS, Servers, await_visible, carry_out, stream_of
from pravega_connector.exactly_once.batch_commit.state import Ledger
from pravega_connector.exactly_once.batch_commit.table import Outcome, Phase
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import DEFAULT_LEASE, OpenTransaction, TransactionalWriter
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
#: Part of a lease that a commit may last, so that no transaction ends during it.
_COMMIT: Final = 0.9
#: Timeout of an abort because of an error, in seconds. Without it, the transactions end with their lease.
_GIVE_UP_SECONDS: Final = 5.0
#: Events and bytes whose total is computed at a time.
_EVENTS, _BYTES = 4096, 1 << 20
_NOTHING: Final = "Nothing of this transaction is visible"
_UNDECIDED: Final = "The ledger has this transaction, and the next one of the application decides it"


class Decisions:
    """Ledgers that a client has opened, the run of its transactions, and the creations of their streams."""

    def __init__(self, stores: SegmentStores) -> None:
        self.stores, self.run = stores, str(uuid.uuid4())
        self.used: dict[str, frozenset[StreamName]] = {}
        """Streams with events in the last transaction of each application."""
        self._lock = io.lock()
        self._ledgers: dict[StreamName, Ledger] = {}
        self._creations: dict[tuple[StreamName, int], str] = {}
        self._with_events = set[StreamName]()

    def ledger(self, name: StreamName) -> Ledger:
        """Return the ledger of this name. It is created if it does not exist."""
        with self._lock:
            if name not in self._ledgers:
                self._ledgers[name] = Ledger(self.stores, name)
            return self._ledgers[name]

    def check_target(self, stream: StreamName) -> None:
        """Raise InvalidNameError for a stream that has no events, such as another ledger."""
        if stream not in self._with_events and check_target(self.stores.controller, stream):
            self._with_events.add(stream)

    def creation(self, transaction: OpenTransaction[bytes]) -> str:
        """Return the stream of a transaction with its creation. A recreated stream has other segment numbers."""
        key = transaction.stream, transaction.segment_number
        if key not in self._creations:
            self._creations[key] = target_of(self.stores.controller, transaction.stream)
        return self._creations[key]

    def close(self) -> None:
        """Close the ledgers."""
        for ledger in self._ledgers.values():
            ledger.close()


class StreamsTransaction(HintedNames, ProcessBound, Generic[T]):
    """Transaction over several streams. As a context manager it commits at the end, or aborts on an error.

    Its events become visible in all streams, or in none: not at one moment, but by one decision. A process that fails
    in the middle of a commit leaves the decision in the ledger, and the next transaction of the application finishes
    it. Thread safe.
    """

    def __init__(
        self,
        decisions: Decisions,
        serializers: Mapping[StreamName, SupportsSerialize[T] | None],
        *,
        ledger: StreamName,
        app_id: str,
        lease: float = DEFAULT_LEASE,
        max_event_size: int = MAX_EVENT_SIZE,
        timeout: float | None = None,
        scope: str | None = None,
    ) -> None:
        """``serializers`` are by stream; None for events that are bytes. ``scope`` is that of names without one."""
        for stream in serializers:
            decisions.check_target(stream)
        self.app_id, self.lease = app_id, lease
        self._decisions, self._ledger, self._scope = decisions, decisions.ledger(ledger), scope
        options: dict[str, Any] = {"lease": lease, "max_event_size": max_event_size, "timeout": timeout}
        self._shares = {
            name: _Share[T](TransactionalWriter(decisions.stores, name, RawEvents(), **options), serializer)
            for name, serializer in serializers.items()
        }
        self._lock = io.lock()
        self._job: Job | None = None
        self._ended = False
        self._version = self._next_version()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = after_fork.inherited(repr(self))

    def __repr__(self) -> str:
        return f"StreamsTransaction({self.app_id}, version {self._version}, {', '.join(map(str, self._shares))})"

    @property
    def version(self) -> int:
        """Number of the transaction among those of its application, from 0. An uncommitted number is used again."""
        return self._version

    # ---- events ------------------------------------------------------------------------------------------------------

    def write(self, stream: StreamName | str, value: T, routing_key: str | None = None) -> None:
        """Write one event to one of the streams, as :meth:`OpenTransaction.write` does.

        Raises ConfigError for another stream.
        """
        with self._lock:
            self._open(stream).write(value, routing_key)

    def write_column(self, stream: StreamName | str, events: pa.Array, routing_keys: pa.Array | None = None) -> None:
        """Write a column of serialized events, as :meth:`OpenTransaction.write_column` does.

        Raises ConfigError for another stream.
        """
        with self._lock:
            self._open(stream).write_column(events, routing_keys)

    def flush(self) -> None:
        """Return when all events written before are durable in the transaction: a later commit includes them."""
        with self._lock:
            for share in self._begun():
                share.transaction.flush()

    def ping(self) -> None:
        """Keep the transaction open for its lease from now. Raises TransactionAbortedError if it has ended."""
        with self._lock:
            for share in self._begun():
                share.transaction.ping()

    def _open(self, stream: StreamName | str) -> _Share[T]:
        """Return the share of a stream, with its transaction.

        With the first event, the transactions of those streams begin side by side that had events the last time.
        """
        share = self._share(stream)
        if share.begun is None:
            likely = frozenset() if self._begun() else self._decisions.used.get(self.app_id, frozenset())
            others = [other for name, other in self._shares.items() if name in likely and other is not share]
            results = io.side_by_side(_Share[T].new_transaction, [share, *others], MAX_CALLS)
            # Not set by the calls: after an interrupt, they still run while the next event begins another transaction.
            for each, result in zip((share, *others), results, strict=True):
                each.begun = None if isinstance(result, PravegaError) else result
            # Without its transaction, another stream has no event yet: its first event will begin one.
            if isinstance(results[0], PravegaError):
                raise results[0]
        return share

    def _share(self, stream: StreamName | str) -> _Share[T]:
        if self._ended or self._job is not None:
            raise ConfigError(f"{self!r} accepts no more events: it was committed or aborted")
        name = arguments.stream_name(stream, self._scope)
        if name not in self._shares:
            raise ConfigError(
                f"stream {name} is not one of the transaction: list it with {', '.join(map(str, self._shares))}"
            )
        return self._shares[name]

    def _begun(self) -> list[_Share[T]]:
        return [share for share in self._shares.values() if share.begun is not None]

    # ---- the decision ------------------------------------------------------------------------------------------------

    def commit(self, *, wait: bool = True, timeout: float | None = None) -> TransactionStatus:
        """Flush, and commit in all streams. Return COMMITTED if readers can see the events.

        The result is COMMITTING if ``wait`` is False, or if the servers need more than ``timeout`` seconds to show the
        events. The outcome is decided in both cases. If the call is not done within the timeout of the client, or 90 %
        of the lease, it raises OutcomeUnknownError: repeat it, or begin another transaction, which finishes this one.

        Raises LeaseExpiredError if a transaction has ended, FencedError if another process uses the application id, and
        TornBatchError if a part is lost, which needs an operator.
        """
        arguments.number("timeout", timeout)
        with self._lock:
            if self._job is None:
                if self._ended:
                    raise ConfigError(f"{self!r} cannot be committed: it was aborted")
                self._job = self._recorded()
            self._ended = True
            machine = carry_out(Commit(self._job), self._servers())
            if not is_taken(machine.outcome):
                check_program(machine, self._ledger.name, lease=self.lease)
            else:
                self._check_taken(machine)
            self._give_up([share for share in self._begun() if not share.is_used])
            self._tidy()
        named = self._job.own if machine.recorded is None else machine.recorded.parts
        return self._seen([part.transaction for part in named], wait, timeout)

    def abort(self) -> None:
        """Abort in all streams: no event becomes visible. Raises ConfigError after a commit."""
        with self._lock:
            if self._job is not None:
                raise ConfigError(f"{self!r} cannot be aborted: its commit has begun. Repeat the commit")
            self._ended = True
            for share in self._begun():
                share.transaction.abort()

    def _recorded(self) -> Job:
        """Return the job of the commit, when all events are durable."""
        used = {name: share for name, share in self._shares.items() if share.is_used}
        io.side_by_side(lambda share: share.transaction.detach(), used.values(), MAX_CALLS)
        own = tuple(share.part(self._decisions) for share in used.values())
        self._decisions.used[self.app_id] = frozenset(used)
        now = time.time_ns() // 1_000_000
        nonce = str(uuid.uuid4())
        return Job(self.app_id, "", self._decisions.run, nonce, self._version, own, target=SEVERAL_STREAMS, time=now)

    def _check_taken(self, machine: Commit) -> None:
        """Return if the transactions are committed all the same: another process may have finished the commit."""
        job, controller = machine.job, self._decisions.stores.controller
        carry_out(Commit(job, Phase.ABANDON_READ), self._servers())
        statuses = [controller.transaction_status(stream_of(p.transaction), p.transaction.id) for p in job.own]
        if any(status.is_committed for status in statuses):
            return
        fate = _NOTHING if all(status.is_aborted for status in statuses) else _UNDECIDED
        check_program(machine, self._ledger.name, lease=self.lease, fate=fate)

    def _tidy(self) -> None:
        try:
            self._ledger.compact()
        except ConnectorError as error:  # the events are committed: a longer ledger must not fail it
            _log.info("ledger %s was not compacted: %s", self._ledger.name, error)

    def _seen(self, transactions: Iterable[TransactionId], wait: bool, timeout: float | None) -> TransactionStatus:
        if not wait:
            return TransactionStatus.COMMITTING
        stores = self._decisions.stores
        try:
            await_visible(stores.controller, transactions, stores.timeout if timeout is None else timeout)
        except DeadlineExceededError:
            return TransactionStatus.COMMITTING
        return TransactionStatus.COMMITTED

    def _servers(self) -> Servers:
        stores = self._decisions.stores
        timeout = min(stores.timeout, _COMMIT * self.lease)
        return Servers(stores.controller, self._ledger, lease=self.lease, timeout=timeout)

    def _next_version(self) -> int:
        """Finish the last transaction of the application, and return the version that follows."""
        key, servers = Key(self.app_id, SEVERAL_STREAMS), self._servers()
        while True:
            app = self._ledger.read()[1].get(key)
            if app is None:
                return 0
            if app.open is None:
                return app.last + 1
            nonce, batch = str(uuid.uuid4()), app.open.batch
            job = Job(app.app, "", "", nonce, batch, role=Role.OPERATOR, target=key.target, time=app.open.time)
            machine = carry_out(Commit(job), servers)
            if machine.outcome in (Outcome.UNFINISHED, Outcome.TORN):
                return batch  # to be written again: a lost transaction is replaced, lost parts are repaired
            check_program(machine, self._ledger.name, lease=self.lease)

    # ---- context -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._ended:
            return
        if kind is not None:
            self._fail()
            return
        try:
            self.commit()
        except BaseException:
            if self._job is None:  # the flush has failed, and nothing is recorded
                self._fail()
            raise

    def _fail(self) -> None:
        """Abort because of an error, which stays the one to raise."""
        self._ended = True
        self._give_up(self._begun())

    def _give_up(self, shares: Iterable[_Share[T]]) -> None:
        """Abort the transactions of some streams. One that cannot be aborted ends with its lease."""
        io.side_by_side(_Share.try_to_abort, shares, MAX_CALLS)


class _Share(Generic[T]):
    """Events of one stream: its transaction, and the total of the events."""

    def __init__(self, writer: TransactionalWriter[bytes], serializer: SupportsSerialize[T] | None) -> None:
        self._writer, self._serializer = writer, serializer
        self.begun: OpenTransaction[bytes] | None = None
        """Transaction of the stream; None before it begins."""
        self.is_used = False
        """True if an event was written."""
        self._total = RowTotal()
        self._events: list[bytes] = []
        self._keys: list[str | None] = []
        self._size = 0

    @property
    def transaction(self) -> OpenTransaction[bytes]:
        """Transaction of the stream, which has begun."""
        assert self.begun is not None
        return self.begun

    def new_transaction(self) -> OpenTransaction[bytes] | PravegaError:
        """Begin a transaction, and return it or the error."""
        try:
            return self._writer.begin()
        except PravegaError as error:
            return error

    def try_to_abort(self) -> None:
        """Abort the transaction, within some seconds."""
        with contextlib.suppress(PravegaError):
            self.transaction.abort(timeout=_GIVE_UP_SECONDS)

    def write(self, value: T, routing_key: str | None) -> None:
        serializer = self._serializer
        event = as_bytes(value if serializer is None else serializer.serialize(value), raw=serializer is None)
        self.is_used = True
        self.transaction.write(event, routing_key)
        self._events.append(event)
        self._keys.append(routing_key)
        self._size += len(event)
        if self._size >= _BYTES or len(self._events) >= _EVENTS:
            self._count()

    def write_column(self, events: pa.Array, routing_keys: pa.Array | None) -> None:
        events = as_binary(events)
        self.is_used = True
        self.transaction.write_column(events, routing_keys)
        self._total.add(events, routing_keys)

    def _count(self) -> None:
        if self._events:
            self._total.add(pa.array(self._events, pa.large_binary()), pa.array(self._keys, pa.string()))
            self._events, self._keys, self._size = [], [], 0

    def part(self, decisions: Decisions) -> Part:
        """Return the part of the batch. Its events are flushed."""
        self._count()
        id_ = TransactionId(decisions.creation(self.transaction), self.transaction.id)
        return Part(id_, self._total.content)
