"""Exactly once: transactions that tasks write, and their commit by the driver.

Each task writes its rows into its own transaction and leaves it open. Its message has the id and the content of the
transaction. The driver processes the commit table (:mod:`pravega_connector.exactly_once.batch_commit`) with the
messages. The rows of a task that failed, or that lost a race, are in no message. So they are never committed, and their
transaction ends when its lease expires.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.io import in_background
from pravega_connector.errors import ConfigError, ConnectorError
from pravega_connector.exactly_once.batch_commit import (
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
    target_of,
    writer_of,
)
from pravega_connector.spark.options.sink import SinkOptions
from pravega_connector.spark.pickling import Exchanged
from pravega_connector.spark.sink.digest import RowTotal
from pravega_connector.spark.sink.encoding import EventEncoder, LatestTime
from pravega_connector.wire import StreamName
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction, Transaction
from pravega_serde.per_process import PerProcess

_log: Final = logging.getLogger(__name__)


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

    def write(self, client: PravegaClient, iterator: Iterator[pa.RecordBatch]) -> TaskPrepared:
        """Write the rows of one task; on return they are durable in a transaction that is kept open."""
        context = TaskContext.get()
        assert context is not None
        write = self._write_id(context)
        task, latest = _Task(client, self._options, write), LatestTime(self._encoder.event_time)
        try:
            task.begin_ahead()
            for batch in iterator:
                task.add(*self._encoder.encode(batch))
                latest.add(batch)
            part = task.prepare(latest.millis)
            return TaskPrepared(write, context.partitionId(), () if part is None else (part,))
        except BaseException:
            task.drop()
            raise

    def _write_id(self, context: TaskContext) -> WriteId:
        query, run = context.getLocalProperty("sql.streaming.queryId") or "", _run_of_query(context) or self._run
        if not self._streaming:
            options = self._options
            assert options.txn_app_id is not None
            assert options.txn_version is not None
            return WriteId(options.txn_app_id, query, run, options.txn_version)
        batch = context.getLocalProperty("streaming.sql.batchId")
        if not query or batch is None:
            raise ConfigError(
                "this Spark does not pass the ids of the query and the batch to its tasks; set writer_mode to "
                "at_least_once"
            )
        return WriteId(query, query, run, int(batch))

    # ---- in the driver -----------------------------------------------------------------------------------------------

    def prepare(self, client: PravegaClient) -> None:
        """Check before the first task that writes can succeed.

        Raises LeaseRangeError, AuthenticationError, ConfigError.
        """
        stream = self._options.stream_name()
        self._options.check_lease()

        def probe() -> None:
            ledger = self._ledger(client)
            ledger.read()
            ledger.check_writable()
            # Only beginning a transaction shows if the servers allow its lease.
            client.transactions(stream, lease=self._lease()).begin().abort()

        _probed.get((client, stream, self._options.transaction_timeout_ms), probe)

    def commit(self, client: PravegaClient, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
        """Commit the batch, once. Raises ExactlyOnceError and OutcomeUnknownError.

        The rows of a batch write can be read on return. If the servers take longer than the commit timeout to make them
        visible, a warning is logged. The rows of a micro-batch can be read a moment later. The event time of the batch,
        if it has one, is noted even if another driver committed the batch.
        """
        servers, job = self._servers(client), self._job(client, messages, batch)
        servers.ask_ahead(Ask.PING, tuple(part.transaction for part in job.own))
        servers.ask_ahead(Ask.STATUS, servers.ledger.last_set(Key(job.app, job.target)))
        machine = carry_out(Commit(job), servers)
        check(machine, self._options.stream_name())
        if not self._streaming:
            recorded = machine.recorded
            ids = machine.settling if recorded is None else [part.transaction for part in recorded.parts]
            self._await_visible(client, ids, max(_LOOK_SECONDS, servers.deadline.left))
        if machine.own_count:
            note_parts(client.stores, writer_of(job.app), job.own, wait=machine.outcome is Outcome.COMMITTED)
        if machine.outcome is Outcome.COMMITTED:
            self._tidy(self._ledger(client))

    def _await_visible(self, client: PravegaClient, transactions: Sequence[TransactionId], timeout: float) -> None:
        try:
            await_visible(client.controller, transactions, timeout)
        except ConnectorError as error:  # the batch is committed: late visibility must not fail it
            _log.warning("%s", error)

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
        target = own[0].transaction.stream if own else target_of(client.controller, options.stream_name())
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

    def _servers(self, client: PravegaClient) -> Servers:
        timeout = self._options.commit_timeout
        return Servers(client.controller, self._ledger(client), lease=self._lease(), timeout=timeout)

    def _ledger(self, client: PravegaClient) -> Ledger:
        name = ledger_name(self._options.stream_name(), self._options.ledger)
        return _ledgers.get((client, name), lambda: Ledger(client.stores, name))

    def _lease(self) -> float:
        return self._options.transaction_timeout_ms / 1000


def _run_of_query(context: TaskContext) -> str:
    """Return the run id of the query that a task works for, also in ``foreachBatch``; empty outside a query.

    Spark sets it as the job group. In ``foreachBatch`` an application can set its own group, which would be the same in
    every run. A replay would then look like a second write of one run. So a group that is not a UUID is ignored.
    """
    if not context.getLocalProperty("sql.streaming.queryId"):
        return ""
    group = context.getLocalProperty("spark.jobGroup.id") or ""
    try:
        return str(uuid.UUID(group))
    except ValueError:
        return ""


#: Minimum seconds that a batch write waits until its rows are visible.
_LOOK_SECONDS: Final = 1.0
#: Timeout of the abort of a failed task, in seconds. Without an abort, the transaction ends when its lease expires.
_DROP_SECONDS: Final = 5.0
#: Maximum applications whose transactions a worker keeps; each batch write may be a separate application.
MAX_APPS: Final = 256
#: Minimum part of the lease that is left when a task ends.
_LONG: Final = 0.9


class _Task:
    """Transaction of one task.

    It begins with the first row or earlier, and is kept open until the batch is finished.
    """

    def __init__(self, client: PravegaClient, options: SinkOptions, write: WriteId) -> None:
        self._client, self._options, self._write = client, options, write
        self._transaction: OpenTransaction[bytes] | None = None
        self._ahead: Future[OpenTransaction[bytes]] | None = None
        self._total = RowTotal()

    def begin_ahead(self) -> None:
        """Begin the transaction while Spark computes the rows, unless no rows are expected."""
        if _kept().expects_rows(self._write.app):
            self._ahead = in_background(self._begin, "pravega-begin")

    def add(self, events: pa.Array, keys: pa.Array | None) -> None:
        """Write rows."""
        if not len(events):
            return
        if self._transaction is None:
            self._transaction = self._begin() if self._ahead is None else self._ahead.result()
        self._transaction.write_column(events, keys)
        self._total.add(events, keys)

    def _begin(self) -> OpenTransaction[bytes]:
        options = self._options
        transaction: OpenTransaction[bytes] = self._client.transactions(
            options.stream_name(),
            lease=options.transaction_timeout_ms / 1000,
            max_event_size=options.max_event_size,
            timeout=options.write_timeout,
        ).begin()
        _kept().add(transaction)
        return transaction

    def prepare(self, event_time: int | None = None) -> TaskPart | None:
        """Make the rows durable in the transaction.

        At least 90 % of its lease is left at this point, and it stays open while it is kept alive.
        """
        transaction = self._transaction
        if transaction is None:
            _kept().finish_without_rows(self._write.app)
            self.drop()
            return None
        transaction.detach()
        if transaction.lease_left < _LONG * transaction.lease:
            transaction.ping()
        _kept().finish(self._write, transaction)
        stream, segment = self._options.stream_name(), transaction.segment_number
        return TaskPart(stream, transaction.id, self._total.content, segment, event_time)

    def drop(self) -> None:
        """Abort the transaction: the task has failed, or had no rows."""
        if self._transaction is not None:
            _give_up(self._transaction)
        elif (ahead := self._ahead) is not None:  # abort in the background as soon as it has begun
            in_background(lambda: _give_up(ahead.result()), "pravega-drop")


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
        self._without_rows: set[str] = set()  # applications whose last task had no rows
        self._keeper = LeaseKeeper()
        self._finished: dict[str, list[tuple[WriteId, Transaction]]] = {}

    def expects_rows(self, app: str) -> bool:
        """Return False if the last task of an application in this process had no rows, otherwise True."""
        return app not in self._without_rows

    def finish_without_rows(self, app: str) -> None:
        """Record that a task of an application had no rows."""
        if len(self._without_rows) >= MAX_APPS:
            self._without_rows.clear()
        self._without_rows.add(app)

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
        self._without_rows.discard(write.app)
        mine = self._finished.pop(write.app, [])
        over = [entry for entry in mine if entry[0] != write]
        if len(self._finished) >= MAX_APPS:
            over += self._finished.pop(next(iter(self._finished)))
        for _, done in over:
            self._keeper.discard(done)
        # Last in order: the first application is the one without a task for the longest time.
        self._finished[write.app] = [*(entry for entry in mine if entry[0] == write), (write, transaction)]

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
