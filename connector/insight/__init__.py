"""What can be told of a stream and of those who read it: lag, losses, history. No Spark is needed."""

from connector.insight._compare import Comparison, Relation, compare_cuts
from connector.insight._cut_text import CUT_FORMS, cuts_of, parse_time, read_cut, segment_label, write_cut
from connector.insight._history import History, SegmentLife, scaling_history
from connector.insight._lag import SegmentLag, StreamLag, count_events, stream_lag
from connector.insight._losses import Loss, Survey, lost_bytes, survey
from connector.insight._picture import draw_history
from connector.insight._watch import SegmentView, StreamView, StreamWatch

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
