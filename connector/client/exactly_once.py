"""A reader of a group whose output is written exactly once: events in, a transaction out, and the position with it.

The group alone cannot say what was processed: what a dead reader did since its last checkpoint comes again. So the
readers keep a ledger beside it (:mod:`connector.groups.ledger`), changed by conditional updates only:

1. A reader that acquires segments *claims* them in the ledger, and begins where the ledger says, not the group.
2. It processes events into a transaction, and flushes it.
3. It *prepares*: the ledger takes the transaction's id with the offsets, segment by segment, from where to where.
   This is refused unless all these segments are still claimed by it and are where it began.
4. It commits the transaction and waits until readers see it, then goes on; the next update says what became of it.

Why an event is in the output exactly once: only a prepared transaction is committed, by anybody. A segment can be
claimed, or be prepared again, only when its last prepared transaction is decided; a transaction is decided once, on the
server, and whoever asks makes it so by committing it, since it is complete. Committed: its events lie before the new
position, and no step can begin there again. Aborted: its events are in no output, and the next step begins before them.
So two committed steps never have an event in common and leave none out between them; a process that was taken for dead
finds its claim gone when it prepares, and its transaction, which nobody commits, ends by its lease.

Why the order of each key is kept: steps of one segment are visible one after the other (4), and the group gives out
what follows a segment only after a checkpoint of the reader that has read it to its end, before which that reader
commits.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from pravega_serde import forks

from ..errors import (
    ConfigError,
    ConnectorError,
    DeadlineExceededError,
    OutcomeUnknownError,
    ReaderOfflineError,
    TransactionAbortedError,
    TransactionUnknownError,
)
from ..groups import Positions, Segment
from ..groups.ledger import Ledger, LedgerJson, LedgerUpdate, Life, Step, claim, ledger_stream, prepare, undecided
from ..hints import HintedNames
from ..wire import StreamName
from . import arguments
from .controller_values import STATE_TAG, TransactionStatus
from .group_member import GroupMember
from .group_reader import GroupEvent, GroupReader
from .synchronizer import StateSynchronizer
from .transactions import LeaseKeeper, OpenTransaction, TransactionalWriter

if TYPE_CHECKING:
    from .pravega_client import PravegaClient

__all__ = ["ExactlyOnceReader"]

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
# Updates after which it is looked whether the ledger is worth compacting, and the bytes from which it is.
_LOOK_EVERY: Final = 200
_COMPACT_BYTES: Final = 512 * 1024


class ExactlyOnceReader(HintedNames, Generic[T]):
    """Reader of a group, and writer of what becomes of its events. Not thread safe. Context manager.

    What is written with :meth:`write` becomes visible together with the position behind all events that were handed
    out before the call that commits: the first one after ``interval`` seconds, or a checkpoint. The end of the block
    commits the rest and leaves the group; an error in it drops what is not committed, which then comes to another
    reader.
    After an error of its own it is done with: leave the block and make a new one.
    """

    def __init__(
        self,
        client: PravegaClient,
        scope: str,
        group: str,
        reader_id: str,
        *,
        serializer: Any,
        writer: TransactionalWriter[Any],
        interval: float,
        delay: float,
    ) -> None:
        self._client, self._writer, self._interval = client, writer, interval
        self._run = f"{reader_id}/{uuid.uuid4()}"
        self._ledger = _Shared(client, scope, group)
        self._at: dict[Segment, int] = {}  # where the ledger has the segments that are claimed
        self._decided: dict[uuid.UUID, bool] = {}
        self._transaction: OpenTransaction[Any] | None = None
        self._began: float | None = None  # when the first event of the step was handed out
        self._keeper = LeaseKeeper()
        self._broken = False
        with contextlib.ExitStack() as undo:
            undo.callback(self._ledger.close)
            undo.callback(self._keeper.close)
            self._member = GroupMember(client.stores, scope, group, reader_id, delay=delay)
            undo.callback(self._member.close)
            config = self._member.state.config
            self._life = Life(config.id, config.generation)
            self._ledger.begin(self._life)
            self._reader: GroupReader[T] = GroupReader(client.stores, self._member, serializer, begin_at=self._claim)
            undo.pop_all()
        forks.register(self)

    def _after_fork(self) -> None:
        self._broken = forks.inherited("ExactlyOnceReader")

    @property
    def id(self) -> str:
        """Name of the reader in its group."""
        return self._reader.id

    @property
    def committed(self) -> dict[Segment, int]:
        """Offsets up to which the events of its segments are in the output; END_OF_SEGMENT for all of them."""
        return dict(self._at)

    @property
    def timeout(self) -> float:
        """Seconds that a call of the client may take."""
        return self._reader.timeout

    @property
    def at_end(self) -> bool:
        """Whether the group has read all there is; what was handed out last may still have to be committed."""
        return self._reader.at_end

    # ---------------------------------------------------------------- events in, events out

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> GroupEvent[T]:
        """The next event; what was handed out before has its output by now. Ends when the group has read all there is.

        Raises what :meth:`GroupReader.poll` and :meth:`commit` do.
        """
        while True:
            found = self.next_event(self.timeout)
            if found is not None:
                return found
            if self._reader.at_end:
                self.commit()
                raise StopIteration

    def next_event(self, timeout: float) -> GroupEvent[T] | None:
        """The next event; None if none came within ``timeout`` seconds. Raises as a step does."""
        found: GroupEvent[T] | None = self._poll(self._reader.next_event, timeout)
        return found

    def poll(self, timeout: float) -> list[GroupEvent[T]]:
        """The next events, all of one segment; none if none came within ``timeout`` seconds. Raises as a step does."""
        arguments.wait("timeout", timeout)
        return self._poll(self._reader.poll, timeout) or []

    def _poll(self, take: Callable[[float], Any], timeout: float) -> Any:
        """What ``take`` gives that is no checkpoint, within so many seconds; commits when it is time."""
        self._check()
        end = time.monotonic() + timeout
        while True:
            now = time.monotonic()
            wait = max(0.0, end - now)
            if self._began is not None:
                due = self._began + self._interval
                if now >= due:
                    self.commit()
                else:
                    wait = min(wait, due - now)
            try:
                found = take(wait)
            except ReaderOfflineError:
                self._broken = True
                raise
            first = found[0] if isinstance(found, list) and found else found
            if not first:
                self._settle()
                if time.monotonic() >= end or self._reader.at_end:
                    return None
                continue
            if not first.is_checkpoint:
                if self._began is None:
                    self._began = time.monotonic()
                return found
            self.commit()  # the next call tells the group that it is taken

    def write(self, value: Any, routing_key: str | None = None, *, key: object = None) -> None:
        """Write an event that comes of those handed out; as :meth:`EventWriter.write`. Raises as transactions do."""
        self.begin().write(value, routing_key, key=key)

    def begin(self) -> OpenTransaction[Any]:
        """The transaction of the next commit; :meth:`write` begins one if there is none."""
        self._check()
        if self._transaction is None:
            transaction = self._writer.begin()
            self._transaction = transaction
            self._keeper.add(transaction)
        return self._transaction

    def commit(self, *, before: GroupEvent[T] | None = None) -> None:
        """Have all that was handed out count as processed: its output is visible on return, for good.

        With ``before``, an event of the last call, it and those behind it in its segment are left to the next commit.
        Raises ReaderOfflineError if another reader has taken over, TransactionExpiredError, OutcomeUnknownError,
        DeadlineExceededError; a new reader finds out what became of it.
        """
        self._check()
        position = dict(self._reader.position.positions)
        if before is not None and before.segment in position:
            position[before.segment] = before.offset
        moved = {s: (at, position[s]) for s, at in self._at.items() if s in position and position[s] != at}
        transaction = self._transaction
        if not moved and transaction is None:
            self._began = None if before is None else self._began
            return
        self._broken = True  # until it is done
        if transaction is not None:
            if not moved:
                raise ConfigError("events were written before any was read: write what comes of the events")
            transaction.detach()
        step = Step(
            moved, None if transaction is None else transaction.id, self._writer.stream if transaction else None
        )
        self._ledger.prepare(
            LedgerUpdate(run=self._run, life=self._life, forget=self._gone(), decided=self._decided, step=step)
        )
        self._decided = {}
        for segment in self._at.keys() - position.keys():
            del self._at[segment]
        if transaction is not None:
            self._transaction = None  # it is the ledger's now
            if transaction.commit() is not TransactionStatus.COMMITTED:
                raise _not_visible(transaction.stream, transaction.id)
            self._keeper.discard(transaction)
            self._decided = {transaction.id: True}
        self._at |= {segment: end for segment, (_, end) in moved.items()}
        self._began, self._broken = None if before is None else time.monotonic(), False
        self._ledger.compact()

    # ---------------------------------------------------------------- the end

    def finish(self, *, before: GroupEvent[T] | None = None) -> None:
        """Commit as :meth:`commit`, and note in the ledger what became of it, as the end of the block does."""
        self.commit(before=before)
        self._settle()

    def close(self) -> None:
        """Commit, and leave the group. Durable on return."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if forks.is_inherited(self._broken):
            return
        with contextlib.ExitStack() as last:
            last.callback(self._ledger.close)
            last.callback(self._keeper.close)
            last.callback(self._member.close)
            last.callback(self._drop)
            if kind is None and not self._broken:
                self.finish()
            self._reader.leave(self._at)

    def _drop(self) -> None:
        """Abort what was not prepared; what cannot be aborted now ends with its lease."""
        if self._transaction is not None:
            with contextlib.suppress(ConnectorError):
                self._transaction.abort(timeout=5.0)

    # ---------------------------------------------------------------- inside

    def _settle(self) -> None:
        """Note in the ledger what became of the last step: the server forgets transactions after a day."""
        if self._decided:
            self._ledger.settle(LedgerUpdate(run=self._run, life=self._life, decided=self._decided))
            self._decided = {}

    def _check(self) -> None:
        if self._broken:
            raise ConfigError(f"reader {self.id} has failed or is closed: make a new one of its group")
        try:
            self._keeper.check()
        except ConnectorError:
            self._broken = True
            raise

    def _gone(self) -> tuple[Segment, ...]:
        """Segments that the group has done with, and that the ledger need not know any longer."""
        left = self._at.keys() - self._reader.position.positions.keys()
        known = self._member.state.positions
        return tuple(sorted(segment for segment in left if segment not in known))

    def _claim(self, acquired: Positions) -> Mapping[Segment, int]:
        """Make segments this run's; where to begin with them."""
        config = self._member.state.config
        self._life = Life(config.id, config.generation)
        self._broken = True
        update = LedgerUpdate(run=self._run, life=self._life, claim=acquired)
        offsets = self._ledger.claim(update)
        self._broken = False
        found = {segment: offsets[segment] for segment in acquired}
        for segment, offset in found.items():
            if offset != acquired[segment]:
                _log.info(
                    "%s: %s is at %d in the ledger, %d in the group", self._run, segment, offset, acquired[segment]
                )
        self._at |= found
        return found


class _Shared:
    """The ledger in its stream, which is made if it is not there."""

    def __init__(self, client: PravegaClient, scope: str, group: str) -> None:
        self._client, self._name = client, ledger_stream(scope, group)
        if not client.controller.stream_exists(self._name):
            client.create_stream(self._name, tags=[STATE_TAG])
        self._log: StateSynchronizer[Ledger, Ledger, LedgerUpdate] = client.synchronizer(
            self._name,
            create=lambda ledger: ledger,
            apply=lambda ledger, update: ledger.apply(update),
            init_serializer=LedgerJson(Ledger),
            update_serializer=LedgerJson(LedgerUpdate),
        )
        self._patience = client.health.failover_timeout
        self._updates = 0

    def begin(self, life: Life) -> None:
        self._log.initialize(Ledger(life=life))

    def close(self) -> None:
        self._log.close()

    @property
    def _state(self) -> Ledger:
        state = self._log.state
        assert state is not None
        return state

    def claim(self, update: LedgerUpdate) -> Mapping[Segment, int]:
        """Decide what is prepared on the segments, and claim them; their offsets."""
        decided: dict[uuid.UUID, bool] = {}
        end = time.monotonic() + self._patience
        self._log.fetch_updates()
        while True:
            for step in undecided(self._state, update.life, update.claim):
                if step.transaction is not None and step.transaction not in decided:
                    decided[step.transaction] = self._decide(step, forgotten=update.life != self._state.life)
            whole = LedgerUpdate(run=update.run, life=update.life, claim=update.claim, decided=dict(decided))
            if self._write(lambda state, whole=whole: claim(state, whole)):  # type: ignore[misc]
                return self._state.offsets
            if time.monotonic() > end:
                raise DeadlineExceededError(f"ledger {self._name}: other readers were faster for {self._patience:g} s")

    def prepare(self, update: LedgerUpdate) -> None:
        self._write(lambda state: prepare(state, update))

    def settle(self, update: LedgerUpdate) -> None:
        """Note what became of steps."""
        self._write(lambda state: [update] if state.life == update.life else [])

    def compact(self) -> None:
        """Write the whole ledger as one value, now and then, if a new reader would have much to read."""
        self._updates += 1
        if self._updates % _LOOK_EVERY == 0 and self._log.bytes_since_compaction() > _COMPACT_BYTES:
            self._log.compact(lambda ledger: ledger)

    def _write(self, generate: Callable[[Ledger], list[LedgerUpdate]]) -> bool:
        """Whether an update was written; asks until it is known, as what is there already changes nothing."""
        end = time.monotonic() + self._patience
        while True:
            try:
                return bool(self._log.update_state(generate))
            except OutcomeUnknownError:
                if time.monotonic() > end:
                    raise
                self._log.fetch_updates()

    def _decide(self, step: Step, *, forgotten: bool) -> bool:
        """Whether a prepared step is in the output: it is committed, unless its lease has ended before.

        Raises TransactionUnknownError for one that the server does not know any longer, unless it may be ``forgotten``.
        """
        assert step.transaction is not None
        assert step.target is not None
        transaction = self._client.transaction(step.target, step.transaction)
        try:
            status = transaction.commit()
        except TransactionAbortedError:
            _log.info("ledger %s: transaction %s was aborted, its events come again", self._name, step.transaction)
            return False
        except TransactionUnknownError:
            if forgotten:  # the group was reset: nobody goes on from there
                return False
            raise
        if status is not TransactionStatus.COMMITTED:
            raise _not_visible(step.target, step.transaction)
        return True


def _not_visible(stream: StreamName, transaction: uuid.UUID) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"transaction {transaction} of stream {stream} is committed, but not visible in time: a new reader goes on "
        "behind it"
    )
