"""Calls about scopes and streams: creation, configuration, truncation, deletion, and event time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pravega_connector.controller import methods
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.segments import SegmentCalls
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.values import RetentionPolicy, ScalingPolicy, StreamConfig
from pravega_connector.errors import (
    ControllerError,
    MalformedStreamCutError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.wire import StreamCut, StreamName

ONE_SEGMENT: Final = ScalingPolicy.fixed(1)


class StreamCalls(SegmentCalls):
    """Calls about scopes and streams."""

    # ---- scopes ----

    def create_scope(self, scope: str) -> bool:
        """Create a scope. Return False if it existed."""
        return self._change(methods.CREATE_SCOPE, methods.scope_message(scope), "create scope", scope)

    def delete_scope(self, scope: str) -> bool:
        """Delete an empty scope. Return False if it did not exist."""
        try:
            return self._change(methods.DELETE_SCOPE, methods.scope_message(scope), "delete scope", scope)
        except ScopeNotFoundError:
            return False

    def scope_exists(self, scope: str) -> bool:
        """Return True if the scope exists."""
        return self._call(methods.SCOPE_EXISTS, methods.scope_message(scope), scope).exists

    def list_scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, with Pravega's own, which begin with ``_``."""
        deadline = self.health.deadline()
        found: set[str] = set()
        token = pb.ContinuationToken()
        while True:
            page = self._call(methods.LIST_SCOPES, pb.ScopesRequest(continuationToken=token), None, deadline)
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
        return self._change(methods.CREATE_STREAM, methods.encode_config(stream, config), "create stream", stream)

    def stream_exists(self, stream: StreamName) -> bool:
        """Return True if the stream exists."""
        return self._call(methods.STREAM_EXISTS, methods.stream_message(stream), stream).exists

    def list_streams(self, scope: str, *, internal: bool = False, tag: str | None = None) -> list[StreamName]:
        """Return the streams of a scope, sorted: all, or those with a ``tag``.

        With ``internal``, they include streams that Pravega created, such as ``_MARK…``.
        """
        return sorted(self._pages(scope, methods.scope_message(scope), internal, self.health.deadline(), tag))

    def iterate_streams(self, scope: str, *, internal: bool = False, tag: str | None = None) -> Iterator[StreamName]:
        """Yield the streams of a scope, page by page, each once; see :meth:`list_streams`."""
        return self._pages(scope, methods.scope_message(scope), internal, tag=tag)

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
                page = self._call(methods.LIST_STREAMS, request, scope, deadline)
            else:
                tagged = pb.StreamsInScopeWithTagRequest(scope=message, tag=tag, continuationToken=token)
                page = self._call(methods.LIST_STREAMS_WITH_TAG, tagged, scope, deadline)
            methods.outcome(pb.StreamsInScopeResponse.Status, page.status, "list the streams of scope", scope)
            names = {info.stream for info in page.streams} - found
            if not names:  # an empty page ends the list; one of old names would never end it
                return
            found |= names
            yield from methods.named(scope, names, internal=internal)
            token = page.continuationToken

    def stream_config(self, stream: StreamName) -> StreamConfig:
        """Return a stream's configuration."""
        return methods.decode_config(self._call(methods.STREAM_CONFIG, methods.stream_message(stream), stream))

    def update_stream(self, stream: StreamName, config: StreamConfig) -> None:
        """Replace a stream's whole configuration. A new fixed number of segments scales the stream at once."""
        self._change(methods.UPDATE_STREAM, methods.encode_config(stream, config), "update stream", stream)

    def truncate_stream(self, cut: StreamCut) -> None:
        """Delete all events before a cut.

        Raises ControllerError for a cut before the head, or one that does not cover all keys. The controller does not
        know the lengths of segments: a cut after the tail also deletes events that are written up to it later.
        """
        self._change(
            methods.TRUNCATE_STREAM, methods.cut_message(cut), "truncate stream", cut.stream, lambda: self._check(cut)
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
        self._change(methods.SEAL_STREAM, methods.stream_message(stream), "seal stream", stream)

    def delete_stream(self, stream: StreamName) -> bool:
        """Delete a sealed stream. Return False if it did not exist.

        Raises ControllerError if it is not sealed.
        """
        try:
            return self._change(methods.DELETE_STREAM, methods.stream_message(stream), "delete stream", stream)
        except StreamNotFoundError:
            return False

    # ---- event time ----

    def note_time(self, writer_id: str, position: StreamCut, millis: int) -> bool:
        """Note that a writer's events before a position have times up to ``millis``, and later events from ``millis``.

        Returns False, without a change, if the writer has noted a later time or position before.
        """
        stream, statuses = position.stream, pb.TimestampResponse
        request = methods.time_message(writer_id, position, millis)
        status = self._settled(methods.NOTE_TIMESTAMP, request, f"note a time of writer {writer_id} of", stream).result
        if status in (statuses.SUCCESS, statuses.INVALID_TIME, statuses.INVALID_POSITION):
            return status == statuses.SUCCESS
        raise ControllerError(f"time {millis} of writer {writer_id} of stream {stream} was not noted")

    def remove_writer(self, stream: StreamName, writer_id: str, *, timeout: float | None = None) -> bool:
        """Stop waiting for a writer in the watermarks of a stream.

        Return False if the writer has noted no time.
        """
        request = pb.RemoveWriterRequest(writer=writer_id, stream=methods.stream_message(stream))
        status = self._call(methods.REMOVE_WRITER, request, stream, self.health.deadline(timeout)).result
        if status in (pb.RemoveWriterResponse.SUCCESS, pb.RemoveWriterResponse.UNKNOWN_WRITER):
            return status == pb.RemoveWriterResponse.SUCCESS
        raise ControllerError(f"writer {writer_id} of stream {stream} could not be removed")
