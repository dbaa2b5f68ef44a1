"""Requests to segment stores: endpoints of segments, delegation tokens, and calls to the owning store."""

from __future__ import annotations

import base64
import json
import logging
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from pravega_connector.config import PravegaConfig
from pravega_connector.core.connection import ConnectionPool, Endpoint
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
    StreamNotFoundError,
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
    answers,
    encode,
    segment_name,
)
from pravega_serde import after_fork
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

T = TypeVar("T")
R = TypeVar("R", bound=Message)
_logger: Final = logging.getLogger(__name__)
# A token is renewed this many seconds before it ends, or in the middle of a short life: the server closes connections
# at the end of theirs. A new one is good for a moment in any case, whatever the clocks of two machines say.
_TOKEN_MARGIN: Final = 60.0
_TOKEN_SECONDS: Final = 1.0
# Requests for segment information sent ahead of their answers on one connection.
_INFO_PIPELINE: Final = 256
# The texts that come with errors hold whole Java stack traces: this much of them is the reason.
_REASON_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentInfo:
    """State of a segment: bytes [start_offset, write_offset) can be read; a sealed one does not grow."""

    id: int
    exists: bool
    sealed: bool
    start_offset: int
    write_offset: int


def error_of(reply: Message, segment: str) -> SegmentStoreError:  # noqa: PLR0911 - a table
    """The error that a refusal stands for; an UnexpectedReplyError for any other reply."""
    match reply:
        case NoSuchSegment():
            return NoSuchSegmentError(f"segment {segment} does not exist (deleted, truncated away, or never there)")
        case SegmentIsSealed():
            return SegmentSealedError(f"segment {segment} is sealed")
        case SegmentIsTruncated(start_offset=start, offset=offset):
            return SegmentTruncatedError(
                f"segment {segment} starts at offset {start}; offset {offset} was truncated", start_offset=start
            )
        case WrongHost():
            return WrongHostError(f"segment {segment} lives on another segment store")
        case AuthTokenCheckFailed():
            return TokenExpiredError(f"the token for segment {segment} was refused")
        case InvalidEventNumber(event_number=number):
            return EventNumberError(f"segment {segment} refused event number {number}: its writer id has moved on")
        case ErrorMessage(text=text):
            return SegmentStoreError(f"segment {segment}: {text[:_REASON_CHARACTERS]}")
        case _:
            return UnexpectedReplyError.of(f"the store of segment {segment}", reply)


def _token_end(token: str) -> float:
    """Unix seconds at which a delegation token (a JWT) ends; it is read, not verified."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        end = float(claims["exp"])
        return end if end == end else math.inf  # noqa: PLR0124 - not a number
    except (IndexError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return math.inf  # not a JWT of Pravega's: used until the server refuses it


def _renewal(token: str) -> float:
    """Unix seconds at which a token that came just now is to be renewed."""
    if not token:
        return float("inf")
    now, end = time.time(), _token_end(token)
    return max(end - min(_TOKEN_MARGIN, (end - now) / 2), now + _TOKEN_SECONDS)


@dataclass(frozen=True)
class SegmentPlace:
    """Where a segment is, and the token to read it, as one process knows it and tells another.

    The other one need not ask the controller then. What has changed since it finds out as ever: the store refuses.
    """

    endpoint: Endpoint
    token: str = field(repr=False)
    """Secret; empty where the servers ask for none."""
    renewal: float
    """Unix seconds from which another token is asked for."""


class SegmentStores:
    """Thread safe access to all segment stores of a cluster."""

    def __init__(self, config: PravegaConfig, pool: ConnectionPool, health: ClusterHealth) -> None:
        self._config = config
        self._controller: ControllerClient | None = None
        self._closed = False
        self.pool = pool
        self.health = health
        self._after_fork()
        self._endpoints: dict[tuple[StreamName, int], Endpoint] = {}
        self._left: dict[tuple[StreamName, int], Endpoint] = {}  # where segments were that were forgotten
        self._tokens: dict[tuple[StreamName, bool], tuple[str, float]] = {}
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()

    @property
    def controller(self) -> ControllerClient:
        """The cluster's controller; gRPC is loaded when it is first asked for."""
        if self._controller is None:
            from pravega_connector.controller.service import ControllerClient  # noqa: PLC0415 - with gRPC, a third of all that a task loads

            with self._lock:
                self._controller = self._controller or ControllerClient(self._config, health=self.health)
                if self._closed:
                    self._controller.close()
        return self._controller

    @controller.setter
    def controller(self, controller: ControllerClient) -> None:
        self._controller = controller

    def close(self) -> None:
        """Close all connections, those to the controller included."""
        self.pool.close()
        with self._lock:
            self._closed = True
            if self._controller is not None:
                self._controller.close()

    @property
    def timeout(self) -> float:
        """Seconds that a call which starts now may take: those of a first contact, or of going on after one."""
        return self.health.seconds

    def deadline(self, seconds: float | None = None) -> Deadline:
        """The deadline of a call that starts now: after ``seconds`` if they are given."""
        return self.health.deadline(seconds)

    # ---------------------------------------------------------------- where to go, and with what token

    def endpoint(self, stream: StreamName, segment_id: int, deadline: Deadline | None = None) -> Endpoint:
        """Host and port of the store that holds the segment; asked once, until :meth:`forget`."""
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
        """Result of :meth:`endpoint` if it is known without a call, else None."""
        return self._endpoints.get((stream, segment_id))

    def token(self, stream: StreamName, *, write: bool, deadline: Deadline | None = None) -> str:
        """A delegation token that is good for some time yet; the empty text where the server asks for none."""
        token = self.known_token(stream, write=write)
        if token is None:
            key = (stream, write)
            token = self.controller.delegation_token(stream, write=write, deadline=deadline)
            with self._lock:
                renewed = key in self._tokens
                self._tokens[key] = (token, _renewal(token))
            if renewed:
                self.health.count("token_refreshes", _logger, f"stream {stream}: a new token was taken")
        return token

    def known_token(self, stream: StreamName, *, write: bool) -> str | None:
        """Result of :meth:`token` if it is known without a call, else None."""
        token, renewal = self._tokens.get((stream, write), ("", 0.0))
        return None if time.time() >= renewal else token

    def known_place(self, stream: StreamName, segment_id: int) -> SegmentPlace | None:
        """Where a segment is and the token to read it, if both are known without a call; else None."""
        endpoint, token = self._endpoints.get((stream, segment_id)), self._tokens.get((stream, False))
        return None if endpoint is None or token is None else SegmentPlace(endpoint, *token)

    def take_place(self, stream: StreamName, segment_id: int, place: SegmentPlace) -> None:
        """Believe what another process knew, unless something is known here."""
        with self._lock:
            self._endpoints.setdefault((stream, segment_id), place.endpoint)
            self._tokens.setdefault((stream, False), (place.token, place.renewal))

    def forget(self, stream: StreamName, segment_id: int, error: BaseException | None = None) -> None:
        """Ask the controller again where the segment is, and for a token if ``error`` says it was refused.

        After a lost connection, or none, the other segments of that store are looked up again as well.
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

    # ---------------------------------------------------------------- what may be believed

    def confirm(self, stream: StreamName, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> None:
        """Raise the error of a store about what there is of a segment, if the controller agrees; else WrongHostError.

        A store that was frozen does not know at once that its segments live elsewhere now, and has forgotten them when
        it does.
        """
        if not isinstance(error, NoSuchSegmentError | SegmentSealedError | SegmentTruncatedError):
            raise error
        if self._is_true(stream, segment_id, error, deadline):
            raise error
        raise WrongHostError(f"{error.message}, says a segment store, but the controller denies it") from None

    def _is_true(self, stream: StreamName, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> bool:
        if isinstance(error, SegmentTruncatedError):
            # What is truncated stays so, and the store that has the segment now knows all that was.
            before = self._endpoints.get((stream, segment_id))
            return before == self.controller.endpoint(stream, segment_id, deadline=deadline)
        current = self._current(stream, deadline)
        if current is None:
            return True
        if segment_id in current:
            return False
        return isinstance(error, SegmentSealedError) or segment_id not in self._kept(stream, current, deadline)

    def _current(self, stream: StreamName, deadline: Deadline) -> set[int] | None:
        """Ids of the current segments; None for a stream that was deleted."""
        try:
            return {r.id for r in self.controller.current_segments(stream, deadline=deadline)}
        except StreamNotFoundError:
            return None

    def _kept(self, stream: StreamName, current: set[int], deadline: Deadline) -> set[int]:
        """Ids of the segments that the controller has not truncated away."""
        controller = self.controller
        try:
            head = controller.head_cut(stream, deadline=deadline)
            if current:
                tail = StreamCut(stream, dict.fromkeys(current, 2**63 - 1))
                return {*controller.segments_between(head, tail, deadline=deadline), *head.positions}
            kept, frontier = set(head.positions), list(head.positions)
            while frontier:  # a sealed stream has no end that could be named
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
        """Call ``attempt`` until it does not fail for a passing reason, within the time that a call may take.

        What a store says of a segment's end or absence is raised if the controller agrees.
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
        """State of each segment, asked on as few connections as possible.

        One does not exist only if the controller agrees.
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
                for at in range(0, len(ids), _INFO_PIPELINE):
                    self._infos_of(stream, endpoint, ids[at : at + _INFO_PIPELINE], infos, share)
            self._check_missing(stream, infos, share)

        def failed(error: PravegaError) -> None:
            for segment_id in wanted:
                if segment_id not in infos:
                    self.forget(stream, segment_id, error)

        self.health.attempts(_logger, f"stream {stream}", deadline or self.deadline()).run(attempt, failed)
        return infos

    def _check_missing(self, stream: StreamName, infos: dict[int, SegmentInfo], deadline: Deadline) -> None:
        """Raise WrongHostError, and drop what a store said, unless the controller agrees on what does not exist."""
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
            raise WrongHostError(f"a segment store says that {name} does not exist, but the controller has it")

    def _infos_of(
        self, stream: StreamName, endpoint: Endpoint, ids: list[int], infos: dict[int, SegmentInfo], deadline: Deadline
    ) -> None:
        token = self.token(stream, write=False, deadline=deadline)
        with self.pool.lease(endpoint, deadline) as connection:
            asked: dict[int, GetStreamSegmentInfo] = {}
            id_of: dict[str, int] = {}
            for segment_id in ids:
                number, name = connection.next_request_id(), segment_name(stream, segment_id)
                asked[number], id_of[name] = GetStreamSegmentInfo(number, name, token), segment_id
            connection.send(b"".join(map(encode, asked.values())), deadline)
            found: dict[int, SegmentInfo] = {}
            while asked:
                reply = connection.receive(deadline)
                request = asked.pop(getattr(reply, "request_id", 0), None)
                if request is None or not answers(request, reply):
                    raise UnexpectedReplyError.of(f"the store of stream {stream}", reply)
                segment_id = id_of[request.segment]
                match reply:
                    case StreamSegmentInfo():
                        found[segment_id] = SegmentInfo(
                            id=segment_id,
                            exists=reply.exists and not reply.deleted,
                            sealed=reply.sealed,
                            start_offset=reply.start_offset,
                            write_offset=reply.write_offset,
                        )
                    case NoSuchSegment():
                        found[segment_id] = SegmentInfo(
                            id=segment_id, exists=False, sealed=True, start_offset=0, write_offset=0
                        )
                    case _:
                        raise error_of(reply, request.segment)
            infos.update(found)


def _text(endpoint: Endpoint) -> str:
    return f"{endpoint[0]}:{endpoint[1]}"


class SegmentCalls:
    """Requests about one segment, each on a pooled connection and repeated as long as a call may take. Thread safe.

    All raise StreamNotFoundError for a stream that was deleted, and ConnectionLostError or DeadlineExceededError when
    the store stays away.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_id: int) -> None:
        self._stores, self._stream, self._id = stores, stream, segment_id
        self._name = segment_name(stream, segment_id)

    def info(self, deadline: Deadline | None = None) -> SegmentInfo:
        """Current start and end of the segment."""
        info = self._stores.segment_infos(self._stream, [self._id], deadline=deadline)[self._id]
        if not info.exists:
            raise self.missing()
        return info

    def attribute(self, attribute_id: bytes) -> int:
        """Number that is kept under a 16-byte id; NO_ATTRIBUTE if absent."""
        return self._ask(
            lambda number, token: GetSegmentAttribute(number, self._name, attribute_id, token), SegmentAttribute
        ).value

    def replace_attribute(self, attribute_id: bytes, expected: int, value: int) -> bool:
        """Keep ``value`` if ``expected`` is the number that is kept (NO_ATTRIBUTE: none); whether it is ``value`` now.

        After a lost answer the request is repeated and finds its own work done: so a number that is there already
        counts as success.
        """
        replaced = self._ask(
            lambda number, token: UpdateSegmentAttribute(number, self._name, attribute_id, value, expected, token),
            SegmentAttributeUpdated,
        ).success
        return replaced or self.attribute(attribute_id) == value

    def truncate(self, offset: int) -> None:
        """Drop all bytes before ``offset``; those that were dropped already stay so."""
        try:
            self._ask(lambda number, token: TruncateSegment(number, self._name, offset, token), SegmentTruncated)
        except SegmentTruncatedError:
            pass  # beyond that offset already

    def missing(self) -> ControllerError | NoSuchSegmentError:
        """The error for a segment that is not there: of a deleted stream, or of a stream that was scaled."""
        if not self._stores.controller.stream_exists(self._stream):
            return StreamNotFoundError.deleted(self._stream)
        return NoSuchSegmentError(f"segment {self._name} is gone: the stream was deleted and made again, or scaled")

    def _ask(self, request: Callable[[int, str], Message], kind: type[R]) -> R:
        """Return the reply to what ``request`` makes with a number and a token, in each attempt with new ones."""

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
