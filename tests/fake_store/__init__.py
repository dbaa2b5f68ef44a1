"""A small segment store on a real socket, for what a real one cannot be asked to do at a chosen moment."""

from tests.fake_store._codec import Append, RequestDecoder, frame, split_events
from tests.fake_store._controller import FakeStream
from tests.fake_store._server import FakeSegment, FakeSegmentStore, Session

__all__ = [
    "Append",
    "FakeSegment",
    "FakeSegmentStore",
    "FakeStream",
    "RequestDecoder",
    "Session",
    "frame",
    "split_events",
]
