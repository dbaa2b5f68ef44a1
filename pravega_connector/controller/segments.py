"""Calls about the segments of a stream: their order, stream cuts, scaling, and their segment stores."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from typing import Final

from pravega_connector.controller import methods
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.calls import ControllerCalls
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.values import Successor
from pravega_connector.errors import (
    AuthenticationError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    DeadlineExceededError,
    MalformedStreamCutError,
    ProtocolError,
)
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, segment_epoch

_logger: Final = logging.getLogger(__name__)
# Bytes of a text in a request to a segment store, after its length of two bytes.
_LARGEST_TOKEN: Final = 0xFFFF
# Addresses that a server publishes if it listens on all interfaces, or if its name was not configured.
_NOWHERE: Final = frozenset({"", "0.0.0.0", "127.0.0.1", "::", "::1", "localhost"})  # noqa: S104 - compared, not bound
_LONGEST_HOST: Final = 253  # RFC 1035
_QUOTED_HOST: Final = 80


class SegmentCalls(ControllerCalls):
    """Calls about the segments of a stream."""

    def current_segments(self, stream: StreamName, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments that accept events now, by id; empty for a sealed stream."""
        request = methods.stream_without_token(stream)
        return methods.decode_ranges(self._call(methods.CURRENT_SEGMENTS, request, stream, deadline).segmentRanges)

    def epoch_segments(self, stream: StreamName, epoch: int, *, deadline: Deadline | None = None) -> list[SegmentRange]:
        """Return the segments that accepted events in an epoch, by id.

        Raises ControllerError for an epoch that never existed.
        """
        request = pb.GetEpochSegmentsRequest(streamInfo=methods.stream_message(stream), epoch=epoch)
        return methods.decode_ranges(self._call(methods.EPOCH_SEGMENTS, request, stream, deadline).segmentRanges)

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
        request = pb.GetSegmentsRequest(streamInfo=methods.stream_without_token(stream), timestamp=0)
        locations = self._call(methods.SEGMENTS_AT, request, stream, deadline).segments
        return StreamCut(stream, {location.segmentId.segmentId: location.offset for location in locations})

    def successors(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> list[Successor]:
        """Return the successors of a sealed segment, by id.

        Empty for a segment that is open, or that is the last one of a sealed stream.
        """
        entries = self._call(methods.SUCCESSORS, methods.segment_message(stream, segment_id), stream, deadline).segments
        ranges = methods.decode_ranges(entry.segment for entry in entries)
        predecessors = {entry.segment.segmentId.segmentId: tuple(sorted(entry.value)) for entry in entries}
        return [Successor(value, predecessors[value.id]) for value in ranges]

    def segments_between(self, start: StreamCut, end: StreamCut, *, deadline: Deadline | None = None) -> list[int]:
        """Return the ids of the segments from ``start`` to ``end`` inclusive, in a valid order to read them.

        Truncated segments are listed as well. Raises MalformedStreamCutError if ``end`` is before ``start``.
        """
        methods.check_order(start, end)
        request = pb.StreamCutRange(streamInfo=methods.stream_message(start.stream), to=end.positions)
        getattr(request, "from").update(start.positions)  # a keyword of Python
        response = self._call(methods.SEGMENTS_BETWEEN, request, start.stream, deadline)
        return sorted(segment.segmentId for segment in response.segments)

    def is_cut_valid(self, cut: StreamCut) -> bool:
        """Return True if the cut's segments belong to the stream and cover every routing key exactly once."""
        try:
            return self._call(methods.CUT_VALID, methods.cut_message(cut), cut.stream).response
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
        methods.check_scaling(stream, before, seal, ranges)
        deadline = self.health.deadline(timeout)
        request = methods.scale_message(stream, seal, ranges)
        with self.health.attempts(_logger, f"scale stream {stream}", deadline) as attempts:
            while True:
                try:
                    response = self._call(methods.SCALE, request, stream, deadline)
                    methods.outcome(pb.ScaleResponse.ScaleStreamStatus, response.status, "scale stream", stream)
                    break
                except (ControllerUnavailableError, ControllerFailureError) as error:
                    trouble = error
                # The scaling may have started or even ended. While it runs, the same request joins it.
                with contextlib.suppress(
                    ControllerUnavailableError
                ):  # after the deadline, the first error has the reason
                    if methods.is_scaled(current := self.current_segments(stream, deadline=deadline), seal, ranges):
                        return current
                attempts.again(trouble)
        self._await_scaling(stream, response.epoch, deadline)
        return self.current_segments(stream, deadline=deadline)

    def _await_scaling(self, stream: StreamName, epoch: int, deadline: Deadline) -> None:
        statuses = pb.ScaleStatusResponse
        request = pb.ScaleStatusRequest(streamInfo=methods.stream_message(stream), epoch=epoch)
        late = DeadlineExceededError(
            f"stream {stream} was not scaled within {deadline.seconds:g} s; the controller continues: check "
            "current_segments later, or set a longer timeout"
        )
        polls = Polls(deadline)
        status = self._call(methods.CHECK_SCALE, request, stream, deadline).status
        while status == statuses.IN_PROGRESS:
            if not polls.again():
                raise late
            try:
                status = self._call(methods.CHECK_SCALE, request, stream, deadline).status
            except ControllerUnavailableError:
                raise late from None  # the last poll had too little time
        methods.outcome(statuses.ScaleStatus, status, "scale stream", stream)

    # ---- addresses of the segment stores ----

    def endpoint(self, stream: StreamName, segment_id: int, *, deadline: Deadline | None = None) -> tuple[str, int]:
        """Return host and port of the segment store that owns a segment. The segment need not exist.

        If a server does not know its own name, the controller's host is returned. Raises ProtocolError for a text that
        is not a host.
        """
        uri = self._call(methods.URI, methods.segment_message(stream, segment_id), stream, deadline)
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
        request = methods.stream_message(stream, pb.StreamInfo.READ_WRITE if write else pb.StreamInfo.READ)
        token: str = self._call(methods.DELEGATION_TOKEN, request, stream, deadline).delegationToken
        if len(token.encode()) > _LARGEST_TOKEN:
            raise AuthenticationError(
                f"the controller returned a token of {len(token)} characters for stream {stream}; segment stores "
                f"accept {_LARGEST_TOKEN} bytes: check the authorization of the controller"
            )
        return token
