"""Controller client: scopes, streams, segments, store addresses, transactions, times, reader groups, tables."""

from __future__ import annotations

import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from google.protobuf.message import Message

from pravega_connector import metrics
from pravega_connector.config import DEFAULT_FAILOVER_TIMEOUT, DEFAULT_TIMEOUT, PravegaConfig
from pravega_connector.controller import methods as calls
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import PASSING_SECONDS, ControllerChannel, Rpc, Target, not_found
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.core.values import (
    CreatedTransaction,
    RetentionPolicy,
    ScalingPolicy,
    StreamConfig,
    SubscriberId,
    Successor,
    TableConfig,
    TransactionStatus,
    status_error,
)
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    DeadlineExceededError,
    MalformedStreamCutError,
    OutcomeUnknownError,
    ProtocolError,
    ScopeNotFoundError,
    StreamNotFoundError,
    StreamSealedError,
    TableNotFoundError,
)
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, TableName, segment_epoch

if TYPE_CHECKING:
    from pravega_connector.reader_groups.protocol import GroupConfig

_logger: Final = logging.getLogger(__name__)
# Bytes of a text in a request to a segment store, after its length of two bytes.
_LARGEST_TOKEN: Final = 0xFFFF
#: Calls that succeed for every stream except one that is being created.
_OF_EVERY_STREAM: Final = frozenset({calls.CURRENT_SEGMENTS.name, calls.SEGMENTS_AT.name, calls.STREAM_CONFIG.name})
#: Seconds to wait for another client's creation of a stream.
_CREATION_SECONDS: Final = 15.0
_PROBE: Final = replace(calls.CURRENT_SEGMENTS, repeatable=False)
ONE_SEGMENT: Final = ScalingPolicy.fixed(1)
# Seconds of COMMITTING after which a commit is requested again, and the timeout of that. Usually it takes 40 ms.
_ASK_AGAIN: Final = 5.0
_ASK_SECONDS: Final = 5.0
#: As _ASK_AGAIN if leftovers are likely: each request removes one of them.
SOON: Final = 1.0
# Seconds after which any client may have requested a commit twice. Usually it takes 10 ms.
_SLOW_COMMIT: Final = 1.0
# Seconds before the first poll of a commit, which is usually visible after about 40 ms.
_COMMIT_PAUSE: Final = 0.01

# Number of further polls after a commit without an answer, if the status is UNKNOWN, and seconds before each. During a
# failover, the controller may read the records from a segment store that has lost them.
_UNKNOWN_POLLS: Final = 3
_UNKNOWN_PAUSE: Final = 1.0

# Addresses that a server publishes if it listens on all interfaces, or if its name was not configured.
_NOWHERE: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"})  # noqa: S104 - compared, not bound
_LONGEST_HOST: Final = 253  # RFC 1035
_QUOTED_HOST: Final = 80

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class ControllerClient:
    """Calls to a Pravega controller. Thread safe; can be pickled.

    A forked child opens its own connection, unless its parent has called a controller: gRPC does not support that, and
    the call raises a ControllerError.

    The client connects on the first call. Until a server has answered, every call ends within ``timeout`` seconds, and
    after that within ``failover_timeout`` seconds, attempts included. A call with a ``deadline`` ends at the deadline.
    Changes are durable on return. A call raises:

    - ControllerUnavailableError: no answer.
    - AuthenticationError.
    - ScopeNotFoundError or StreamNotFoundError. A call that only reads never creates a scope or stream.
    - ControllerFailureError: an internal failure of the controller that lasted.
    - ControllerError: any other refusal.

    A creation or deletion with a lost answer is repeated, and then finds its own result. It returns False, as if
    another client had been first.
    """

    def __init__(
        self,
        config: PravegaConfig,
        *,
        timeout: float = DEFAULT_TIMEOUT,
        failover_timeout: float = DEFAULT_FAILOVER_TIMEOUT,
        health: ClusterHealth | None = None,
    ) -> None:
        """Create a client for the controllers in ``config``.

        ``health`` belongs to the client that contains this one, and has its own timeouts.
        """
        self._config = config
        self.health = health or ClusterHealth(timeout, failover_timeout)
        self._channel = ControllerChannel(config, self.health)
        self._orderly: set[StreamName] = set()

    def __repr__(self) -> str:
        return f"ControllerClient({self._config.controller!r}, timeout={self.health.timeout})"

    def __reduce__(self) -> tuple[Callable[..., ControllerClient], tuple[PravegaConfig, float, float, bool]]:
        health = self.health
        return _unpickled, (self._config, health.timeout, health.failover_timeout, health.service)

    def __enter__(self) -> ControllerClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Running calls in other threads raise ConfigError, a commit OutcomeUnknownError."""
        self._channel.close()

    # ---- scopes ----

    def create_scope(self, scope: str) -> bool:
        """Create a scope. Return False if it existed."""
        return self._change(calls.CREATE_SCOPE, calls.scope_message(scope), "create scope", scope)

    def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope. Return False if it did not exist."""
        try:
            return self._change(calls.DELETE_SCOPE, calls.scope_message(scope), "delete scope", scope)
        except ScopeNotFoundError:
            return False

    def scope_exists(self, scope: str) -> bool:
        """Return True if the scope exists."""
        return self._call(calls.SCOPE_EXISTS, calls.scope_message(scope), scope).exists

    def list_scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, with Pravega's own, which begin with ``_``."""
        deadline = self.health.deadline()
        found: set[str] = set()
        token = pb.ContinuationToken()
        while True:
            page = self._call(calls.LIST_SCOPES, pb.ScopesRequest(continuationToken=token), None, deadline)
            if found.issuperset(page.scopes):  # an empty page ends the list; one of old names would never end it
                return sorted(found)
            found.update(page.scopes)
            token = page.continuationToken

    # ---- streams ----

    def create_stream(
        self, stream: StreamName, scaling: ScalingPolicy = ONE_SEGMENT, retention: RetentionPolicy | None = None
    ) -> bool:
        """Create a stream in an existing scope.

        Return False if the stream existed, with any configuration.
        """
        return self.create_stream_with(stream, StreamConfig(scaling=scaling, retention=retention))

    def create_stream_with(self, stream: StreamName, config: StreamConfig) -> bool:
        """Create a stream with tags and the less common settings.

        Return False if the stream existed, with any configuration.
        """
        return self._change(calls.CREATE_STREAM, calls.encode_config(stream, config), "create stream", stream)

    def stream_exists(self, stream: StreamName) -> bool:
        """Return True if the stream exists."""
        return self._call(calls.STREAM_EXISTS, calls.stream_message(stream), stream).exists

    def list_streams(self, scope: str, *, internal: bool = False, tag: str | None = None) -> list[StreamName]:
        """Return the streams of a scope, sorted: all, or those with a ``tag``.

        With ``internal``, they include streams that Pravega created, such as ``_MARK…``.
        """
        return sorted(self._pages(scope, calls.scope_message(scope), internal, self.health.deadline(), tag))

    def iterate_streams(self, scope: str, *, internal: bool = False, tag: str | None = None) -> Iterator[StreamName]:
        """Yield the streams of a scope, page by page, each once; see :meth:`list_streams`."""
        return self._pages(scope, calls.scope_message(scope), internal, tag=tag)

    def _pages(
        self,
        scope: str,
        message: pb.ScopeInfo,
        internal: bool,
        deadline: Deadline | None = None,
        tag: str | None = None,
    ) -> Iterator[StreamName]:
        found: set[str] = set()
        token = pb.ContinuationToken()
        while True:
            if tag is None:
                request = pb.StreamsInScopeRequest(scope=message, continuationToken=token)
                page = self._call(calls.LIST_STREAMS, request, scope, deadline)
            else:
                tagged = pb.StreamsInScopeWithTagRequest(scope=message, tag=tag, continuationToken=token)
                page = self._call(calls.LIST_STREAMS_WITH_TAG, tagged, scope, deadline)
            calls.outcome(pb.StreamsInScopeResponse.Status, page.status, "list the streams of scope", scope)
            names = {info.stream for info in page.streams} - found
            if not names:  # an empty page ends the list; one of old names would never end it
                return
            found |= names
            yield from calls.named(scope, names, internal=internal)
            token = page.continuationToken

    def stream_config(self, stream: StreamName) -> StreamConfig:
        """Return a stream's configuration."""
        return calls.decode_config(self._call(calls.STREAM_CONFIG, calls.stream_message(stream), stream))

    def update_stream(self, stream: StreamName, config: StreamConfig) -> None:
        """Replace a stream's whole configuration. A new fixed number of segments scales the stream at once."""
        self._change(calls.UPDATE_STREAM, calls.encode_config(stream, config), "update stream", stream)

    def truncate_stream(self, cut: StreamCut) -> None:
        """Delete all events before a cut.

        Raises ControllerError for a cut before the head, or one that does not cover all keys. The controller does not
        know the lengths of segments: a cut after the tail also deletes events that are written up to it later.
        """
        self._change(
            calls.TRUNCATE_STREAM, calls.cut_message(cut), "truncate stream", cut.stream, lambda: self._check(cut)
        )

    def _check(self, cut: StreamCut) -> None:
        """Raise ControllerError for a cut at which the stream cannot be truncated."""
        try:
            head = self.head_cut(cut.stream)
            possible = self.is_cut_valid(cut) and bool(self.segments_between(head, cut))
        except MalformedStreamCutError:
            possible = False
        if not possible:
            raise ControllerError(
                f"cannot truncate stream {cut.stream}: the cut is before the stream's head, or does not cover all "
                "routing keys"
            )

    def seal_stream(self, stream: StreamName) -> None:
        """Stop all writes to a stream. Sealing it again changes nothing."""
        self._change(calls.SEAL_STREAM, calls.stream_message(stream), "seal stream", stream)

    def delete_stream(self, stream: StreamName) -> bool:
        """Delete a sealed stream. Return False if it did not exist.

        Raises ControllerError if it is not sealed.
        """
        try:
            return self._change(calls.DELETE_STREAM, calls.stream_message(stream), "delete stream", stream)
        except StreamNotFoundError:
            return False

    # ---- segments and their order ----

    def current_segments(self, stream: StreamName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments that accept events now, by id; empty for a sealed stream."""
        request = calls.stream_without_token(stream)
        return calls.decode_ranges(self._call(calls.CURRENT_SEGMENTS, request, stream, deadline).segmentRanges)

    def epoch_segments(self, stream: StreamName, epoch: int, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments that accepted events in an epoch, by id.

        Raises ControllerError for an epoch that never existed.
        """
        request = pb.GetEpochSegmentsRequest(streamInfo=calls.stream_message(stream), epoch=epoch)
        return calls.decode_ranges(self._call(calls.EPOCH_SEGMENTS, request, stream, deadline).segmentRanges)

    def ever_had(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> bool:
        """Return True if the stream has or had a segment. Segments of a deleted stream of this name do not count."""
        try:
            created_with = self.epoch_segments(stream, segment_epoch(segment_id), deadline=deadline)
        except ControllerError as error:
            if type(error) is not ControllerError:  # the code of a missing epoch; others have their own class
                raise
            return False
        return any(each.id == segment_id for each in created_with)

    def head_cut(self, stream: StreamName, *, deadline: Deadline | None = None) -> StreamCut:
        """Return the stream cut of the oldest events that the stream still has."""
        request = pb.GetSegmentsRequest(streamInfo=calls.stream_without_token(stream), timestamp=0)
        locations = self._call(calls.SEGMENTS_AT, request, stream, deadline).segments
        return StreamCut(stream, {location.segmentId.segmentId: location.offset for location in locations})

    def successors(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> list[Successor]:
        """Return the successors of a sealed segment, by id.

        Empty for a segment that is open, or that is the last one of a sealed stream.
        """
        entries = self._call(calls.SUCCESSORS, calls.segment_message(stream, segment_id), stream, deadline).segments
        ranges = calls.decode_ranges(entry.segment for entry in entries)
        predecessors = {entry.segment.segmentId.segmentId: tuple(sorted(entry.value)) for entry in entries}
        return [Successor(value, predecessors[value.id]) for value in ranges]

    def segments_between(self, start: StreamCut, end: StreamCut, *, deadline: Deadline | None = None) -> list[int]:
        """Return the ids of the segments from ``start`` to ``end`` inclusive, in a valid order to read them.

        Truncated segments are listed as well. Raises MalformedStreamCutError if ``end`` is before ``start``.
        """
        calls.check_order(start, end)
        request = pb.StreamCutRange(streamInfo=calls.stream_message(start.stream), to=end.positions)
        getattr(request, "from").update(start.positions)  # a keyword of Python
        response = self._call(calls.SEGMENTS_BETWEEN, request, start.stream, deadline)
        return sorted(segment.segmentId for segment in response.segments)

    def is_cut_valid(self, cut: StreamCut) -> bool:
        """Return True if the cut's segments belong to the stream and cover every routing key exactly once."""
        try:
            return self._call(calls.CUT_VALID, calls.cut_message(cut), cut.stream).response
        except MalformedStreamCutError:
            return False

    def scale_stream(
        self,
        stream: StreamName,
        seal: Sequence[int],
        ranges: Sequence[tuple[float, float]],
        *,
        timeout: float | None = None,
    ) -> list[SegmentRange]:
        """Replace the segments ``seal`` by new segments with the key ranges ``ranges``.

        Returns the current segments afterwards. Raises ConfigError if a segment is not current, or if the ranges do not
        cover exactly the keys of the sealed segments. Raises StreamSealedError, and DeadlineExceededError if the
        scaling is not done in time; the server continues it.
        """
        before = self.current_segments(stream, deadline=None if timeout is None else Deadline(timeout))
        calls.check_scaling(stream, before, seal, ranges)
        deadline = self.health.deadline(timeout)
        request = calls.scale_message(stream, seal, ranges)
        with self.health.attempts(_logger, f"scale stream {stream}", deadline) as attempts:
            while True:
                try:
                    response = self._call(calls.SCALE, request, stream, deadline)
                    calls.outcome(pb.ScaleResponse.ScaleStreamStatus, response.status, "scale stream", stream)
                    break
                except (ControllerUnavailableError, ControllerFailureError) as error:
                    trouble = error
                # The scaling may have started or even ended. While it runs, the same request joins it.
                with contextlib.suppress(
                    ControllerUnavailableError
                ):  # after the deadline, the first error has the reason
                    if calls.is_scaled(current := self.current_segments(stream, deadline=deadline), seal, ranges):
                        return current
                attempts.again(trouble)
        self._await_scaling(stream, response.epoch, deadline)
        return self.current_segments(stream, deadline=deadline)

    # ---- addresses of the segment stores ----

    def endpoint(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> tuple[str, int]:
        """Return host and port of the segment store that owns a segment. The segment need not exist.

        If a server does not know its own name, the controller's host is returned. Raises ProtocolError for a text that
        is not a host.
        """
        uri = self._call(calls.URI, calls.segment_message(stream, segment_id), stream, deadline)
        host = self._channel.host if uri.endpoint in _NOWHERE else uri.endpoint
        if len(host) > _LONGEST_HOST or not host.isprintable():
            raise ProtocolError(
                f"the controller returned {host[:_QUOTED_HOST]!r} ({len(host)} characters) as a segment store, which "
                "is not a valid host"
            )
        return host, uri.port

    def delegation_token(self, stream: StreamName, *, write: bool, deadline: Deadline | None = None) -> str:
        """Return a token that segment stores accept as a permission.

        Empty if the servers require none. The token is secret. Raises AuthenticationError for one that no request to a
        segment store can contain.
        """
        request = calls.stream_message(stream, pb.StreamInfo.READ_WRITE if write else pb.StreamInfo.READ)
        token: str = self._call(calls.DELEGATION_TOKEN, request, stream, deadline).delegationToken
        if len(token.encode()) > _LARGEST_TOKEN:
            raise AuthenticationError(
                f"the controller returned a token of {len(token)} characters for stream {stream}; segment stores "
                f"accept {_LARGEST_TOKEN} bytes: check the authorization of the controller"
            )
        return token

    # ---- transactions ----

    def create_transaction(self, stream: StreamName, lease_ms: int) -> CreatedTransaction:
        """Begin a transaction that stays open for ``lease_ms`` milliseconds. Pings prolong it.

        Raises LeaseRangeError, StreamNotFoundError, StreamSealedError.
        """
        request = pb.CreateTxnRequest(streamInfo=calls.stream_message(stream), lease=calls.check_lease(lease_ms))
        deadline = self.health.deadline()
        with self.health.attempts(_logger, f"begin a transaction on stream {stream}", deadline) as attempts:
            while True:
                try:
                    response = self._call(calls.CREATE_TRANSACTION, request, stream, deadline)
                    break
                except ControllerFailureError as error:
                    # For a sealed stream it answers INTERNAL, as for any internal failure.
                    if not self.current_segments(stream, deadline=deadline):
                        raise StreamSealedError.of(stream) from None
                    attempts.again(error)
        metrics.TRANSACTIONS.add(1, "begun", str(stream))
        return CreatedTransaction(
            calls.decode_transaction(response.txnId), calls.decode_ranges(response.activeSegments)
        )

    def transaction_status(
        self, stream: StreamName, transaction: uuid.UUID, *, deadline: Deadline | None = None
    ) -> TransactionStatus:
        """Return the status of a transaction. It is UNKNOWN also for a stream that does not exist."""
        request = calls.transaction_message(stream, transaction)
        return calls.decode_status(self._call(calls.TRANSACTION_STATE, request, stream, deadline))

    def ping_transaction(
        self, stream: StreamName, transaction: uuid.UUID, lease_ms: int, *, timeout: float | None = None
    ) -> None:
        """Keep an open transaction open for ``lease_ms`` milliseconds from now. A ping can prolong the lease.

        Raises TransactionCommittedError, TransactionAbortedError, TransactionUnknownError, and LeaseRangeError. After a
        LeaseRangeError, the earlier lease stays in effect.
        """
        request = calls.ping_message(stream, transaction, lease_ms)
        deadline = self.health.deadline(timeout)
        with self.health.attempts(_logger, f"ping transaction {transaction} of stream {stream}", deadline) as attempts:
            while (
                status := self._call(calls.PING_TRANSACTION, request, stream, deadline).status
            ) != pb.PingTxnStatus.OK:
                if status != pb.PingTxnStatus.DISCONNECTED:
                    raise calls.ping_error(status, stream, transaction, lease_ms)
                # The controller starts or stops. Another one may take the transaction over soon.
                attempts.again(
                    ControllerUnavailableError(
                        f"no controller kept transaction {transaction} of stream {stream} alive within "
                        f"{deadline.seconds:g} s"
                    )
                )

    def commit_transaction(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        noted: tuple[str, int] | None = None,
        *,
        wait: bool = False,
        timeout: float | None = None,
    ) -> TransactionStatus:
        """Commit a transaction from any process. Committing it again changes nothing.

        ``noted`` is the id of a writer and the event time, in milliseconds, that it has reached with this transaction.
        The commit includes all events that its writers have flushed. On return it is decided: COMMITTING, or COMMITTED
        once readers see the events. With ``wait``, the call waits for COMMITTED within its time. Transactions that are
        COMMITTING at the same time become visible in any order, see :meth:`Transaction.commit`. Raises
        TransactionAbortedError, TransactionUnknownError, and OutcomeUnknownError if the outcome is unknown after
        ``timeout`` seconds.
        """
        deadline, began = self.health.deadline(timeout), time.monotonic()
        status = self._commit(stream, transaction, noted, deadline)
        if wait:
            status = self._seen(status, CommitWatch(self, stream), transaction, deadline)
        metrics.TRANSACTIONS.add(1, "committed", str(stream))
        metrics.OPERATION_SECONDS.record(time.monotonic() - began, "commit", str(stream))
        return status

    def _commit(
        self, stream: StreamName, transaction: uuid.UUID, noted: tuple[str, int] | None, deadline: Deadline
    ) -> TransactionStatus:
        """Request a commit until it is decided, without counting it. Return COMMITTING or COMMITTED."""
        request, began = calls.transaction_message(stream, transaction, noted), time.monotonic()
        status = self._decide(TransactionStatus.COMMITTING, request, stream, transaction, deadline)
        if time.monotonic() - began > _SLOW_COMMIT:
            self._orderly.discard(stream)
        if not status.is_committed:
            raise status_error(status, "commit", stream, transaction)
        return status

    def repeat_commit(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Request a decided commit again, without counting another one.

        Otherwise as :meth:`commit_transaction`.
        """
        return self._commit(stream, transaction, None, self.health.deadline(timeout))

    @staticmethod
    def _seen(
        status: TransactionStatus, watch: CommitWatch, transaction: uuid.UUID, deadline: Deadline
    ) -> TransactionStatus:
        """Return the status of a decided transaction: COMMITTED if it is visible by the deadline."""
        polls = Polls(deadline, first=_COMMIT_PAUSE)
        while status is not TransactionStatus.COMMITTED and polls.again():
            try:
                status = watch.status(transaction, deadline)
            except AuthenticationError:
                raise
            except ControllerError:
                continue
        return status

    def commits_in_order(self, stream: StreamName) -> bool:
        """Return True if several transactions may be committed concurrently, as far as this client knows.

        A controller may have leftovers in its order of commits (see :class:`CommitWatch`). Then committing one
        transaction at a time is harmless and removes them. Of several concurrent commits it would drop some, which stay
        COMMITTING permanently. So the result is False at first, and after a slow commit, until :meth:`note_order` is
        called.
        """
        return stream in self._orderly

    def note_order(self, stream: StreamName) -> None:
        """Record that a transaction of the stream became visible while no other one was committed."""
        self._orderly.add(stream)

    def abort_transaction(
        self, stream: StreamName, transaction: uuid.UUID, *, timeout: float | None = None
    ) -> TransactionStatus:
        """Abort a transaction from any process. Aborting it again changes nothing.

        On return it is decided: ABORTING or ABORTED. Raises TransactionCommittedError, TransactionUnknownError, and
        OutcomeUnknownError if the outcome is unknown after ``timeout`` seconds.
        """
        request, deadline = calls.transaction_message(stream, transaction), self.health.deadline(timeout)
        status = self._decide(TransactionStatus.ABORTING, request, stream, transaction, deadline)
        if not status.is_aborted:
            raise status_error(status, "abort", stream, transaction)
        metrics.TRANSACTIONS.add(1, "aborted", str(stream))
        return status

    def _decide(
        self,
        wish: TransactionStatus,
        request: pb.TxnRequest,
        stream: StreamName,
        transaction: uuid.UUID,
        deadline: Deadline,
    ) -> TransactionStatus:
        """Request COMMITTING or ABORTING until the transaction has left OPEN, and return its status.

        The controller answers a refusal, an unknown id and an internal failure with the same FAILURE, and an answer can
        be lost. Neither counts as a decision: the status is polled until it is known, or the deadline has passed. The
        request is repeated only while the status is OPEN. The reason is a commit that is sent while an earlier one is
        still running, for minutes during a segment store failover. Then the controller keeps two entries in its order
        of commits, and the second makes it drop a later commit.
        """
        commits = wish is TransactionStatus.COMMITTING
        rpc, action = (calls.COMMIT_TRANSACTION, "commit") if commits else (calls.ABORT_TRANSACTION, "abort")
        what = f"transaction {transaction} of stream {stream}"

        def unknown(trouble: ConnectorError) -> OutcomeUnknownError:
            after = "" if isinstance(trouble, ConfigError) else f" after {deadline.seconds:g} s"
            return OutcomeUnknownError(
                f"whether {what} is {'committed' if commits else 'aborted'} is unknown{after} ({trouble.message}); "
                f"query its status, or {action} it again"
            )

        self._channel.check_open()
        with self.health.attempts(_logger, f"{action} {what}", deadline) as attempts:
            while True:
                polls_left = 0  # number of UNKNOWN answers that are not trusted
                try:
                    # Half of the time left: an unresponsive controller must leave time to poll the status.
                    answer = self._call(rpc, request, stream, Deadline(deadline.left / 2))
                    if answer.status == pb.TxnStatus.SUCCESS:
                        return wish
                    trouble = ControllerFailureError("the controller answered with a failure")
                except AuthenticationError:
                    raise
                except ControllerError as error:
                    trouble = ControllerFailureError(error.message)
                    polls_left = _UNKNOWN_POLLS if commits else 0
                except ConfigError as closed:
                    raise unknown(closed) from None
                status = None
                while status is not TransactionStatus.OPEN:
                    try:
                        status = self.transaction_status(stream, transaction, deadline=deadline)
                    except AuthenticationError:
                        raise
                    except ControllerError as error:
                        trouble = ControllerFailureError(error.message)
                        attempts.again(trouble, unknown(trouble))
                        continue
                    except ConfigError as closed:
                        raise unknown(closed) from None
                    if status is TransactionStatus.UNKNOWN and polls_left:
                        polls_left -= 1
                        deadline.pause(_UNKNOWN_PAUSE)
                    elif status is not TransactionStatus.OPEN:
                        return status
                attempts.again(trouble, unknown(trouble))

    # ---- event time ----

    def note_time(self, writer_id: str, position: StreamCut, millis: int) -> bool:
        """Note that a writer's events before a position have times up to ``millis``, and later events from ``millis``.

        Returns False, without a change, if the writer has noted a later time or position before.
        """
        stream, statuses = position.stream, pb.TimestampResponse
        request = calls.time_message(writer_id, position, millis)
        status = self._settled(calls.NOTE_TIMESTAMP, request, f"note a time of writer {writer_id} of", stream).result
        if status in (statuses.SUCCESS, statuses.INVALID_TIME, statuses.INVALID_POSITION):
            return status == statuses.SUCCESS
        raise ControllerError(f"time {millis} of writer {writer_id} of stream {stream} was not noted")

    def remove_writer(self, stream: StreamName, writer_id: str, *, timeout: float | None = None) -> bool:
        """Stop waiting for a writer in the watermarks of a stream.

        Return False if the writer has noted no time.
        """
        request = pb.RemoveWriterRequest(writer=writer_id, stream=calls.stream_message(stream))
        status = self._call(calls.REMOVE_WRITER, request, stream, self.health.deadline(timeout)).result
        if status in (pb.RemoveWriterResponse.SUCCESS, pb.RemoveWriterResponse.UNKNOWN_WRITER):
            return status == pb.RemoveWriterResponse.SUCCESS
        raise ControllerError(f"writer {writer_id} of stream {stream} could not be removed")

    # ---- subscribers ----

    def subscribers(self, stream: StreamName) -> list[str]:
        """Return the reader groups that limit the stream's retention, as ``scope/group``, sorted."""
        request = calls.stream_message(stream)
        return sorted(self._done(calls.SUBSCRIBERS, request, "list the subscribers of", stream).subscribers)

    def create_subscriber(self, stream: StreamName, group: str) -> SubscriberId:
        """Create a reader group that subscribes to one stream, or return the existing one.

        Raises ConfigError for a group of that name with another purpose, and InvalidNameError.
        """
        what = f"create the subscriber {group} of"
        request = calls.group_message(stream.scope, group, calls.subscriber_config(stream))
        response = self._done(calls.CREATE_READER_GROUP, request, what, stream)
        return calls.decode_subscriber(response.config, stream, group)

    def renew_subscriber(self, stream: StreamName, subscriber: SubscriberId) -> SubscriberId:
        """Subscribe again to a recreated stream. The server forgets subscribers when a stream is deleted.

        Deleting the group instead would make the server retry forever: it looks for the deleted subscriber.
        """
        request = calls.group_message(stream.scope, subscriber.group, calls.subscriber_config(stream, subscriber))
        what = f"renew the subscriber {subscriber.group} of"
        generation = self._done(calls.UPDATE_READER_GROUP, request, what, stream).generation
        return SubscriberId(subscriber.group, subscriber.id, generation)

    def update_subscriber(self, subscriber: SubscriberId, cut: StreamCut, *, scope: str | None = None) -> bool:
        """Publish a position. Return False if the stream has no such subscriber.

        In that case, the stream or the subscriber was recreated. The group is in the stream's scope, or in ``scope``.
        Raises ControllerError for a position before one that was already published.
        """
        request = calls.position_message(scope or cut.stream.scope, subscriber, cut)
        what = f"publish a position of {subscriber.group} in"
        status = self._settled(calls.UPDATE_SUBSCRIBER, request, what, cut.stream).status
        if status in (pb.UpdateSubscriberStatus.SUBSCRIBER_NOT_FOUND, pb.UpdateSubscriberStatus.GENERATION_MISMATCH):
            return False
        return calls.outcome(pb.UpdateSubscriberStatus.Status, status, what, cut.stream)

    def delete_subscriber(self, stream: StreamName, subscriber: SubscriberId) -> bool:
        """Delete a subscriber's reader group. Return False if it does not exist."""
        what = f"delete the subscriber {subscriber.group} of"
        request = calls.group_info(stream.scope, subscriber.group, calls.subscriber_config(stream, subscriber))
        return self._delete_group(request, what, stream)

    # ---- reader groups ----

    def create_group(self, scope: str, group: str, config: GroupConfig) -> GroupConfig:
        """Create a reader group without a state. Return its configuration, or that of an existing group.

        The creator sets a random id and the generation 0. Raises InvalidNameError.
        """
        request = calls.group_message(scope, group, config)
        response = self._done(calls.CREATE_READER_GROUP, request, f"create the reader group {group} in scope", scope)
        return calls.decode_group(response.config)

    def group_config(self, scope: str, group: str) -> GroupConfig | None:
        """Return the configuration of a reader group; None if the group does not exist."""
        request, what = calls.group_info(scope, group), f"look up the reader group {group} in scope"
        response = self._settled(calls.GROUP_CONFIG, request, what, scope)
        if response.status == pb.ReaderGroupConfigResponse.RG_NOT_FOUND:
            return None
        calls.outcome(pb.ReaderGroupConfigResponse.Status, response.status, what, scope)
        return calls.decode_group(response.config)

    def update_group(self, scope: str, group: str, config: GroupConfig) -> GroupConfig | None:
        """Change the configuration of the group with this id and generation, and return it with the next generation.

        Returns None if the group has another id or generation by now: another process was faster, or an answer was
        lost. Raises ControllerError if the group does not exist.
        """
        request, what = calls.group_message(scope, group, config), f"change the reader group {group} in scope"
        response = self._settled(calls.UPDATE_READER_GROUP, request, what, scope)
        if response.status == pb.UpdateReaderGroupResponse.INVALID_CONFIG:
            return None
        calls.outcome(pb.UpdateReaderGroupResponse.Status, response.status, what, scope)
        return replace(config, generation=response.generation)

    def delete_group(self, scope: str, group: str, config: GroupConfig) -> bool:
        """Delete the reader group with this id, including its state. Return False if it does not exist."""
        request = calls.group_info(scope, group, config)
        return self._delete_group(request, f"delete the reader group {group} in scope", scope)

    def _delete_group(self, request: pb.ReaderGroupInfo, what: str, target: StreamName | str) -> bool:
        status = self._settled(calls.DELETE_READER_GROUP, request, what, target).status
        if status == pb.DeleteReaderGroupStatus.RG_NOT_FOUND:
            return False
        return calls.outcome(pb.DeleteReaderGroupStatus.Status, status, what, target)

    # ---- key-value tables ----

    def create_table(self, table: TableName, config: TableConfig) -> bool:
        """Create a key-value table in an existing scope.

        Return False if the table existed, with any configuration.
        """
        return self._change(calls.CREATE_TABLE, calls.encode_table(table, config), "create table", table)

    def delete_table(self, table: TableName) -> bool:
        """Delete a key-value table with all its entries. Return False if it did not exist."""
        try:
            return self._change(calls.DELETE_TABLE, calls.table_message(table), "delete table", table)
        except TableNotFoundError:
            return False

    def table_config(self, table: TableName) -> TableConfig:
        """Return a key-value table's configuration. Raises TableNotFoundError."""
        request = calls.table_message(table)
        return calls.decode_table(self._done(calls.TABLE_CONFIG, request, "look up table", table).config)

    def table_segments(self, table: TableName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments of a key-value table, by id. They never change. Raises TableNotFoundError."""
        response = self._call(calls.TABLE_SEGMENTS, calls.table_message(table), table, deadline)
        return calls.decode_ranges(response.segmentRanges)

    def iterate_tables(self, scope: str) -> Iterator[TableName]:
        """Yield the key-value tables of a scope, page by page, each once. Raises ScopeNotFoundError."""
        message, found, token = calls.scope_message(scope), set[str](), pb.ContinuationToken()
        while True:
            request = pb.KVTablesInScopeRequest(scope=message, continuationToken=token)
            page = self._done(calls.LIST_TABLES, request, "list the tables of scope", scope)
            names = {info.kvtName for info in page.kvtables} - found
            if not names:  # an empty page ends the list; one of old names would never end it
                return
            found |= names
            yield from (TableName(scope, name) for name in sorted(names) if not name.startswith("_"))
            token = page.continuationToken

    # ---- private ----

    def _call(self, rpc: Rpc[Q, R], request: Q, target: Target, deadline: Deadline | None = None) -> R:
        deadline = deadline or self.health.deadline()
        polls = Polls(Deadline(min(_CREATION_SECONDS, deadline.left)))
        while True:
            try:
                return self._channel.call(rpc, request, target, deadline, lambda: self._is_well(target, deadline))
            except StreamNotFoundError:
                assert isinstance(target, StreamName)
                error = self._missing(rpc.name, target, deadline)
            # A stream exists when its creation begins, and has its segments and configuration when it ends.
            there = not isinstance(error, StreamNotFoundError | ScopeNotFoundError)
            if not there or rpc.name not in _OF_EVERY_STREAM or not polls.again():
                raise error

    def _is_well(self, target: Target, deadline: Deadline) -> bool:
        """Return True if the controller can read its metadata of a stream now."""
        if not isinstance(target, StreamName):
            return True
        request = calls.stream_without_token(target)
        try:
            self._channel.call(_PROBE, request, target, deadline.share())
        except ControllerError as error:
            return not error.retriable
        return True

    def _settled(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        action: str,
        target: StreamName | TableName | str,
        refusal: Callable[[], None] | None = None,
    ) -> R:
        """Repeat a call until the controller answers without an internal failure, and return that answer.

        The status FAILURE covers all internal failures of the controller. ``refusal`` raises if it is a refusal. Raises
        ControllerFailureError if it lasts longer than a failover.
        """
        deadline = self.health.deadline()
        if not calls.failed(response := self._call(rpc, request, target, deadline)):
            return response
        # It begins with the first such answer; earlier, no server may have answered.
        passing = Deadline(min(PASSING_SECONDS, deadline.left))
        with self.health.attempts(_logger, f"{action} {target}", passing) as attempts:
            while calls.failed(response):
                if refusal is not None:
                    refusal()
                attempts.again(ControllerFailureError(f"cannot {action} {target}: the controller failed"))
                response = self._call(rpc, request, target, deadline)
            return response

    def _done(self, rpc: Rpc[Q, R], request: Q, action: str, target: StreamName | TableName | str) -> R:
        """Repeat a call until the controller has executed or refused it, and return the answer.

        Raises the error for a refusal.
        """
        response: Any = self._settled(rpc, request, action, target)
        calls.outcome(response.Status, response.status, action, target)
        return response  # type: ignore[no-any-return]

    def _change(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        action: str,
        target: StreamName | TableName | str,
        refusal: Callable[[], None] | None = None,
    ) -> bool:
        """Request a change until the controller has made or refused it. Return True if it changed something."""
        response: Any = self._settled(rpc, request, action, target, refusal)
        try:
            return calls.outcome(response.Status, response.status, action, target)
        except StreamNotFoundError:
            if rpc is calls.DELETE_STREAM or not isinstance(target, StreamName):
                raise
            raise self._missing(rpc.name, target, self.health.deadline()) from None

    def _missing(self, action: str, stream: StreamName, deadline: Deadline) -> ControllerError:
        """Return the error for NOT_FOUND about a stream.

        Its scope may be missing, or only a part of the stream.
        """
        try:
            if self._channel.call(calls.STREAM_EXISTS, calls.stream_message(stream), stream, deadline).exists:
                if action in _OF_EVERY_STREAM:
                    return ControllerError(
                        f"stream {stream} is being created, or its creation was interrupted ({action}): try again, or "
                        "create it again"
                    )
                return ControllerError(f"{stream} has no such segment or epoch ({action})")
            scope = stream.scope
            found = self._channel.call(calls.SCOPE_EXISTS, calls.scope_message(scope), scope, deadline)
            return not_found(stream if found.exists else scope)
        except ControllerError:  # report only the first error: the controller has just become unreachable
            return not_found(stream)

    def _await_scaling(self, stream: StreamName, epoch: int, deadline: Deadline) -> None:
        statuses = pb.ScaleStatusResponse
        request = pb.ScaleStatusRequest(streamInfo=calls.stream_message(stream), epoch=epoch)
        polls = Polls(deadline)
        while (status := self._call(calls.CHECK_SCALE, request, stream, deadline).status) == statuses.IN_PROGRESS:
            if not polls.again():
                raise DeadlineExceededError(
                    f"stream {stream} was not scaled within {deadline.seconds:g} s; the controller continues: check "
                    "current_segments later, or set a longer timeout"
                )
        calls.outcome(statuses.ScaleStatus, status, "scale stream", stream)


def _unpickled(config: PravegaConfig, timeout: float, failover_timeout: float, service: bool) -> ControllerClient:
    return ControllerClient(config, health=ClusterHealth(timeout, failover_timeout, service=service))


class CommitWatch:
    """Poller of a stream's transactions until their commits are visible. Thread safe.

    A commit that was requested twice, in a failover, can leave an entry in the controller's order of commits that
    outlives the transaction. The next commit request then removes that entry and commits nothing
    (``PersistentStreamBase.processTransactionsInEpoch``). Its transaction stays COMMITTING until the commit is
    requested again, which changes nothing else. So the watch requests it again if the transaction was COMMITTING for
    ``ask_again`` seconds.
    """

    def __init__(self, controller: ControllerClient, stream: StreamName, *, ask_again: float | None = None) -> None:
        self._controller, self._stream = controller, stream
        self._ask_again = _ASK_AGAIN if ask_again is None else ask_again
        self._asked: dict[uuid.UUID, float] = {}  # monotonic seconds

    def status(self, transaction: uuid.UUID, deadline: Deadline | None = None) -> TransactionStatus:
        """Return the status of a transaction as :meth:`ControllerClient.transaction_status` does."""
        status = self._controller.transaction_status(self._stream, transaction, deadline=deadline)
        if status is not TransactionStatus.COMMITTING:
            self._asked.pop(transaction, None)
            return status
        now = time.monotonic()
        if now - self._asked.setdefault(transaction, now) < self._ask_again:
            return status
        self._asked[transaction] = now
        note = f"transaction {transaction} of stream {self._stream} is not visible yet: its commit is requested again"
        self._controller.health.count("repeated_commits", _logger, note)
        # The decision is known; the next poll shows the rest.
        with contextlib.suppress(ControllerError, OutcomeUnknownError):
            left = _ASK_SECONDS if deadline is None else min(_ASK_SECONDS, deadline.left)
            self._controller.repeat_commit(self._stream, transaction, timeout=left)
        return status
