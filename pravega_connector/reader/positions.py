"""Conversion of written positions (``earliest``, a time, the text of a cut) to stream cuts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol

from pravega_connector.core import arguments
from pravega_connector.core.arguments import Position, Stream
from pravega_connector.errors import ConfigError, MalformedStreamCutError, ScopeNotFoundError, StreamNotFoundError
from pravega_connector.wire import StreamCut, StreamName, segment_epoch
from pravega_serde.suggestions import did_you_mean

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

_HEAD: Final = ("earliest", "head")
_TAIL: Final = ("latest", "tail")
_OPEN: Final = "unbounded"
_TIMESTAMP: Final = "timestamp:"
_LONGEST_WORD: Final = 20  # every stream cut is longer
_NEVER: Final = 2**63 - 1  # offset that no segment reaches
_EPOCH: Final = datetime.fromtimestamp(0, UTC)


class SupportsCuts(Protocol):
    """Calls of a client that find stream cuts: see PravegaClient."""

    @property
    def controller(self) -> ControllerClient:
        """Calls to the controller."""

    def require_stream(self, stream: Stream) -> StreamName:
        """Return the full name of a stream that exists. Raises StreamNotFoundError."""

    def head(self, stream: Stream) -> StreamCut:
        """Return the cut before the first event that the stream still holds."""

    def tail(self, stream: Stream) -> StreamCut:
        """Return the cut after the last event."""

    def cut_at(self, stream: Stream, millis: int, *, end: bool = False) -> StreamCut:
        """Return the cut for an event time. Raises TimeUnknownError."""


class EndCut:
    """Cut at which a run that follows a stream ends: the tail at some moment."""

    def __init__(self, tail: StreamCut) -> None:
        self.positions = tail.positions
        # Each epoch begins with new segments, which are in the tail. So segments of later epochs are after the tail.
        self._epoch = max(map(segment_epoch, tail.positions))

    def offset(self, segment_id: int) -> int:
        """Return the offset of the end in a segment: 0 for a later segment, 2**63 - 1 for an earlier one."""
        later = segment_epoch(segment_id) > self._epoch
        return self.positions.get(segment_id, 0 if later else _NEVER)

    def is_reached(self, positions: Mapping[int, int]) -> bool:
        """Return True if the offset of each segment is at the end or after it."""
        return all(at >= self.offset(segment_id) for segment_id, at in positions.items())


def parse_place(
    client: SupportsCuts,
    stream: StreamName,
    text: str,
    what: str,
    *,
    end: bool = False,
    may_be_open: bool = False,
    also: str = "",
) -> StreamCut | None:
    """Return the stream cut for a position, or None for ``unbounded`` if ``may_be_open`` is set.

    A position is ``earliest`` or ``head``, ``latest`` or ``tail``, a time, or the text of a cut. A time is resolved
    with :meth:`PravegaClient.cut_at`, which also gets ``end``. Error texts use ``what`` as the name of the argument,
    and list ``also`` among the accepted values. The call creates nothing. Raises StreamNotFoundError,
    MalformedStreamCutError, TimeUnknownError, ConfigError.
    """
    text = text.strip()
    word = text.lower()
    if word == _OPEN:
        if may_be_open:
            return None
        raise ConfigError(f"{what} must be 'earliest', 'latest' or another position in the stream")
    if word in _HEAD or word in _TAIL:
        try:
            return client.head(stream) if word in _HEAD else client.tail(stream)
        except ScopeNotFoundError:
            raise StreamNotFoundError.of(stream) from None
    if word.isdecimal() or word.startswith(_TIMESTAMP):
        millis = _millis(text, what)
        client.require_stream(stream)
        return client.cut_at(stream, millis, end=end)
    try:
        cut = StreamCut.from_text(text, stream)
    except MalformedStreamCutError:
        if _is_time(text):
            raise MalformedStreamCutError(f"invalid position {text!r} in {what}; write 'timestamp:{text}'") from None
        if len(text) > _LONGEST_WORD:
            raise
        known = (*_HEAD, *_TAIL, *([_OPEN] if may_be_open else []))
        raise MalformedStreamCutError(
            f"invalid position {text!r} in {what}{did_you_mean(text, known)} (write 'earliest', 'latest', "
            f"timestamp:2026-11-21T10:00:00Z, a stream cut as text{also})"
        ) from None
    return valid_cut(client, cut)


def needs_stream(text: str) -> bool:
    """Return True for a word or a time: it is a position only together with a stream."""
    word = text.strip().lower()
    return word in (*_HEAD, *_TAIL, _OPEN) or word.startswith(_TIMESTAMP) or _is_time(text)


def cuts_of(
    client: SupportsCuts, streams: list[StreamName], place: Position | None, what: str, *, default: str
) -> list[StreamCut]:
    """Return the cut of each stream at a position, or at ``default`` without one.

    ``what`` is the name of the argument: ``start`` or ``end``. An ``end`` may be ``unbounded``, which is the present
    tail. Raises the errors of :func:`parse_place`.
    """
    cuts = []
    ends = what == "end"
    for stream, given in zip(streams, arguments.places(place, streams, what), strict=True):
        if isinstance(given, StreamCut):
            cuts.append(given)
            continue
        if given is None:
            found = client.head(stream) if default in _HEAD else client.tail(stream)
        else:
            cut = parse_place(client, stream, given, f"argument {what!r}", end=ends, may_be_open=ends)
            found = client.tail(stream) if cut is None else cut
        cuts.append(found)
    return cuts


def valid_cut(client: SupportsCuts, cut: StreamCut) -> StreamCut:
    """Return a cut from user input in the form that servers accept.

    Raises MalformedStreamCutError, StreamNotFoundError.
    """
    # Java writes -1 for a segment that has not begun, which servers do not accept.
    cut = StreamCut(cut.stream, {segment_id: max(at, 0) for segment_id, at in cut.positions.items()})
    client.require_stream(cut.stream)
    if not client.controller.is_cut_valid(cut):
        raise MalformedStreamCutError(
            f"the stream cut {cut} does not cover stream {cut.stream} exactly once: use a cut that Pravega returned"
        )
    return cut


def _millis(text: str, what: str) -> int:
    """Return milliseconds since 1970 from a number or an ISO 8601 time. A time without a zone is UTC."""
    given = text[len(_TIMESTAMP) :].strip() if text.lower().startswith(_TIMESTAMP) else text
    try:
        return -parse_time(given[1:]) if given[:1] == "-" and given[1:].isdecimal() else parse_time(given)
    except ConfigError:
        raise ConfigError(
            f"{what} has an invalid time {text!r}: write timestamp:2026-11-21T10:00:00Z, or milliseconds since 1970"
        ) from None


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except ConfigError:
        return False
    return True


def parse_time(text: str) -> int:
    """Return milliseconds since 1970 from a number or an ISO 8601 time, in UTC by default. Raises ConfigError."""
    try:
        if text.strip().isdecimal():
            return int(text)
        time = datetime.fromisoformat(text.strip())
    except ValueError:  # also a number of thousands of digits
        raise ConfigError(f"invalid time {text!r}: write 2026-11-21T10:00:00Z, or milliseconds since 1970") from None
    # Not by way of seconds: their product with 1000 can be just below the millisecond.
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
