"""Where a writer's events go: the segments of a stream, or those that a transaction has beside them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from connector.client._controller import ControllerClient
from connector.client._policies import Successor
from connector.errors import (
    NoSuchSegmentError,
    SegmentSealedError,
    SegmentStoreError,
    StreamNotFoundError,
    StreamSealedError,
)
from connector.wire import SegmentRange, StreamName, segment_name, transaction_segment_name

__all__ = ["Destination", "StreamDestination", "TransactionDestination"]


class Destination(Protocol):
    """Segments that take events, and what it means when one of them does not."""

    @property
    def stream(self) -> StreamName:
        """The stream that the segments belong to."""
        ...

    def ranges(self) -> Sequence[SegmentRange]:
        """The segments to begin with; together they cover the key space."""
        ...

    def segment_name(self, segment_id: int) -> str:
        """Name of a segment on the wire."""
        ...

    def check_refusal(self, error: SegmentSealedError | NoSuchSegmentError) -> None:
        """Raise what a segment's end means, unless it has successors that go on."""
        ...

    def successors(self, segment_id: int) -> list[Successor]:
        """The segments that go on for one that has ended. Raises StreamSealedError where there are none."""
        ...


class StreamDestination:
    """The current segments of a stream."""

    def __init__(self, controller: ControllerClient, stream: StreamName) -> None:
        self.stream = stream
        self._controller = controller

    def ranges(self) -> Sequence[SegmentRange]:
        """The current segments. Raises StreamSealedError."""
        ranges = self._controller.current_segments(self.stream)
        if not ranges:
            raise self._sealed()
        return ranges

    def segment_name(self, segment_id: int) -> str:
        """Name of a segment on the wire."""
        return segment_name(self.stream, segment_id)

    def check_refusal(self, error: SegmentSealedError | NoSuchSegmentError) -> None:
        """Raise StreamNotFoundError for a stream that was deleted.

        A segment that is missing while its stream is there was sealed, and truncated away since then: nothing of what
        waits for it can be in it.
        """
        if isinstance(error, NoSuchSegmentError) and not self._controller.stream_exists(self.stream):
            raise StreamNotFoundError(f"stream {self.stream} was deleted while it was written to")

    def successors(self, segment_id: int) -> list[Successor]:
        """The segments after one that has ended. Raises StreamSealedError."""
        successors = self._controller.successors(self.stream, segment_id)
        if not successors:
            raise self._sealed()
        return successors

    def _sealed(self) -> StreamSealedError:
        return StreamSealedError(f"stream {self.stream} is sealed; nothing more can be written to it")


class TransactionDestination:
    """The segments of a transaction: one for each segment that the stream had when it was begun, for its whole life.

    They outlive a scaling of the stream and end with the transaction alone, so there are never successors.
    """

    def __init__(
        self,
        stream: StreamName,
        transaction: uuid.UUID,
        segments: Sequence[SegmentRange],
        ended: Callable[[SegmentStoreError], Exception],
    ) -> None:
        """``ended`` makes the error for a transaction that takes no more events."""
        self.stream = stream
        self._transaction = transaction
        self._segments = segments
        self._ended = ended

    def ranges(self) -> Sequence[SegmentRange]:
        """The parents of the transaction's segments."""
        return self._segments

    def segment_name(self, segment_id: int) -> str:
        """Name of the transaction's segment beside a parent."""
        return transaction_segment_name(segment_name(self.stream, segment_id), self._transaction)

    def check_refusal(self, error: SegmentSealedError | NoSuchSegmentError) -> None:
        """Raise what became of the transaction."""
        raise self._ended(error) from None

    def successors(self, segment_id: int) -> list[Successor]:
        """None: the transaction has ended. Raises what became of it."""
        raise self._ended(SegmentSealedError(f"segment {self.segment_name(segment_id)} is sealed"))
