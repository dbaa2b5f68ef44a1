"""Where a writer's events go: the segments of a stream, or those that a transaction has beside them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Protocol

from connector.client._controller import ControllerClient
from connector.client._deadline import Deadline
from connector.client._policies import Successor
from connector.errors import SegmentStoreError, StreamNotFoundError, StreamSealedError, WrongHostError
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

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """The segments that go on for one of which a store says by ``error`` that it takes no more.

        Raises what its end means where none do, and WrongHostError where the controller does not know of an end.
        """
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

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """The segments after one that has ended. Raises StreamSealedError, StreamNotFoundError, WrongHostError.

        A segment that is missing while its stream is there, and not current, was sealed, and truncated away since then:
        nothing of what waits for it can be in it.
        """
        try:
            current = self._controller.current_segments(self.stream, deadline=deadline)
        except StreamNotFoundError:
            raise StreamNotFoundError(f"stream {self.stream} was deleted while it was written to") from None
        if not current:
            raise self._sealed()
        if segment_id not in {r.id for r in current}:
            successors = self._controller.successors(self.stream, segment_id, deadline=deadline)
            if successors:
                return successors
        raise WrongHostError(f"{error.message}, says a segment store, but the controller knows of no end")

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
        ended: Callable[[SegmentStoreError, Deadline], Exception],
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

    def successors(self, segment_id: int, error: SegmentStoreError, deadline: Deadline) -> list[Successor]:
        """None: the transaction has ended. Raises what became of it, and WrongHostError if it is open."""
        del segment_id  # all of them end with the transaction
        raise self._ended(error, deadline) from None
