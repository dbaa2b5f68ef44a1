"""Exactly once: transactions that tasks write, and their commit by the driver.

Each task writes its rows into its own transactions, one for each stream of its rows, and leaves them open. Its message
has the ids and contents of the transactions. The driver processes the commit table
(:mod:`pravega_connector.exactly_once.batch_commit`) with the messages. The rows of a task that failed, or that lost a
race, are in no message. So they are never committed, and their transactions end when their lease expires.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import target_of
from pravega_connector.core.io import in_background
from pravega_connector.errors import ConfigError, ConnectorError, UnsupportedModeError
from pravega_connector.exactly_once.batch_commit import (
    SEVERAL_STREAMS,
    Ask,
    Commit,
    Content,
    Job,
    Key,
    Ledger,
    Outcome,
    Part,
    Phase,
    Role,
    Servers,
    TransactionId,
    await_visible,
    carry_out,
    check,
    ledger_name,
    note_parts,
    writer_of,
)
from pravega_connector.exactly_once.batch_commit.digest import RowTotal
from pravega_connector.rows.encoding import EventEncoder, EventTime, LatestTime
from pravega_connector.rows.options.sink import TARGET_STREAM, SinkOptions
from pravega_connector.rows.target_streams import Written, checked, parts_of
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.sink.writers_by_stream import MAX_TARGETS
from pravega_connector.spark.versions import WriterCommitMessage
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, Transaction
from pravega_serde.per_process import PerProcess

_log: Final = logging.getLogger(__name__)
#: Local property of a task by name, as ``TaskContext.getLocalProperty`` returns it.
Property = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class WriteId:
    """Identity of the write that a task belongs to, and its application."""

    app: str
    query: str
    run: str
    batch: int


@dataclass(frozen=True, slots=True)
class TaskPart:
    """Rows of a task in a transaction of one stream."""

    stream: StreamName
    transaction: uuid.UUID
    content: Content
    segment: int
    """Number of a segment of the stream; a recreated stream has other numbers."""
    event_time: int | None = None
    """Latest event time of these rows in milliseconds, if the sink has an event time column."""


@dataclass(frozen=True)
class TaskPrepared(Exchanged, WriterCommitMessage):  # type: ignore[misc]
    """Message of a task that has flushed its rows into transactions; a task without rows has no part."""

    write: WriteId
    partition: int
    parts: tuple[TaskPart, ...]


class ExactlyOnce:
    """Writer of the rows of tasks into transactions, and committer of a batch. Can be pickled."""

    def __init__(self, options: SinkOptions, encoder: EventEncoder, *, streaming: bool) -> None:
        self._options, self._encoder, self._streaming = options, encoder, streaming
        self._run = str(uuid.uuid4())  # run id of a write outside a query; a query has its own run ids

    # ---- in tasks ----------------------------------------------------------------------------------------------------

    def write(
        self, client: PravegaClient, iterator: Iterator[pa.RecordBatch], prepare: Callable[[StreamName], None]
    ) -> TaskPrepared:
        """Write the rows of one task; on return they are durable in transactions that are kept open.

        ``prepare`` checks or creates a stream that a row names.
        """
        context = TaskContext.get()
        assert context is not None
        write = self._write_id(context.getLocalProperty)
        task = _Task(client, self._options, self._encoder, write, prepare, ledger=self._ledger_name)
        try:
            task.begin_ahead()
            for batch in iterator:
                task.add(batch)
            return TaskPrepared(write, context.partitionId(), task.prepare())
        except BaseException:
            task.drop()
            raise

    def begin(self, client: PravegaClient, task: Property, partition: int) -> TaskTransaction:
        """Begin the transaction of a task that Spark's JVM writes; ``task`` returns its local properties."""
        write = self._write_id(task)  # before a transaction begins that its error would leave open
        share = _Share(client, self._options, self._options.stream_name(), None)
        return TaskTransaction(share.begin(), share, write, partition)

    def without_rows(self, task: Property, partition: int) -> TaskPrepared:
        """Return the message of a task that has begun no transaction."""
        return TaskPrepared(self._write_id(task), partition, ())

    def _write_id(self, task: Property) -> WriteId:
        query, run = task("sql.streaming.queryId") or "", _run_of_query(task) or self._run
        if not self._streaming:
            options = self._options
            assert options.txn_app_id is not None
            assert options.txn_version is not None
            return WriteId(options.txn_app_id, query, run, options.txn_version)
        if (batch := task("streaming.sql.batchId")) is None:
            raise UnsupportedModeError(
                "writer_mode=exactly_once needs batches, which a continuous trigger does not have: use "
                "trigger(processingTime=…)"
            )
        return WriteId(query, query, run, int(batch))

    # ---- in the driver -----------------------------------------------------------------------------------------------

    def prepare(self, client: PravegaClient) -> None:
        """Check before the first task that writes can succeed.

        Raises LeaseRangeError, AuthenticationError, ConfigError.
        """
        options, name = self._options, self._ledger_name
        options.check_lease()

        def probe() -> None:
            if self._several and options.allow_create_scope:
                client.controller.create_scope(name.scope)
            ledger = self._ledger(client)
            ledger.read()
            ledger.check_writable()
            if not self._several:
                # Only beginning a transaction shows if the servers allow its lease.
                client.transactions(options.stream_name(), lease=self._lease()).begin().abort()

        stream = name if self._several else options.stream_name()
        _probed.get((client, stream, options.transaction_timeout_ms), probe)

    @property
    def _several(self) -> bool:
        """True if rows name their streams: the batches of all streams are in one ledger."""
        return self._encoder.target is not None

    def commit(self, client: PravegaClient, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Commit the batch, once. Raises ExactlyOnceError and OutcomeUnknownError.

        The rows can be read on return. If the servers take longer than the commit timeout to make them visible, a
        warning is logged. The event time of the batch, if it has one, is noted even if another driver committed the
        batch.
        """
        servers, job = self._servers(client), self._job(client, messages, batch)
        servers.ask_ahead(Ask.PING, tuple(part.transaction for part in job.own))
        servers.ask_ahead(Ask.STATUS, servers.ledger.last_set(Key(job.app, job.target)))
        machine = carry_out(Commit(job), servers)
        check(machine, self._ledger_name if self._several else self._options.stream_name())
        recorded = machine.recorded
        ids = machine.settling if recorded is None else [part.transaction for part in recorded.parts]
        visible = self._await_visible(client, ids, max(_LOOK_SECONDS, servers.deadline.left))
        if machine.own_count:
            wait = machine.outcome is Outcome.COMMITTED and not visible
            note_parts(client.stores, writer_of(job.app), job.own, wait=wait)
        if machine.outcome is Outcome.COMMITTED:
            self._tidy(self._ledger(client))

    def _await_visible(self, client: PravegaClient, transactions: Sequence[TransactionId], timeout: float) -> bool:
        try:
            await_visible(client.controller, transactions, timeout)
        except ConnectorError as error:  # the batch is committed: late visibility must not fail it
            _log.warning("%s", error)
            return False
        return True

    @staticmethod
    def _tidy(ledger: Ledger) -> None:
        try:
            ledger.compact()
        except ConnectorError as error:  # the batch is committed: a longer ledger must not fail it
            _log.info("ledger %s was not compacted: %s", ledger.name, error)

    def abort(self, client: PravegaClient, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Drop the rows of the tasks, unless the ledger names them: Spark also calls this after a failed commit."""
        if any(isinstance(message, TaskPrepared) and message.parts for message in messages):
            job = self._job(client, messages, batch)
            carry_out(Commit(job, Phase.ABANDON_READ), self._servers(client))

    def _part(self, client: PravegaClient, part: TaskPart) -> Part:
        """Return a part with the creation of its stream.

        If the stream was deleted and created again, the task wrote to a segment with another number.
        """
        key = client, part.stream, part.segment
        stream = _targets.get(key, lambda: target_of(client.controller, part.stream))
        return Part(TransactionId(stream, part.transaction), part.content, part.event_time)

    def _job(self, client: PravegaClient, messages: Sequence[WriterCommitMessage | None], batch: int) -> Job:
        prepared = sorted((m for m in messages if isinstance(m, TaskPrepared)), key=lambda m: m.partition)
        nonce, options = str(uuid.uuid4()), self._options
        own = tuple(self._part(client, part) for message in prepared for part in message.parts)
        target = self._target(client, own)
        if prepared:
            write = prepared[0].write
        elif options.txn_app_id is not None and options.txn_version is not None:
            # Without a task the query is unknown. The ledger then keeps its query.
            write = WriteId(options.txn_app_id, "", self._run, options.txn_version)
        else:
            return Job("", "", "", nonce, batch, (), Role.BYSTANDER, target=target)
        adopt = options.ledger_adopt or not self._streaming
        accept = options.accept_recorded_batch
        now, several = time.time_ns() // 1_000_000, bool(write.query) and not self._streaming
        return Job(
            write.app,
            write.query,
            write.run,
            nonce,
            write.batch,
            own,
            adopt=adopt,
            accept=accept,
            target=target,
            time=now,
            several=several,
        )

    def _target(self, client: PravegaClient, own: Sequence[Part]) -> str:
        if self._several:
            return SEVERAL_STREAMS
        return own[0].transaction.stream if own else target_of(client.controller, self._options.stream_name())

    def _servers(self, client: PravegaClient) -> Servers:
        timeout = self._options.commit_timeout
        return Servers(client.controller, self._ledger(client), lease=self._lease(), timeout=timeout)

    def _ledger(self, client: PravegaClient) -> Ledger:
        name = self._ledger_name
        return _ledgers.get((client, name), lambda: Ledger(client.stores, name))

    @property
    def _ledger_name(self) -> StreamName:
        options = self._options
        if self._several:
            return options.stream_named(options.ledger)
        return ledger_name(options.stream_name(), options.ledger)

    def _lease(self) -> float:
        return self._options.transaction_timeout_ms / 1000


def _run_of_query(task: Property) -> str:
    """Return the run id of the query that a task works for, also in ``foreachBatch``; empty outside a query.

    Spark sets it as the job group. In ``foreachBatch`` an application can set its own group, which would be the same in
    every run. A replay would then look like a second write of one run. So a group that is not a UUID is ignored.
    """
    if not task("sql.streaming.queryId"):
        return ""
    group = task("spark.jobGroup.id") or ""
    try:
        return str(uuid.UUID(group))
    except ValueError:
        return ""


#: Minimum seconds that a commit waits until the rows are visible.
_LOOK_SECONDS: Final = 1.0
#: Timeout of the abort of a failed task, in seconds. Without an abort, the transaction ends when its lease expires.
_DROP_SECONDS: Final = 5.0
#: Maximum applications whose transactions a worker keeps; each batch write may be a separate application.
MAX_APPS: Final = 256
#: Minimum part of the lease that is left when a task ends.
_LONG: Final = 0.9


class _Task:
    """Transactions of one task: one for each stream of its rows."""

    def __init__(
        self,
        client: PravegaClient,
        options: SinkOptions,
        encoder: EventEncoder,
        write: WriteId,
        prepare: Callable[[StreamName], None],
        *,
        ledger: StreamName,
    ) -> None:
        self._client, self._options, self._encoder, self._write = client, options, encoder, write
        self._prepare, self._named = prepare, checked(client, options.stream_named, ledger)
        self._shares: dict[StreamName, _Share] = {}

    def begin_ahead(self) -> None:
        """Begin transactions while Spark computes the rows: on the streams that had rows of the last task."""
        known = () if self._encoder.target is not None else (self._options.stream_name(),)
        for stream in _kept().expected(self._write.app, known):
            self._share(stream).begin_ahead()

    def add(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        parts = [part for part in parts_of(batch, self._encoder, self._named) if len(part.events)]
        shares = [self._share(part.stream) for part in parts]
        for share in shares if len(shares) > 1 else ():
            share.begin_ahead()
        for share, part in zip(shares, parts, strict=True):
            share.add(part)

    def _share(self, stream: StreamName) -> _Share:
        if (known := self._shares.get(stream)) is not None:
            return known
        if len(self._shares) >= MAX_TARGETS:
            raise ConfigError(
                f"the rows of one task are for more than {MAX_TARGETS} streams, such as {stream}: each is written by a "
                f"thread and a transaction. Repartition the rows by {TARGET_STREAM} before the write"
            )
        if self._encoder.target is not None:
            self._prepare(stream)
        share = self._shares[stream] = _Share(self._client, self._options, stream, self._encoder.event_time)
        return share

    def prepare(self) -> tuple[TaskPart, ...]:
        """Make the rows durable in the transactions.

        At least 90 % of their leases is left at this point, and they stay open while they are kept alive.
        """
        for share in self._shares.values():
            share.finish()
        parts = []
        for share in list(self._shares.values()):
            transaction, part = share.prepared()
            if transaction is None or part is None:
                in_background(share.drop, "pravega-drop")
                continue
            _kept().finish(self._write, transaction)
            parts.append(part)
        _kept().expect(self._write.app, tuple(part.stream for part in parts))
        return tuple(parts)

    def drop(self) -> None:
        """Abort the transactions: the task has failed. Spark ends this process, so the threads in it have no time."""
        for share in self._shares.values():
            share.drop(_DROP_SECONDS)


class _Share:
    """Transaction of one task and one stream.

    It begins with the first row or earlier, and is kept open until the batch is finished.
    """

    def __init__(
        self, client: PravegaClient, options: SinkOptions, stream: StreamName, event_time: EventTime | None
    ) -> None:
        self._client, self._options, self.stream = client, options, stream
        self._transaction: OpenTransaction[bytes] | None = None
        self._ahead: Future[OpenTransaction[bytes]] | None = None
        self._total, self._latest = RowTotal(), LatestTime(event_time)

    def begin_ahead(self) -> None:
        """Begin the transaction in the background."""
        if self._transaction is None and self._ahead is None:
            self._ahead = in_background(self._begin, "pravega-begin")

    def begin(self) -> OpenTransaction[bytes]:
        """Return the transaction. It begins now, unless it has begun in the background."""
        if self._transaction is None:
            self._transaction = self._begin() if self._ahead is None else self._ahead.result()
        return self._transaction

    def add(self, part: Written) -> None:
        """Write rows."""
        self.begin().write_column(part.events, part.keys)
        self._total.add(part.events, part.keys)
        self._latest.add(part.rows)

    def _begin(self) -> OpenTransaction[bytes]:
        options = self._options
        transaction: OpenTransaction[bytes] = self._client.transactions(
            self.stream,
            lease=options.transaction_timeout_ms / 1000,
            max_event_size=options.max_event_size,
            timeout=options.write_timeout,
        ).begin()
        _kept().add(transaction)
        return transaction

    def finish(self) -> None:
        """Return when the rows are durable, with at least 90 % of the lease left."""
        if (transaction := self._transaction) is not None:
            transaction.detach()
            if transaction.lease_left < _LONG * transaction.lease:
                transaction.ping()

    def prepared(self, content: Content | None = None) -> tuple[OpenTransaction[bytes] | None, TaskPart | None]:
        """Return the transaction and the part of the batch, both None without rows.

        ``content`` is the content of rows that another process has written.
        """
        transaction = self._transaction
        if transaction is None:
            return None, None
        content, segment = content or self._total.content, transaction.segment_number
        return transaction, TaskPart(self.stream, transaction.id, content, segment, self._latest.millis)

    def drop(self, timeout: float | None = None) -> None:
        """Abort the transaction: the task has failed, or had no rows of the stream.

        ``timeout`` limits the seconds of the wait for a transaction that begins in the background.
        """
        transaction = self._transaction
        if transaction is None and self._ahead is not None:
            with contextlib.suppress(ConnectorError, TimeoutError):
                transaction = self._ahead.result(timeout)
        if transaction is not None:
            _give_up(transaction)


@dataclass(frozen=True, slots=True)
class TaskTransaction:
    """Transaction of a task that Spark's JVM writes. This process keeps it open."""

    transaction: OpenTransaction[bytes]
    _share: _Share
    _write: WriteId
    _partition: int

    def prepared(self, content: Content) -> TaskPrepared:
        """Return the message of the task when all its rows are durable."""
        self._share.finish()
        _, part = self._share.prepared(content)
        assert part is not None
        _kept().finish(self._write, self.transaction)
        return TaskPrepared(self._write, self._partition, (part,))

    def drop(self) -> None:
        """Abort the transaction: the task has failed."""
        self._share.drop()


def stop_keeping() -> None:
    """Stop the keep-alives of the transactions of finished tasks."""
    _kept().forget_finished()


def _give_up(transaction: Transaction) -> None:
    _kept().discard(transaction)
    # Show the task's own error. A transaction that cannot be aborted ends when its lease expires.
    with contextlib.suppress(ConnectorError):
        transaction.abort(timeout=_DROP_SECONDS)


class KeptTransactions:
    """Transactions of tasks that this process has written, kept open by keep-alives.

    The transactions of finished tasks wait for the other tasks of the batch. The worker that wrote them stays alive
    (Spark ends it after a minute in which no worker had a task). The worker keeps them open until it works for another
    batch of the same application, because the workers of all queries are shared.
    """

    def __init__(self) -> None:
        self._streams: dict[str, tuple[StreamName, ...]] = {}  # by application: streams with rows of the last task
        self._keeper = LeaseKeeper()
        self._finished: dict[str, list[tuple[WriteId, Transaction]]] = {}
        self._finishing = threading.Lock()  # a process that helps the JVM has several tasks at a time

    def expected(self, app: str, first: tuple[StreamName, ...]) -> tuple[StreamName, ...]:
        """Return the streams that had rows of an application's last task in this process, ``first`` before that."""
        return self._streams.get(app, first)

    def expect(self, app: str, streams: tuple[StreamName, ...]) -> None:
        """Record the streams that had rows of a task of an application."""
        if len(self._streams) >= MAX_APPS:
            self._streams.clear()
        self._streams[app] = streams

    def add(self, transaction: Transaction) -> None:
        """Keep the transaction of a running task open."""
        self._keeper.add(transaction)

    def discard(self, transaction: Transaction) -> None:
        """Stop keeping a transaction open."""
        self._keeper.discard(transaction)

    def finish(self, write: WriteId, transaction: Transaction) -> None:
        """Keep a transaction until the next batch of its application; stop keeping those of earlier batches.

        Raises the error of the keep-alive if the transaction could not be kept open.
        """
        if (failure := self._keeper.failures.get(transaction.id)) is not None:
            raise failure
        with self._finishing:
            mine = self._finished.pop(write.app, [])
            over = [entry for entry in mine if entry[0] != write]
            if len(self._finished) >= MAX_APPS:
                over += self._finished.pop(next(iter(self._finished)))
            # Last in order: the first application is the one without a task for the longest time.
            self._finished[write.app] = [*(entry for entry in mine if entry[0] == write), (write, transaction)]
        for _, done in over:
            self._keeper.discard(done)

    def forget_finished(self) -> None:
        """Stop keeping the transactions of all finished tasks."""
        with self._finishing:
            finished = [done for entries in self._finished.values() for _, done in entries]
            self._finished.clear()
        for done in finished:
            self._keeper.discard(done)

    def close(self) -> None:
        """Stop all keep-alives."""
        self._keeper.close()


# Probed or created once per process: Spark creates writers for every micro-batch.
_probed: Final[PerProcess[tuple[PravegaClient, StreamName, int], None]] = PerProcess()
_ledgers: Final[PerProcess[tuple[PravegaClient, StreamName], Ledger]] = PerProcess()
_targets: Final[PerProcess[tuple[PravegaClient, StreamName, int], str]] = PerProcess()
_kept_of_process: Final[PerProcess[None, KeptTransactions]] = PerProcess()


def _kept() -> KeptTransactions:
    return _kept_of_process.get(None, KeptTransactions)
