"""Target streams of exactly-once writes: their creation, and whether they have events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import AuthenticationError, InvalidNameError, ScopeNotFoundError, StreamNotFoundError
from pravega_connector.wire import StreamName, segment_number

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient


def target_of(controller: ControllerClient, stream: StreamName) -> str:
    """Return the stream and its creation: ``scope/stream#number``, for the entries of the ledger.

    A stream that is deleted and recreated continues to count its segments. So the number of its first segment
    identifies its creation while the scope exists. A ledger is in the scope of its targets. Raises StreamNotFoundError.
    """
    first = min(segment_number(segment.id) for segment in controller.epoch_segments(stream, 0))
    return f"{stream}#{first}"


def name_of(target: str) -> str:
    """Return the stream ``scope/stream`` of a stream with its creation."""
    return target.rpartition("#")[0]


def is_deleted(controller: ControllerClient, target: str) -> bool:
    """Return True if a stream with its creation was deleted, and perhaps recreated under its name."""
    try:
        return target_of(controller, StreamName.parse(name_of(target))) != target
    except (StreamNotFoundError, ScopeNotFoundError):
        return True


def check_target(controller: ControllerClient, stream: StreamName) -> bool:
    """Return False for a stream that does not exist yet.

    Raises InvalidNameError for a stream that has no events: one of Pravega's internal streams, or a stream with the
    state of exactly-once writes, such as a ledger.
    """
    if stream.is_internal:
        raise InvalidNameError(f"stream {stream} is internal to Pravega: set a stream of events")
    try:
        tags = controller.stream_config(stream).tags
    except AuthenticationError:  # the writer may not ask
        return True
    except (StreamNotFoundError, ScopeNotFoundError):
        return False
    if STATE_TAG in tags:
        raise has_state(stream)
    return True


def has_state(stream: StreamName) -> InvalidNameError:
    """Return the error for events in a stream with the state of exactly-once writes."""
    return InvalidNameError(
        f"stream {stream} has the state of exactly-once writes, which an event would damage: set a stream of events"
    )
