"""Stream with the log of steps, and the calls that a turn requests."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from pravega_connector.controller.transactions import CommitWatch
from pravega_connector.core import io
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.core.values import STATE_TAG, StreamConfig, TransactionStatus
from pravega_connector.errors import (
    ConnectorError,
    DeadlineExceededError,
    OutcomeUnknownError,
    TransactionAbortedError,
    TransactionCommittedError,
    TransactionUnknownError,
)
from pravega_connector.exactly_once.steps.machine import Ask, Phase, Request, Turn
from pravega_connector.exactly_once.steps.state import Life, Named, Step, StepsJson, StepsState, Update
from pravega_connector.single_segment.revisioned import Revision
from pravega_connector.single_segment.synchronizer import StateSynchronizer
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import StreamName

_log: Final = logging.getLogger(__name__)
# Bytes of updates after which one initial value replaces them, and number of appends between two checks.
_COMPACT_AFTER: Final = 1 << 20
_CHECK_EVERY: Final = 200
# An initial value is one event of the log.
_LARGEST: Final = MAX_EVENT_SIZE - 64
# Seconds between the first two polls of a commit that is under way, and the longest pause.
_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 0.5
# The controller reads its records from segments. If a store has lost them unnoticed, the answer may be UNKNOWN.
_UNKNOWN_POLLS: Final = 3
_UNKNOWN_PAUSE: Final = 1.0


def synchronizer(stores: SegmentStores, name: StreamName) -> StateSynchronizer[StepsState, StepsState, Update]:
    """Return the state synchronizer of a log of steps, which nothing has read yet."""
    return StateSynchronizer(
        stores,
        name,
        create=lambda state: state,
        apply=lambda state, update: state.apply(update),
        init_serializer=StepsJson(StepsState),
        update_serializer=StepsJson(Update),
    )


class StepLog:
    """Log of one program, shared by its runs. Creates the stream if it does not exist. Not thread safe."""

    def __init__(self, stores: SegmentStores, name: StreamName, life: Life) -> None:
        """Open the log.

        Raises StepsStateError for the log of another program, AuthenticationError, and ConfigError.
        """
        self.name = name
        self._controller, self._health = stores.controller, stores.health
        self._watches: dict[StreamName, CommitWatch] = {}
        self._appended = _CHECK_EVERY  # a short run checks once
        # Creating a stream needs a permission on the whole scope, which using an existing one does not need.
        if not stores.controller.stream_exists(name):
            stores.controller.create_stream_with(name, StreamConfig(tags=(STATE_TAG,)))
        self._shared = synchronizer(stores, name)
        try:
            self._shared.initialize(StepsState(life))
        except BaseException:
            self.close()
            raise

    @property
    def state(self) -> StepsState:
        """State as of the last read."""
        state = self._shared.state
        assert state is not None
        return state

    @property
    def revision(self) -> Revision:
        """Revision of :attr:`state`."""
        revision = self._shared.revision
        assert revision is not None
        return revision

    def read(self) -> StepsState:
        """Read the log to its end. Raises DeserializationError, StepsStateError, DataLossError."""
        self._shared.fetch_updates()
        return self.state

    @property
    def life(self) -> Life:
        """Life of the log in :attr:`state`."""
        return self.state.life

    def carry_out(self, turn: Turn, *, known: bool = False, waiting: Callable[[], None] = lambda: None) -> Turn:
        """Execute a turn to its end. With ``known``, begin with the state as of the last read.

        ``waiting`` is called before each pause, while a commit is not visible.

        Raises DeadlineExceededError if, until the client's failover timeout, other runs were faster or a commit was not
        visible. Raises OutcomeUnknownError if no answer arrived within the same time; another turn determines the
        outcome.
        """
        deadline = Deadline(self._health.failover_timeout)
        polls = Polls(deadline, _FIRST_PAUSE, _LONGEST_PAUSE)
        if known and turn.phase is Phase.READ:
            # An outdated state costs one refused append.
            turn = turn.answered((self.revision, self.state))
        while not turn.ended:
            phase, turn = turn.phase, turn.answered(self._answer(turn.request(), deadline))
            if turn.phase is phase:
                waiting()
                if not polls.again():
                    raise _not_in_time(self.name, turn, deadline)
            if deadline.passed and not turn.ended:
                raise _not_in_time(self.name, turn, deadline)
        return turn

    def status(self, stream: StreamName, transaction: UUID) -> TransactionStatus:
        """Return the status of a transaction. It is UNKNOWN only if the server reports it repeatedly."""
        watch = self._watches.get(stream)
        if watch is None:
            watch = self._watches[stream] = CommitWatch(self._controller, stream)
        for _ in range(_UNKNOWN_POLLS):
            status = watch.status(transaction)
            if status is not TransactionStatus.UNKNOWN:
                return status
            io.sleep(_UNKNOWN_PAUSE)
        return watch.status(transaction)

    def is_forgotten(self, named: Named) -> bool:
        """Return True if the servers do not know a transaction any more."""
        return self._status(named) is TransactionStatus.UNKNOWN

    def complete(self, step: Step) -> None:
        """Commit the parts of a committed step. It does not matter who does, and how often."""
        for part in step.parts:
            self._commit(part)

    def compact(self) -> None:
        """Replace the updates by one initial value if a new run would have to read many of them."""
        if self._appended < _CHECK_EVERY:
            return
        self._appended = 0
        try:
            if self._shared.bytes_since_compaction() > _COMPACT_AFTER:
                self._shared.compact(self._fitting)
        except ConnectorError as error:  # the update is written, and must not fail because of a longer log
            _log.info("log %s was not compacted: %s", self.name, error)

    def close(self) -> None:
        """Close the connection that writes."""
        self._shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- private

    def _fitting(self, state: StepsState) -> StepsState | None:
        size = len(StepsJson(StepsState).serialize(state))
        if size <= _LARGEST:
            return state
        _log.warning("log %s is not compacted: its state of %d bytes is over %d", self.name, size, _LARGEST)
        return None

    def _answer(self, request: Request, deadline: Deadline) -> Any:
        if request.ask is Ask.READ:
            state = self.read()
            return self.revision, state
        if request.ask is Ask.APPEND:
            assert request.update is not None
            return self._append(request.update, request.revision, deadline)
        call = {Ask.STATUS: self._status, Ask.ABORT: self._abort, Ask.COMMIT: self._commit}[request.ask]
        return {named.id: call(named) for named in request.transactions}

    def _append(self, update: Update, revision: Revision, deadline: Deadline) -> bool:
        """Append at a revision. After a lost answer, append again: the log accepts only one of the two."""
        while True:
            try:
                written = self._shared.update_state(lambda _: [update] if self.revision == revision else [])
            except OutcomeUnknownError:
                if deadline.passed:
                    raise
            else:
                self._appended += 1
                return bool(written)

    def _status(self, named: Named) -> TransactionStatus:
        return self.status(_stream(named), named.id)

    def _abort(self, named: Named) -> TransactionStatus:
        return self._changed(named, lambda: self._controller.abort_transaction(_stream(named), named.id))

    def _commit(self, named: Named) -> TransactionStatus:
        return self._changed(named, lambda: self._controller.commit_transaction(_stream(named), named.id))

    def _changed(self, named: Named, call: Callable[[], TransactionStatus]) -> TransactionStatus:
        """Return the status after a call that may be refused."""
        try:
            return call()
        except (TransactionCommittedError, TransactionAbortedError):
            return self._status(named)
        except TransactionUnknownError:
            status = self._status(named)
            return call() if status is TransactionStatus.OPEN else status


def _stream(named: Named) -> StreamName:
    return StreamName(*named.stream.split("/"))


def _not_in_time(log: StreamName, turn: Turn, deadline: Deadline) -> DeadlineExceededError:
    return DeadlineExceededError(
        f"a run of log {log} was not complete within {deadline.seconds:g} s; its pending step: {turn.phase.value}. "
        "The next run continues from there"
    )
