"""What can be told of a stream and of those who read it: lag, losses, history. No Spark is needed."""

from connector.insight._lag import SegmentLag, StreamLag, count_events, stream_lag
from connector.insight._losses import Loss, Survey, lost_bytes, survey

__all__ = [
    "Loss",
    "SegmentLag",
    "StreamLag",
    "Survey",
    "count_events",
    "lost_bytes",
    "stream_lag",
    "survey",
]
