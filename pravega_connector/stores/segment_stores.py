"""Requests to segment stores: endpoints of segments, delegation tokens, and calls to the owning store.

Needs of a request to a segment, their origin, and when they are forgotten::

    endpoint(stream, segment)  --known--> _endpoints  --else--> controller: getURI             forget: moved, lost, late
    token(stream, write)       --known--> _tokens     --else--> controller: getDelegationToken forget: refused; renewal
    connection                 --idle---> pool        --else--> TCP, TLS, Hello                drop: store failed

    call -> WrongHost, connection lost, token refused: forget, ask again
         -> NoSuchSegment, sealed, truncated: confirm with the controller; a store that was frozen may be wrong
"""

from __future__ import annotations

import base64
import json
import logging
import math
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from pravega_connector import controller
from pravega_connector.config import PravegaConfig
from pravega_connector.core.connection import ConnectionPool, Endpoint, Tls
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import (
    ConnectionLostError,
    ControllerError,
    DeadlineExceededError,
    EventNumberError,
    NoSuchSegmentError,
    SegmentSealedError,
    SegmentStoreError,
    SegmentTruncatedError,
    StoreFailureError,
    StreamNotFoundError,
    TableNotFoundError,
    TokenExpiredError,
    UnexpectedReplyError,
    WrongHostError,
)
from pravega_connector.wire import (
    AuthTokenCheckFailed,
    ErrorMessage,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    InvalidEventNumber,
    Message,
    NoSuchSegment,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentIsSealed,
    SegmentIsTruncated,
    SegmentTruncated,
    StreamCut,
    StreamName,
    StreamSegmentInfo,
    TruncateSegment,
    UpdateSegmentAttribute,
    WrongHost,
    segment_name,
    table_of,
    transaction_segment_name,
)
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError
from pravega_serde.per_process import PerProcess

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

T = TypeVar("T")
R = TypeVar("R", bound=Message)
_logger: Final = logging.getLogger(__name__)
# A token is renewed this many seconds before it expires, or after half of a short lifetime: the server closes a
# connection when its token expires. A new token counts as valid for _TOKEN_SECONDS, because clocks of machines differ.
_TOKEN_MARGIN: Final = 60.0
_TOKEN_SECONDS: Final = 1.0
# Requests for segment information sent ahead of their answers on one connection.
_INFO_PIPELINE: Final = 256
# Error texts of servers hold whole Java stack traces. This many characters contain the reason.
_REASON_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """State of a segment: bytes [start_offset, write_offset) can be read; a sealed segment does not grow."""

    id: int
    exists: bool
    sealed: bool
    start_offset: int
    write_offset: int


def error_of(reply: Message, segment: str) -> SegmentStoreError:  # noqa: PLR0911 - a table
    """Return the error for a refusal, or an UnexpectedReplyError for any other reply."""
    match reply:
        case NoSuchSegment():
            return NoSuchSegmentError(f"segment {segment} does not exist (deleted, truncated, or never created)")
        case SegmentIsSealed():
            return SegmentSealedError(f"segment {segment} is sealed")
        case SegmentIsTruncated(start_offset=start, offset=offset):
            return SegmentTruncatedError(
                f"segment {segment} starts at offset {start}; offset {offset} was truncated", start_offset=start
            )
        case WrongHost():
            return WrongHostError(f"segment {segment} is on another segment store")
        case AuthTokenCheckFailed():
            return TokenExpiredError(f"the token for segment {segment} was refused")
        case InvalidEventNumber(event_number=number):
            return EventNumberError(
                f"segment {segment} refused event number {number}: a later event of its writer id was written"
            )
        case ErrorMessage(text=text):
            return SegmentStoreError(f"segment {segment}: {text[:_REASON_CHARACTERS]}")
        case _:
            return UnexpectedReplyError.of(f"the store of segment {segment}", reply)


def read_error_of(reply: Message, segment: str) -> SegmentStoreError:
    """Return the error for a refusal of a read. As in Java's AsyncSegmentInputStreamImpl, a failure may pass."""
    error = error_of(reply, segment)
    return StoreFailureError(error.message) if isinstance(reply, ErrorMessage) else error


def _token_end(token: str) -> float:
    """Return the Unix time in seconds at which a delegation token (a JWT) expires. It is read, not verified."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        end = float(claims["exp"])
        return math.inf if math.isnan(end) else end
    except (IndexError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return math.inf  # not a JWT of Pravega's: used until the server refuses it


def _renewal(token: str) -> float:
    """Return the Unix time in seconds at which a token that was just received must be renewed."""
    if not token:
        return float("inf")
    now, end = time.time(), _token_end(token)
    return max(end - min(_TOKEN_MARGIN, (end - now) / 2), now + _TOKEN_SECONDS)


@dataclass(frozen=True)
class SegmentPlace:
    """Endpoint of a segment and the token to read it, which one process can pass to another.

    The other process then does not ask the controller. If the segment has moved since, the store refuses the request,
    as in any other case.
    """

    endpoint: Endpoint
    token: str = field(repr=False)
    """Secret; empty if the servers require none."""
    renewal: float
    """Unix time in seconds after which another token is requested."""


class SegmentStores:
    """Thread safe access to all segment stores of a cluster.

    It can be pickled. All copies of one pickled object share their connections in a process.
    """

    def __init__(self, config: PravegaConfig, pool: ConnectionPool, health: ClusterHealth) -> None:
        self._config = config
        self._controller: ControllerClient | None = None
        self._closed = False
        self.pool = pool
        self.health = health
        self._after_fork()
        self._endpoints: dict[tuple[StreamName, int], Endpoint] = {}
        self._left: dict[tuple[StreamName, int], Endpoint] = {}  # last endpoints of forgotten segments
        self._tokens: dict[tuple[StreamName, bool], tuple[str, float]] = {}
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Callable[..., SegmentStores], tuple[PravegaConfig, float, float, bool]]:
        return _copy, (self._config, self.health.timeout, self.health.failover_timeout, self.health.service)

    @property
    def controller(self) -> ControllerClient:
        """The cluster's controller. gRPC is loaded on first use."""
        if self._controller is None:
            with self._lock:
                self._controller = self._controller or controller.ControllerClient(self._config, health=self.health)
                if self._closed:
                    self._controller.close()
        return self._controller

    @controller.setter
    def controller(self, controller: ControllerClient) -> None:
        self._controller = controller

    def close(self) -> None:
        """Close all connections, including those to the controller."""
        self.pool.close()
        with self._lock:
            self._closed = True
            if self._controller is not None:
                self._controller.close()

    @property
    def timeout(self) -> float:
        """Seconds that a call which starts now may take.

        Before the first contact with a server, this is the client's ``timeout``; after it, ``failover_timeout``.
        """
        return self.health.seconds

    def deadline(self, seconds: float | None = None) -> Deadline:
        """Return the deadline of a call that starts now: after ``seconds``, by default after :attr:`timeout`."""
        return self.health.deadline(seconds)

    # ---------------------------------------------------------------- endpoints and tokens

    def endpoint(self, stream: StreamName, segment_id: int, deadline: Deadline | None = None) -> Endpoint:
        """Return host and port of the store that holds the segment. It is cached until :meth:`forget`."""
        key = (stream, segment_id)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = self.controller.endpoint(stream, segment_id, deadline=deadline)
            with self._lock:
                self._endpoints[key] = endpoint
                before = self._left.pop(key, endpoint)
            if before != endpoint:
                moved = (
                    f"segment {segment_name(stream, segment_id)} has moved from {_text(before)} to {_text(endpoint)}"
                )
                self.health.count("segment_moves", _logger, moved)
        return endpoint

    def known_endpoint(self, stream: StreamName, segment_id: int) -> Endpoint | None:
        """Return the result of :meth:`endpoint` if it is known without a call, else None."""
        return self._endpoints.get((stream, segment_id))

    def token(self, stream: StreamName, *, write: bool, deadline: Deadline | None = None) -> str:
        """Return a delegation token that is still valid for some time; empty if the server requires none."""
        token = self.known_token(stream, write=write)
        if token is None:
            key = (stream, write)
            token = self.controller.delegation_token(stream, write=write, deadline=deadline)
            with self._lock:
                renewed = key in self._tokens
                self._tokens[key] = (token, _renewal(token))
            if renewed:
                self.health.count("token_refreshes", _logger, f"stream {stream}: the token was renewed")
        return token

    def known_token(self, stream: StreamName, *, write: bool) -> str | None:
        """Return the result of :meth:`token` if it is known without a call, else None."""
        token, renewal = self._tokens.get((stream, write), ("", 0.0))
        return None if time.time() >= renewal else token

    def place(self, stream: StreamName, segment_id: int, deadline: Deadline | None = None) -> SegmentPlace:
        """Return the endpoint of a segment and the token to read it. The controller is asked for what is not known."""
        endpoint = self.endpoint(stream, segment_id, deadline)
        self.token(stream, write=False, deadline=deadline)
        return SegmentPlace(endpoint, *self._tokens[stream, False])

    def known_place(self, stream: StreamName, segment_id: int) -> SegmentPlace | None:
        """Return the endpoint of a segment and the token to read it if no call is needed, else None."""
        endpoint, token = self._endpoints.get((stream, segment_id)), self._tokens.get((stream, False))
        return None if endpoint is None or token is None else SegmentPlace(endpoint, *token)

    def take_place(self, stream: StreamName, segment_id: int, place: SegmentPlace) -> None:
        """Use the knowledge of another process, unless this process has its own."""
        with self._lock:
            self._endpoints.setdefault((stream, segment_id), place.endpoint)
            self._tokens.setdefault((stream, False), (place.token, place.renewal))

    def forget(self, stream: StreamName, segment_id: int, error: BaseException | None = None) -> None:
        """Forget the endpoint of a segment, so that the controller is asked again.

        If ``error`` is a refused token, forget the tokens of the stream too. After a lost connection or a timeout,
        forget all segments of that store.
        """
        with self._lock:
            endpoint = self._endpoints.get((stream, segment_id))
            keys = [(stream, segment_id)] if endpoint is not None else []
            store_failed = isinstance(error, ConnectionLostError | DeadlineExceededError)
            if store_failed and endpoint is not None:
                keys = [key for key, at in self._endpoints.items() if at == endpoint]
            for key in keys:
                self._left[key] = self._endpoints.pop(key)
            if isinstance(error, TokenExpiredError):
                for write in (False, True):
                    if (stream, write) in self._tokens:
                        self._tokens[stream, write] = ("", 0.0)
        if store_failed and endpoint is not None:
            self.pool.drop(endpoint)

    # ---------------------------------------------------------------- confirmation by the controller

    def confirm(self, stream: StreamName, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> None:
        """Raise the error of a store about the state of a segment if the controller agrees, else WrongHostError.

        A store that was frozen does not notice at once that its segments have moved to another store. When it notices,
        it has forgotten them.
        """
        if not isinstance(error, NoSuchSegmentError | SegmentSealedError | SegmentTruncatedError):
            raise error
        if self._is_true(stream, segment_id, error, deadline):
            raise error
        raise WrongHostError(
            f"{error.message}, reports a segment store, but the controller reports otherwise"
        ) from None

    def _is_true(self, stream: StreamName, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> bool:
        if isinstance(error, SegmentTruncatedError):
            # Truncation is permanent, and the store that holds the segment now knows all of it.
            before = self._endpoints.get((stream, segment_id))
            return before == self.controller.endpoint(stream, segment_id, deadline=deadline)
        current = self._current(stream, deadline)
        if current is None:
            return True
        if segment_id in current:
            return False
        if table_of(stream) is not None:
            return True
        return isinstance(error, SegmentSealedError) or segment_id not in self._kept(stream, current, deadline)

    def _current(self, stream: StreamName, deadline: Deadline) -> set[int] | None:
        """Return the ids of the current segments; None for a deleted stream or table."""
        table = table_of(stream)
        try:
            if table is not None:
                return {r.id for r in self.controller.table_segments(table, deadline=deadline)}
            return {r.id for r in self.controller.current_segments(stream, deadline=deadline)}
        except (StreamNotFoundError, TableNotFoundError):
            return None

    def _kept(self, stream: StreamName, current: set[int], deadline: Deadline) -> set[int]:
        """Return the ids of the segments that the controller has not truncated away."""
        controller = self.controller
        try:
            head = controller.head_cut(stream, deadline=deadline)
            if current:
                tail = StreamCut(stream, dict.fromkeys(current, 2**63 - 1))
                return {*controller.segments_between(head, tail, deadline=deadline), *head.positions}
            kept, frontier = set(head.positions), list(head.positions)
            while frontier:  # a sealed stream has no current segments to name as its end
                after = {s.range.id for s in controller.successors(stream, frontier.pop(), deadline=deadline)} - kept
                kept |= after
                frontier += after
            return kept
        except StreamNotFoundError:
            return set()

    # ---------------------------------------------------------------- requests

    def run(
        self,
        stream: StreamName,
        segment_id: int,
        attempt: Callable[[Deadline], T],
        *,
        deadline: Deadline | None = None,
    ) -> T:
        """Call ``attempt`` and retry transient failures, for as long as a call may take.

        If a store reports that a segment is sealed or does not exist, the error is raised only if the controller
        agrees.
        """

        def confirmed(share: Deadline) -> T:
            try:
                return attempt(share)
            except (NoSuchSegmentError, SegmentSealedError) as error:
                self.confirm(stream, segment_id, error, share)
                raise

        attempts = self.health.attempts(_logger, f"stream {stream}", deadline or self.deadline())
        return attempts.run(confirmed, lambda error: self.forget(stream, segment_id, error))

    def segment_infos(
        self, stream: StreamName, segment_ids: Iterable[int], *, deadline: Deadline | None = None
    ) -> dict[int, SegmentInfo]:
        """Return the state of each segment, using as few connections as possible.

        A segment counts as missing only if the controller agrees.
        """
        infos: dict[int, SegmentInfo] = {}
        wanted = list(segment_ids)
        if not wanted:
            return infos

        def attempt(share: Deadline) -> None:
            by_endpoint: defaultdict[Endpoint, list[int]] = defaultdict(list)
            for segment_id in wanted:
                if segment_id not in infos:
                    by_endpoint[self.endpoint(stream, segment_id, share)].append(segment_id)
                    share.progress()
            for endpoint, ids in by_endpoint.items():
                self._infos_of(stream, endpoint, ids, infos, share)
            self._check_missing(stream, infos, share)

        def failed(error: PravegaError) -> None:
            for segment_id in wanted:
                if segment_id not in infos:
                    self.forget(stream, segment_id, error)

        self.health.attempts(_logger, f"stream {stream}", deadline or self.deadline()).run(attempt, failed)
        return infos

    def has_transaction_segment(self, stream: StreamName, parent: int, transaction: uuid.UUID) -> bool:
        """Return True if a transaction has a segment that is merged into the segment ``parent``."""
        name = transaction_segment_name(segment_name(stream, parent), transaction)

        def attempt(share: Deadline) -> bool:
            token = self.token(stream, write=True, deadline=share)
            with self.pool.lease(self.endpoint(stream, parent, share), share) as connection:
                reply = connection.ask(GetStreamSegmentInfo(connection.next_request_id(), name, token), share)
            if isinstance(reply, NoSuchSegment):
                return False
            if not isinstance(reply, StreamSegmentInfo):
                raise error_of(reply, name)
            return reply.exists

        attempts = self.health.attempts(_logger, f"stream {stream}", self.deadline())
        return attempts.run(attempt, lambda error: self.forget(stream, parent, error))

    def _check_missing(self, stream: StreamName, infos: dict[int, SegmentInfo], deadline: Deadline) -> None:
        """Raise WrongHostError if the controller has a segment that a store reported as missing.

        The states of such segments are removed from ``infos``.
        """
        missing = {i for i, info in infos.items() if not info.exists}
        if not missing or (current := self._current(stream, deadline)) is None:
            return
        wrong = missing & current
        if wrong != missing:
            wrong |= missing & self._kept(stream, current, deadline)
        for segment_id in wrong:
            del infos[segment_id]
        if wrong:
            name = segment_name(stream, min(wrong))
            raise WrongHostError(f"a segment store reports that {name} does not exist, but the controller has it")

    def _infos_of(
        self, stream: StreamName, endpoint: Endpoint, ids: list[int], infos: dict[int, SegmentInfo], deadline: Deadline
    ) -> None:
        token = self.token(stream, write=False, deadline=deadline)
        with self.pool.lease(endpoint, deadline) as connection:
            id_of = {connection.next_request_id(): segment_id for segment_id in ids}
            requests = {
                number: GetStreamSegmentInfo(number, segment_name(stream, segment_id), token)
                for number, segment_id in id_of.items()
            }
            for number, reply in connection.ask_all(requests, deadline, _INFO_PIPELINE):
                segment_id = id_of[number]
                match reply:
                    case StreamSegmentInfo():
                        infos[segment_id] = SegmentInfo(
                            id=segment_id,
                            exists=reply.exists and not reply.deleted,
                            sealed=reply.sealed,
                            start_offset=reply.start_offset,
                            write_offset=reply.write_offset,
                        )
                    case NoSuchSegment():
                        infos[segment_id] = SegmentInfo(
                            id=segment_id, exists=False, sealed=True, start_offset=0, write_offset=0
                        )
                    case _:
                        raise error_of(reply, requests[number].segment)


def _text(endpoint: Endpoint) -> str:
    return f"{endpoint[0]}:{endpoint[1]}"


class SegmentCalls:
    """Requests about one segment, on pooled connections, retried as long as a call may take. Thread safe.

    All raise StreamNotFoundError for a deleted stream, and ConnectionLostError or DeadlineExceededError if the store
    stays unavailable.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_id: int) -> None:
        self._stores, self._stream, self._id = stores, stream, segment_id
        self._name = segment_name(stream, segment_id)

    def info(self, deadline: Deadline | None = None) -> SegmentInfo:
        """Return the current start and end of the segment."""
        info = self._stores.segment_infos(self._stream, [self._id], deadline=deadline)[self._id]
        if not info.exists:
            raise self.missing()
        return info

    def attribute(self, attribute_id: bytes) -> int:
        """Return the number that is stored under a 16-byte id; NO_ATTRIBUTE if absent."""
        return self._ask(
            lambda number, token: GetSegmentAttribute(number, self._name, attribute_id, token), SegmentAttribute
        ).value

    def replace_attribute(self, attribute_id: bytes, expected: int, value: int) -> bool:
        """Store ``value`` if the current number is ``expected``. Return True if the number is ``value`` now.

        For ``expected``, NO_ATTRIBUTE means absent. After a lost reply, the repeated request finds its own change. So a
        number that is already ``value`` counts as success.
        """
        replaced = self._ask(
            lambda number, token: UpdateSegmentAttribute(number, self._name, attribute_id, value, expected, token),
            SegmentAttributeUpdated,
        ).success
        return replaced or self.attribute(attribute_id) == value

    def truncate(self, offset: int) -> None:
        """Delete all bytes before ``offset``. Bytes that were deleted before stay deleted."""
        try:
            self._ask(lambda number, token: TruncateSegment(number, self._name, offset, token), SegmentTruncated)
        except SegmentTruncatedError:
            pass  # already truncated past that offset

    def missing(self) -> ControllerError | NoSuchSegmentError:
        """Return the error for a segment that does not exist: its stream was deleted, or was scaled."""
        if not self._stores.controller.stream_exists(self._stream):
            return StreamNotFoundError.deleted(self._stream)
        if not self._stores.controller.ever_had(self._stream, self._id):
            return StreamNotFoundError.recreated(self._stream)
        return NoSuchSegmentError(f"segment {self._name} does not exist anymore: the stream was scaled and truncated")

    def _ask(self, request: Callable[[int, str], Message], kind: type[R]) -> R:
        """Return the reply to ``request(number, token)``. Each attempt uses a new number and token."""

        def attempt(deadline: Deadline) -> R:
            token = self._stores.token(self._stream, write=True, deadline=deadline)
            endpoint = self._stores.endpoint(self._stream, self._id, deadline)
            with self._stores.pool.lease(endpoint, deadline) as connection:
                reply = connection.ask(request(connection.next_request_id(), token), deadline)
            if not isinstance(reply, kind):
                raise error_of(reply, self._name)
            return reply

        try:
            return self._stores.run(self._stream, self._id, attempt)
        except NoSuchSegmentError:
            raise self.missing() from None


_copies: Final[PerProcess[tuple[PravegaConfig, float, float, bool], SegmentStores]] = PerProcess(SegmentStores.close)


def _copy(config: PravegaConfig, timeout: float, failover_timeout: float, service: bool) -> SegmentStores:
    """Return the process's copy of a pickled object."""

    def connected() -> SegmentStores:
        health = ClusterHealth(timeout, failover_timeout, service=service)
        return SegmentStores(config, ConnectionPool(Tls.of(config), health), health)

    return _copies.get((config, timeout, failover_timeout, service), connected)
