"""Where in a stream a time lies, by its watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from connector.client._stores import SegmentStores
from connector.client._watermarks import WatermarkLog
from connector.errors import TimeUnknownError
from connector.wire import StreamCut, Watermark

__all__ = ["cut_at"]


def cut_at(stores: SegmentStores, log: WatermarkLog, millis: int, *, end: bool) -> StreamCut:
    """The cut for a time; see :meth:`PravegaClient.cut_at`."""
    marks = log.read()
    if not marks:
        raise TimeUnknownError(
            f"where in stream {log.stream} {_text(millis)} lies is not known: it has no watermarks, because none of "
            "its writers has noted event time, and the servers keep no other record of time; give 'earliest' or a "
            "stream cut, or let the writers note their time (a watermark comes some 10 s after)"
        )
    head = stores.controller.head_cut(log.stream)
    if end:
        return _later(stores, head, _end(log, marks, millis))
    mark = _last_before(marks, millis)
    return head if mark is None or not _is_kept(stores, mark.cut) else mark.cut


def _end(log: WatermarkLog, marks: Sequence[Watermark], millis: int) -> StreamCut:
    for mark in marks:
        if mark.low >= millis:
            return mark.cut
    raise TimeUnknownError(
        f"where in stream {log.stream} {_text(millis)} ends is not known yet: its writers have come to "
        f"{_text(marks[-1].low)}; end at an earlier time or at 'latest', or wait until they have noted that time"
    )


def _last_before(marks: Sequence[Watermark], millis: int) -> Watermark | None:
    """The last watermark before whose cut every event is of an earlier time.

    That its own ``high`` is earlier is not enough: between the place where a writer has noted its time and the cut,
    which lies behind the places of all writers, that writer may have written later events. They are bounded by what
    it noted next. A writer takes part in a watermark if it has noted a later time than the ``low`` of the one before;
    if that is no less than the ``high`` of an older one, it has noted anew since then.
    """
    earlier = [place for place, mark in enumerate(marks) if mark.high < millis]
    if not earlier or not earlier[-1]:
        return None
    newest = earlier[-1]
    found = [mark for mark in marks[:newest] if mark.high <= marks[newest - 1].low]
    return found[-1] if found else None


def _is_kept(stores: SegmentStores, cut: StreamCut) -> bool:
    """Whether the stream still has everything behind a cut."""
    infos = stores.segment_infos(cut.stream, cut.positions)
    return all(infos[i].exists and at >= infos[i].start_offset for i, at in cut.positions.items())


def _later(stores: SegmentStores, head: StreamCut, cut: StreamCut) -> StreamCut:
    """The cut, or the head if nothing before the cut is left."""
    infos = stores.segment_infos(cut.stream, cut.positions)
    return cut if any(infos[i].exists and at > infos[i].start_offset for i, at in cut.positions.items()) else head


def _text(millis: int) -> str:
    try:
        return f"{(datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=millis)).isoformat()} ({millis} ms)"
    except OverflowError:  # event time may count anything
        return f"time {millis}"
