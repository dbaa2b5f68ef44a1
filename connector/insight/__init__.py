"""Insight into streams and their readers, without Spark.

``lag`` has the distance of a reader from the end of its stream and its losses, ``stream_cuts`` the forms of cuts and
their comparison, ``scaling`` the history of a stream's segments with a picture of it, ``watch`` its present rates.
"""

from .lag import Loss, SegmentLag, StreamLag, Survey, count_events, lost_bytes, stream_lag, survey
from .scaling import History, SegmentLife, draw_history, scaling_history
from .stream_cuts import (
    CUT_FORMS,
    Comparison,
    Relation,
    compare_cuts,
    cuts_of,
    parse_time,
    read_cut,
    segment_label,
    write_cut,
)
from .watch import SegmentView, StreamView, StreamWatch

__all__ = [
    "CUT_FORMS",
    "Comparison",
    "History",
    "Loss",
    "Relation",
    "SegmentLag",
    "SegmentLife",
    "SegmentView",
    "StreamLag",
    "StreamView",
    "StreamWatch",
    "Survey",
    "compare_cuts",
    "count_events",
    "cuts_of",
    "draw_history",
    "lost_bytes",
    "parse_time",
    "read_cut",
    "scaling_history",
    "segment_label",
    "stream_lag",
    "survey",
    "write_cut",
]
