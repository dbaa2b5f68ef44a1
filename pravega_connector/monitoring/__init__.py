"""Monitoring of streams and their readers, without Spark.

- ``lag``: distance of a reader from the end of its stream, and its losses.
- ``groups``: the readers of a reader group, and their segments.
- ``stream_cuts``: the text forms of stream cuts, and their comparison.
- ``scaling``: the history of a stream's segments, and a picture of it.
- ``watch``: the current rates of a stream.

Each module is loaded when one of its names is used: Spark's tasks need only ``lag``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.monitoring.groups import GroupView as GroupView
    from pravega_connector.monitoring.groups import group_lag as group_lag
    from pravega_connector.monitoring.groups import group_view as group_view
    from pravega_connector.monitoring.lag import Loss as Loss
    from pravega_connector.monitoring.lag import SegmentLag as SegmentLag
    from pravega_connector.monitoring.lag import StreamLag as StreamLag
    from pravega_connector.monitoring.lag import Survey as Survey
    from pravega_connector.monitoring.lag import count_events as count_events
    from pravega_connector.monitoring.lag import lost_bytes as lost_bytes
    from pravega_connector.monitoring.lag import stream_lag as stream_lag
    from pravega_connector.monitoring.lag import survey as survey
    from pravega_connector.monitoring.scaling import History as History
    from pravega_connector.monitoring.scaling import SegmentLife as SegmentLife
    from pravega_connector.monitoring.scaling import draw_history as draw_history
    from pravega_connector.monitoring.scaling import scaling_history as scaling_history
    from pravega_connector.monitoring.stream_cuts import CUT_FORMS as CUT_FORMS
    from pravega_connector.monitoring.stream_cuts import Comparison as Comparison
    from pravega_connector.monitoring.stream_cuts import Relation as Relation
    from pravega_connector.monitoring.stream_cuts import compare_cuts as compare_cuts
    from pravega_connector.monitoring.stream_cuts import cuts_of as cuts_of
    from pravega_connector.monitoring.stream_cuts import read_cut as read_cut
    from pravega_connector.monitoring.stream_cuts import segment_label as segment_label
    from pravega_connector.monitoring.stream_cuts import write_cut as write_cut
    from pravega_connector.monitoring.watch import SegmentView as SegmentView
    from pravega_connector.monitoring.watch import StreamView as StreamView
    from pravega_connector.monitoring.watch import StreamWatch as StreamWatch
    from pravega_connector.reader.positions import parse_time as parse_time
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "groups": "GroupView group_lag group_view",
            "lag": "Loss SegmentLag StreamLag Survey count_events lost_bytes stream_lag survey",
            "scaling": "History SegmentLife draw_history scaling_history",
            "stream_cuts": (
                "CUT_FORMS Comparison Relation compare_cuts cuts_of parse_time read_cut segment_label write_cut"
            ),
            "watch": "SegmentView StreamView StreamWatch",
        },
    )
