"""Monitoring of streams and their readers, without Spark.

- ``groups``: the readers of a reader group, and their segments.
- ``scaling``: the history of a stream's segments, and a picture of it.
- ``watch``: the current rates of a stream.

The lag of a reader and its losses (``pravega_connector.lag``) and stream cuts (``pravega_connector.stream_cuts``) have
their names here, too.
"""

from pravega_connector.lag import Loss, SegmentLag, StreamLag, Survey, count_events, lost_bytes, stream_lag, survey
from pravega_connector.operations.monitoring.groups import GroupView, group_lag, group_view
from pravega_connector.operations.monitoring.scaling import History, SegmentLife, draw_history, scaling_history
from pravega_connector.operations.monitoring.watch import SegmentView, StreamView, StreamWatch
from pravega_connector.reader.positions import parse_time
from pravega_connector.stream_cuts import (
    CUT_FORMS,
    Comparison,
    Relation,
    compare_cuts,
    cuts_of,
    read_cut,
    segment_label,
    write_cut,
)

__all__ = [
    "CUT_FORMS",
    "Comparison",
    "GroupView",
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
    "group_lag",
    "group_view",
    "lost_bytes",
    "parse_time",
    "read_cut",
    "scaling_history",
    "segment_label",
    "stream_lag",
    "survey",
    "write_cut",
]
