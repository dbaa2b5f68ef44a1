"""Single requests about one segment: the numbers that are kept with it, and truncation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from connector.client._deadline import Deadline
from connector.client._stores import SegmentInfo, SegmentStores, error_of
from connector.errors import ControllerError, NoSuchSegmentError, SegmentTruncatedError, StreamNotFoundError
from connector.wire import (
    GetSegmentAttribute,
    Message,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentTruncated,
    StreamName,
    TruncateSegment,
    UpdateSegmentAttribute,
    encode,
    segment_name,
)

__all__ = ["SegmentCalls"]

R = TypeVar("R", bound=Message)


class SegmentCalls:
    """Requests about one segment, each on a pooled connection and repeated as long as a call may take. Thread safe.

    All raise StreamNotFoundError for a stream that was deleted, and ConnectionLostError or DeadlineExceededError when
    the store stays away.
    """

    def __init__(self, stores: SegmentStores, stream: StreamName, segment_id: int) -> None:
        self._stores, self._stream, self._id = stores, stream, segment_id
        self._name = segment_name(stream, segment_id)

    def info(self, deadline: Deadline | None = None) -> SegmentInfo:
        """Where the segment starts and ends now."""
        info = self._stores.segment_infos(self._stream, [self._id], deadline=deadline)[self._id]
        if not info.exists:
            raise self.missing()
        return info

    def attribute(self, attribute_id: bytes) -> int:
        """The number that is kept under a 16-byte id, NO_ATTRIBUTE if there is none."""
        return self._ask(lambda token: GetSegmentAttribute(1, self._name, attribute_id, token), SegmentAttribute).value

    def replace_attribute(self, attribute_id: bytes, expected: int, value: int) -> bool:
        """Keep ``value`` if ``expected`` is the number that is kept (NO_ATTRIBUTE: none); whether it is ``value`` now.

        After a lost answer the request is repeated and finds its own work done: so a number that is there already
        counts as success.
        """
        replaced = self._ask(
            lambda token: UpdateSegmentAttribute(1, self._name, attribute_id, value, expected, token),
            SegmentAttributeUpdated,
        ).success
        return replaced or self.attribute(attribute_id) == value

    def truncate(self, offset: int) -> None:
        """Drop all bytes before ``offset``; those that were dropped already stay so."""
        try:
            self._ask(lambda token: TruncateSegment(1, self._name, offset, token), SegmentTruncated)
        except SegmentTruncatedError:
            pass  # beyond that offset already

    def missing(self) -> ControllerError | NoSuchSegmentError:
        """The error for a segment that is not there: of a deleted stream, or of a stream that was scaled."""
        if not self._stores.controller.stream_exists(self._stream):
            return StreamNotFoundError(f"stream {self._stream} was deleted while it was in use")
        return NoSuchSegmentError(f"segment {self._name} is no more: the stream was deleted and made again, or scaled")

    def _ask(self, request: Callable[[str], Message], kind: type[R]) -> R:
        """The reply to what ``request`` makes with a token; made anew for each attempt, as a token can be refused."""

        def attempt(deadline: Deadline) -> R:
            token = self._stores.token(self._stream, write=True, deadline=deadline)
            endpoint = self._stores.endpoint(self._stream, self._id, deadline)
            with self._stores.pool.lease(endpoint, deadline) as connection:
                connection.send(encode(request(token)), deadline)
                reply = connection.receive(deadline)
            if not isinstance(reply, kind):
                raise error_of(reply, self._name)
            return reply

        try:
            return self._stores.run(self._stream, self._id, attempt)
        except NoSuchSegmentError:
            raise self.missing() from None
