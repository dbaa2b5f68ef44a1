"""Where segments live and what may be asked of them: endpoints, tokens, and requests to the right segment store."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from connector.client._connection import ConnectionPool, Endpoint
from connector.client._controller import ControllerClient
from connector.client._deadline import Deadline, retrying
from connector.errors import (
    ConnectionLostError,
    EventNumberError,
    NoSuchSegmentError,
    ProtocolError,
    SegmentSealedError,
    SegmentStoreError,
    SegmentTruncatedError,
    TokenExpiredError,
    WrongHostError,
)
from connector.wire import (
    AuthTokenCheckFailed,
    ErrorMessage,
    GetStreamSegmentInfo,
    InvalidEventNumber,
    Message,
    NoSuchSegment,
    SegmentIsSealed,
    SegmentIsTruncated,
    StreamName,
    StreamSegmentInfo,
    WrongHost,
    encode,
    segment_name,
)

__all__ = ["SegmentInfo", "SegmentStores", "error_of"]

T = TypeVar("T")
# A token is renewed this many seconds before it ends: the server closes connections at the end of theirs.
_TOKEN_MARGIN: Final = 60.0
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
    """The error that a reply stands for; a ProtocolError for a reply that does not belong here."""
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
            return ProtocolError(f"segment {segment} answered with {type(reply).__name__}, which does not belong here")


def _token_end(token: str) -> float:
    """Unix seconds at which a delegation token (a JWT) ends; it is read, not verified."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return float(claims["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return float("inf")  # not a JWT of Pravega's: used until the server refuses it


class SegmentStores:
    """Thread safe access to all segment stores of a cluster."""

    def __init__(self, controller: ControllerClient, pool: ConnectionPool, timeout: float) -> None:
        self.controller = controller
        self.pool = pool
        self.timeout = timeout
        self._lock = threading.Lock()
        self._endpoints: dict[tuple[StreamName, int], Endpoint] = {}
        self._tokens: dict[tuple[StreamName, bool], tuple[str, float]] = {}

    def endpoint(self, stream: StreamName, segment_id: int) -> Endpoint:
        """Host and port of the store that holds the segment; asked once, until :meth:`forget`."""
        key = (stream, segment_id)
        endpoint = self._endpoints.get(key)
        if endpoint is None:
            endpoint = self.controller.endpoint(stream, segment_id)
            with self._lock:
                self._endpoints[key] = endpoint
        return endpoint

    def token(self, stream: StreamName, *, write: bool) -> str:
        """A delegation token that is good for some time yet; the empty text where the server asks for none."""
        key = (stream, write)
        token, end = self._tokens.get(key, ("", 0.0))
        if end - time.time() < _TOKEN_MARGIN:
            token = self.controller.delegation_token(stream, write=write)
            with self._lock:
                self._tokens[key] = (token, _token_end(token) if token else float("inf"))
        return token

    def forget(self, stream: StreamName, segment_id: int, error: BaseException | None = None) -> None:
        """Ask the controller again where the segment is, and for a token if ``error`` says it was refused."""
        with self._lock:
            self._endpoints.pop((stream, segment_id), None)
            if isinstance(error, TokenExpiredError):
                self._tokens.pop((stream, False), None)
                self._tokens.pop((stream, True), None)

    def run(self, stream: StreamName, segment_id: int, attempt: Callable[[Deadline], T]) -> T:
        """Call ``attempt`` until it does not fail for a passing reason, within the timeout."""
        deadline = Deadline(self.timeout)
        again = retrying(self.timeout, lambda error: self.forget(stream, segment_id, error))
        return again(attempt, deadline)

    def segment_infos(self, stream: StreamName, segment_ids: Iterable[int]) -> dict[int, SegmentInfo]:
        """State of each segment, asked on as few connections as possible."""
        infos: dict[int, SegmentInfo] = {}
        wanted = list(segment_ids)

        def attempt(deadline: Deadline) -> None:
            by_endpoint: defaultdict[Endpoint, list[int]] = defaultdict(list)
            for segment_id in wanted:
                if segment_id not in infos:
                    by_endpoint[self.endpoint(stream, segment_id)].append(segment_id)
            for endpoint, ids in by_endpoint.items():
                for at in range(0, len(ids), _INFO_PIPELINE):
                    self._infos_of(stream, endpoint, ids[at : at + _INFO_PIPELINE], infos, deadline)

        def forget_missing(error: BaseException) -> None:
            for segment_id in wanted:
                if segment_id not in infos:
                    self.forget(stream, segment_id, error)

        retrying(self.timeout, forget_missing)(attempt, Deadline(self.timeout))
        return infos

    def _infos_of(
        self, stream: StreamName, endpoint: Endpoint, ids: list[int], infos: dict[int, SegmentInfo], deadline: Deadline
    ) -> None:
        token = self.token(stream, write=False)
        names = [segment_name(stream, segment_id) for segment_id in ids]
        with self.pool.lease(endpoint, deadline) as connection:
            requests = (encode(GetStreamSegmentInfo(i, name, token)) for i, name in enumerate(names))
            connection.send(b"".join(requests), deadline)
            found: dict[int, SegmentInfo] = {}
            while len(found) < len(ids):
                match reply := connection.receive(deadline):
                    case StreamSegmentInfo(request_id=i) if 0 <= i < len(ids):
                        found[ids[i]] = SegmentInfo(
                            id=ids[i],
                            exists=reply.exists and not reply.deleted,
                            sealed=reply.sealed,
                            start_offset=reply.start_offset,
                            write_offset=reply.write_offset,
                        )
                    case NoSuchSegment(request_id=i) if 0 <= i < len(ids):
                        found[ids[i]] = SegmentInfo(
                            id=ids[i], exists=False, sealed=True, start_offset=0, write_offset=0
                        )
                    case AuthTokenCheckFailed() | WrongHost() | ErrorMessage():
                        raise error_of(reply, names[0])
                    case _:
                        raise ConnectionLostError(f"{type(reply).__name__} came instead of segment information")
            infos.update(found)
