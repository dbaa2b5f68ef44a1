"""Values as the controller's messages, and back."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from typing import Final

from connector.client._policies import (
    MAX_LONG,
    RetentionKind,
    RetentionPolicy,
    ScalingKind,
    ScalingPolicy,
    StreamConfig,
)
from connector.client._proto import controller_pb2 as pb
from connector.wire import MARK_PREFIX, SegmentRange, StreamCut, StreamName, validate_scope_name

_SCALING: Final[dict[ScalingKind, pb.ScalingPolicy.ScalingPolicyType]] = {
    "fixed": pb.ScalingPolicy.FIXED_NUM_SEGMENTS,
    "events": pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC,
    "kbytes": pb.ScalingPolicy.BY_RATE_IN_KBYTES_PER_SEC,
}
_RETENTION: Final[dict[RetentionKind, pb.RetentionPolicy.RetentionPolicyType]] = {
    "time": pb.RetentionPolicy.TIME,
    "size": pb.RetentionPolicy.SIZE,
}
_SCALING_KINDS: Final = {number: kind for kind, number in _SCALING.items()}
_RETENTION_KINDS: Final = {number: kind for kind, number in _RETENTION.items()}


def named(scope: str, names: Iterable[str], *, internal: bool) -> list[StreamName]:
    """Names as values, sorted. The watermarks of an internal stream (``_MARK_RGgroup``) have none a client may say."""
    shown = (n for n in names if not n.startswith("_") or (internal and not n.startswith(f"{MARK_PREFIX}_")))
    return [StreamName(scope, name) for name in sorted(shown)]


def scope_message(scope: str) -> pb.ScopeInfo:
    """A scope. Raises InvalidNameError."""
    return pb.ScopeInfo(scope=validate_scope_name(scope))


def stream_message(
    stream: StreamName, access: pb.StreamInfo.AccessOperation = pb.StreamInfo.UNSPECIFIED
) -> pb.StreamInfo:
    """A stream, and what a token that is asked for is to allow."""
    return pb.StreamInfo(scope=stream.scope, stream=stream.stream, accessOperation=access)


def stream_without_token(stream: StreamName) -> pb.StreamInfo:
    """A stream whose segments are asked for without a token for the stores.

    Otherwise the server takes the question for a writer's and refuses it to users who may only read.
    """
    return stream_message(stream, pb.StreamInfo.NONE)


def segment_message(stream: StreamName, segment_id: int) -> pb.SegmentId:
    """A segment."""
    return pb.SegmentId(streamInfo=stream_message(stream), segmentId=segment_id)


def cut_message(cut: StreamCut) -> pb.StreamCut:
    """A stream cut."""
    return pb.StreamCut(streamInfo=stream_message(cut.stream), cut=cut.positions)


def transaction_message(stream: StreamName, transaction: uuid.UUID) -> pb.TxnRequest:
    """A transaction of a stream."""
    high, low = struct.unpack(">qq", transaction.bytes)
    return pb.TxnRequest(streamInfo=stream_message(stream), txnId=pb.TxnId(highBits=high, lowBits=low))


def decode_transaction(message: pb.TxnId) -> uuid.UUID:
    """A transaction's id; as text it is the one that Java shows."""
    return uuid.UUID(bytes=struct.pack(">qq", message.highBits, message.lowBits))


def encode_config(stream: StreamName, config: StreamConfig) -> pb.StreamConfig:
    """The configuration as the controller takes it."""
    scaling, retention = config.scaling, config.retention
    return pb.StreamConfig(
        streamInfo=stream_message(stream),
        scalingPolicy=pb.ScalingPolicy(
            scaleType=_SCALING[scaling.kind],
            targetRate=scaling.target_rate,
            scaleFactor=scaling.scale_factor,
            minNumSegments=scaling.min_segments,
        ),
        retentionPolicy=None if retention is None else _encode_retention(retention),
        tags=pb.Tags(tag=config.tags) if config.tags else None,
        timestampAggregationTimeout=config.timestamp_aggregation_timeout_ms,
        rolloverSizeBytes=config.rollover_size_bytes,
    )


def _encode_retention(retention: RetentionPolicy) -> pb.RetentionPolicy:
    return pb.RetentionPolicy(
        retentionType=_RETENTION[retention.kind], retentionParam=retention.least, retentionMax=retention.most
    )


def decode_config(message: pb.StreamConfig) -> StreamConfig:
    """A stream's configuration as the controller gave it."""
    scaling, retention = message.scalingPolicy, message.retentionPolicy
    kind = _RETENTION_KINDS.get(retention.retentionType)
    return StreamConfig(
        scaling=ScalingPolicy(
            kind=_SCALING_KINDS[scaling.scaleType],
            min_segments=scaling.minNumSegments,
            target_rate=scaling.targetRate,
            scale_factor=scaling.scaleFactor,
        ),
        retention=kind
        and RetentionPolicy(
            kind=kind,
            least=retention.retentionParam,
            # Servers before 0.10 have no upper limit, and streams made then say 0.
            most=retention.retentionMax or MAX_LONG,
        ),
        tags=tuple(sorted(message.tags.tag)),
        timestamp_aggregation_timeout_ms=message.timestampAggregationTimeout,
        rollover_size_bytes=message.rolloverSizeBytes,
    )


def decode_ranges(ranges: Iterable[pb.SegmentRange]) -> list[SegmentRange]:
    """Segments and their key ranges, in the order of their ids."""
    values = (SegmentRange(r.segmentId.segmentId, r.minKey, r.maxKey) for r in ranges)
    return sorted(values, key=lambda value: value.id)
