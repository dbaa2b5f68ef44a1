"""Methods of the controller: messages, checks before the calls, and the meaning of the outcomes.

The client itself checks the conditions for which the controller would answer only FAILURE or UNKNOWN.
"""

from __future__ import annotations

import itertools
import re
import struct
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from google.protobuf.message import Message

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import QUOTED, Failure, Rpc, grpc, not_found
from pravega_connector.core.values import (
    MAX_LONG,
    RetentionKind,
    RetentionPolicy,
    ScalingKind,
    ScalingPolicy,
    StreamConfig,
    SubscriberId,
    TableConfig,
    TransactionStatus,
    status_error,
)
from pravega_connector.errors import (
    ConfigError,
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    InvalidNameError,
    LeaseRangeError,
    MalformedStreamCutError,
    StreamSealedError,
    TransactionCommittedError,
    TransactionError,
)
from pravega_connector.reader_groups import protocol
from pravega_connector.wire import (
    MARK_PREFIX,
    SegmentRange,
    StreamCut,
    StreamName,
    TableName,
    segment_name,
    validate_scope_name,
)

if TYPE_CHECKING:
    from pravega_connector.reader_groups.protocol import Bound, GroupConfig

# ---- methods ---------------------------------------------------------------------------------------------------------

# Seconds; Config.MIN_LEASE_VALUE of the controller, which can be configured.
DEFAULT_SHORTEST_LEASE: Final = 10.0


def _no_range(failure: Failure) -> ConnectorError | None:
    # The answer to an invalid range is UNKNOWN without a text, as for a failure of the controller's metadata.
    if failure.code is not grpc.StatusCode.UNKNOWN or not failure.is_well():
        return None
    return MalformedStreamCutError(
        f"the controller finds no path in {failure.target} from the start cut to the end cut: the end must not be "
        "before the start, and both must be cuts of this stream (not of a deleted stream with the same name)"
    )


def _no_such_segments(failure: Failure) -> ConnectorError | None:
    if failure.code is not grpc.StatusCode.UNKNOWN or not failure.is_well():
        return None
    return MalformedStreamCutError(f"the controller does not know the cut's segments in {failure.target}")


def _no_transaction(failure: Failure) -> ConnectorError | None:
    """Return the error for a transaction that was not created.

    A lease outside the bounds is answered with UNKNOWN and a free text with only the upper bound as a number. For a
    sealed stream the controller answers INTERNAL, as for an internal failure, so the caller must check the stream.
    """
    target, said = failure.target, failure.said
    if failure.code is grpc.StatusCode.INTERNAL:
        return ControllerFailureError(f"the controller could not begin a transaction on {target}: {said[:QUOTED]}")
    if failure.code is not grpc.StatusCode.UNKNOWN or "lease" not in said:
        return None
    bound = re.search(r"max value is (\d+)", said)
    if bound is None:
        return LeaseRangeError(
            f"the controller refuses the lease for a transaction on {target}: it is shorter than the server's minimum "
            f"({DEFAULT_SHORTEST_LEASE:g} s by default, controller.transaction.lease.count.min)"
        )
    longest = int(bound[1]) / 1000
    return LeaseRangeError(
        f"the controller refuses the lease for a transaction on {target}: it is longer than {longest:g} s, the "
        "server's maximum (controller.transaction.lease.count.max)",
        longest=longest,
    )


ABORT_TRANSACTION: Final = Rpc("abortTransaction", pb.TxnRequest, pb.TxnStatus)
CHECK_SCALE: Final = Rpc("checkScale", pb.ScaleStatusRequest, pb.ScaleStatusResponse)
# A repeat during the first commit leaves a second entry in the order of commits, so the status is polled first.
COMMIT_TRANSACTION: Final = Rpc("commitTransaction", pb.TxnRequest, pb.TxnStatus, repeatable=False)
CREATE_READER_GROUP: Final = Rpc(
    "createReaderGroup", pb.ReaderGroupConfiguration, pb.CreateReaderGroupResponse, works=True
)
CREATE_SCOPE: Final = Rpc("createScope", pb.ScopeInfo, pb.CreateScopeStatus, works=True)
CREATE_STREAM: Final = Rpc("createStream", pb.StreamConfig, pb.CreateStreamStatus, works=True)
CREATE_TABLE: Final = Rpc("createKeyValueTable", pb.KeyValueTableConfig, pb.CreateKeyValueTableStatus, works=True)
# A repeat after a lost answer begins another transaction. The id of the first is lost, and its lease expires.
CREATE_TRANSACTION: Final = Rpc(
    "createTransaction", pb.CreateTxnRequest, pb.CreateTxnResponse, works=True, verdict=_no_transaction
)
CURRENT_SEGMENTS: Final = Rpc("getCurrentSegments", pb.StreamInfo, pb.SegmentRanges)
CUT_VALID: Final = Rpc("isStreamCutValid", pb.StreamCut, pb.StreamCutValidityResponse, verdict=_no_such_segments)
DELEGATION_TOKEN: Final = Rpc("getDelegationToken", pb.StreamInfo, pb.DelegationToken)
DELETE_READER_GROUP: Final = Rpc("deleteReaderGroup", pb.ReaderGroupInfo, pb.DeleteReaderGroupStatus, works=True)
DELETE_SCOPE: Final = Rpc("deleteScope", pb.ScopeInfo, pb.DeleteScopeStatus, works=True)
DELETE_STREAM: Final = Rpc("deleteStream", pb.StreamInfo, pb.DeleteStreamStatus, works=True)
DELETE_TABLE: Final = Rpc("deleteKeyValueTable", pb.KeyValueTableInfo, pb.DeleteKVTableStatus, works=True)
EPOCH_SEGMENTS: Final = Rpc("getEpochSegments", pb.GetEpochSegmentsRequest, pb.SegmentRanges)
GROUP_CONFIG: Final = Rpc("getReaderGroupConfig", pb.ReaderGroupInfo, pb.ReaderGroupConfigResponse)
LIST_SCOPES: Final = Rpc("listScopes", pb.ScopesRequest, pb.ScopesResponse)
LIST_STREAMS: Final = Rpc("listStreamsInScope", pb.StreamsInScopeRequest, pb.StreamsInScopeResponse)
LIST_STREAMS_WITH_TAG: Final = Rpc(
    "listStreamsInScopeForTag", pb.StreamsInScopeWithTagRequest, pb.StreamsInScopeResponse
)
LIST_TABLES: Final = Rpc("listKeyValueTablesInScope", pb.KVTablesInScopeRequest, pb.KVTablesInScopeResponse)
NOTE_TIMESTAMP: Final = Rpc("noteTimestampFromWriter", pb.TimestampFromWriter, pb.TimestampResponse)
PING_TRANSACTION: Final = Rpc("pingTransaction", pb.PingTxnRequest, pb.PingTxnStatus)
REMOVE_WRITER: Final = Rpc("removeWriter", pb.RemoveWriterRequest, pb.RemoveWriterResponse)
# A repeat after it took effect would be refused, because its segments are sealed by then.
SCALE: Final = Rpc("scale", pb.ScaleRequest, pb.ScaleResponse, repeatable=False, works=True)
SCOPE_EXISTS: Final = Rpc("checkScopeExists", pb.ScopeInfo, pb.ExistsResponse)
SEAL_STREAM: Final = Rpc("sealStream", pb.StreamInfo, pb.UpdateStreamStatus, works=True)
SEGMENTS_AT: Final = Rpc("getSegments", pb.GetSegmentsRequest, pb.SegmentsAtTime)
SEGMENTS_BETWEEN: Final = Rpc("getSegmentsBetween", pb.StreamCutRange, pb.StreamCutRangeResponse, verdict=_no_range)
STREAM_CONFIG: Final = Rpc("getStreamConfiguration", pb.StreamInfo, pb.StreamConfig)
STREAM_EXISTS: Final = Rpc("checkStreamExists", pb.StreamInfo, pb.ExistsResponse)
SUBSCRIBERS: Final = Rpc("listSubscribers", pb.StreamInfo, pb.SubscribersResponse)
SUCCESSORS: Final = Rpc("getSegmentsImmediatelyFollowing", pb.SegmentId, pb.SuccessorResponse)
TABLE_CONFIG: Final = Rpc("getKeyValueTableConfiguration", pb.KeyValueTableInfo, pb.KeyValueTableConfigResponse)
TABLE_SEGMENTS: Final = Rpc("getCurrentSegmentsKeyValueTable", pb.KeyValueTableInfo, pb.SegmentRanges)
TRANSACTION_STATE: Final = Rpc("checkTransactionState", pb.TxnRequest, pb.TxnState)
TRUNCATE_STREAM: Final = Rpc("truncateStream", pb.StreamCut, pb.UpdateStreamStatus, works=True)
UPDATE_READER_GROUP: Final = Rpc(
    "updateReaderGroup", pb.ReaderGroupConfiguration, pb.UpdateReaderGroupResponse, works=True
)
UPDATE_STREAM: Final = Rpc("updateStream", pb.StreamConfig, pb.UpdateStreamStatus, works=True)
UPDATE_SUBSCRIBER: Final = Rpc("updateSubscriberStreamCut", pb.SubscriberStreamCut, pb.UpdateSubscriberStatus)
URI: Final = Rpc("getURI", pb.SegmentId, pb.NodeUri)


# ---- outcomes --------------------------------------------------------------------------------------------------------


class _Enum(Protocol):
    def Name(self, number: int) -> str: ...  # noqa: N802 - protobuf's name


# Successful outcomes, and True if something was changed. An outcome has the same meaning in every message.
_DONE: Final = {
    "SUCCESS": True,
    "STARTED": True,
    "SCOPE_EXISTS": False,
    "STREAM_EXISTS": False,
    "TABLE_EXISTS": False,
}
_REFUSED: Final[dict[str, tuple[type[ConnectorError], str]]] = {
    "FAILURE": (ControllerFailureError, "the controller failed"),
    "PRECONDITION_FAILED": (
        ControllerError,
        (
            "another client is scaling the stream, or the stream would have fewer segments than its scaling policy "
            "requires"
        ),
    ),
    "INVALID_SCOPE_NAME": (InvalidNameError, "the controller refuses this name"),
    "INVALID_STREAM_NAME": (InvalidNameError, "the controller refuses this name"),
    "INVALID_RG_NAME": (InvalidNameError, "the controller refuses this name"),
    "INVALID_TABLE_NAME": (InvalidNameError, "the controller refuses this name"),
    "RG_NOT_FOUND": (ControllerError, "the reader group does not exist"),
    "INVALID_CONFIG": (ControllerError, "another process has changed the reader group"),
    "SUBSCRIBER_NOT_FOUND": (ControllerError, "the stream has no such subscriber"),
    "STREAM_CUT_NOT_VALID": (ControllerError, "a later position was already published under that name"),
    "GENERATION_MISMATCH": (ControllerError, "another process has changed the reader group"),
    "SCOPE_NOT_EMPTY": (ControllerError, "it has streams or tables; seal and delete them first"),
    "STREAM_NOT_SEALED": (ControllerError, "it is not sealed; seal it first"),
    "STREAM_SEALED": (StreamSealedError, "it is sealed"),
    "INVALID_INPUT": (ControllerError, "the controller does not know of it"),
    "INTERNAL_ERROR": (ControllerFailureError, "the controller failed"),
}


def outcome(enum: _Enum, number: int, action: str, target: StreamName | TableName | str) -> bool:
    """Return True if the call changed something. Raises for a refusal and for a failure that may be transient."""
    try:
        name = enum.Name(number)
    except ValueError:  # proto3 passes the numbers of a newer server on
        name = f"status {number}"
    if name in _DONE:
        return _DONE[name]
    scope = target if isinstance(target, str) else target.scope
    if name == "SCOPE_NOT_FOUND":
        raise not_found(scope)
    if name in ("STREAM_NOT_FOUND", "TABLE_NOT_FOUND"):
        raise not_found(target)
    error, reason = _REFUSED.get(name, (ControllerError, f"the controller answered {name}"))
    raise error(f"cannot {action} {target}: {reason}")


def failed(response: Message) -> bool:
    """Return True if the outcome in an answer is an internal failure of the controller, which may be transient."""
    for field in response.DESCRIPTOR.fields:
        if field.enum_type is not None and field.name in ("status", "result"):
            value = field.enum_type.values_by_number.get(getattr(response, field.name))
            return value is not None and value.name in ("FAILURE", "INTERNAL_ERROR")
    return False


def ping_error(
    status: int, stream: StreamName, transaction: uuid.UUID, lease_ms: int
) -> TransactionError | ControllerError:
    """Return the error for a ping with this status as its answer."""
    statuses = pb.PingTxnStatus
    where = f"transaction {transaction} of stream {stream}"
    match status:
        case statuses.COMMITTED:
            return TransactionCommittedError(f"cannot ping {where}: it is committed, or about to be")
        case statuses.ABORTED:
            return status_error(TransactionStatus.ABORTED, "ping", stream, transaction)
        case statuses.UNKNOWN:
            return status_error(TransactionStatus.UNKNOWN, "ping", stream, transaction)
        case statuses.LEASE_TOO_LARGE:
            return LeaseRangeError(
                f"cannot ping {where}: a lease of {lease_ms / 1000:g} s is longer than the server's maximum "
                "(controller.transaction.lease.count.max, 600 s by default)"
            )
        case statuses.MAX_EXECUTION_TIME_EXCEEDED | statuses.SCALE_GRACE_TIME_EXCEEDED:
            return LeaseRangeError(
                f"cannot ping {where}: another {lease_ms / 1000:g} s would exceed its maximum lifetime (1,000 times "
                "its first lease, at most a day); commit it before its current lease ends"
            )
        case _:
            return ControllerError(f"cannot ping {where}: the controller answered status {status}")


# ---- messages --------------------------------------------------------------------------------------------------------

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
    """Return the stream names, sorted.

    The watermarks of an internal stream (``_MARK_RGgroup``) are left out, because clients may not use their names.
    """
    shown = (n for n in names if not n.startswith("_") or (internal and not n.startswith(f"{MARK_PREFIX}_")))
    return [StreamName(scope, name) for name in sorted(shown)]


def scope_message(scope: str) -> pb.ScopeInfo:
    """Return the message of a scope. Raises InvalidNameError."""
    return pb.ScopeInfo(scope=validate_scope_name(scope))


def stream_message(
    stream: StreamName, access: pb.StreamInfo.AccessOperation = pb.StreamInfo.UNSPECIFIED
) -> pb.StreamInfo:
    """Return the message of a stream, with the access for a requested token.

    Raises InvalidNameError for a text. Only the client's own methods parse names.
    """
    if not isinstance(stream, StreamName):
        raise InvalidNameError(
            f"the controller's methods take a StreamName, not {stream!r}: write client.name({stream!r})"
        )
    return pb.StreamInfo(scope=stream.scope, stream=stream.stream, accessOperation=access)


def stream_without_token(stream: StreamName) -> pb.StreamInfo:
    """Return the message of a stream, to request its segments without a token for the segment stores.

    Otherwise the server treats the request as a writer's, and refuses it to users with only read permission.
    """
    return stream_message(stream, pb.StreamInfo.NONE)


def segment_message(stream: StreamName, segment_id: int) -> pb.SegmentId:
    """Return the message of a segment."""
    return pb.SegmentId(streamInfo=stream_message(stream), segmentId=segment_id)


def cut_message(cut: StreamCut) -> pb.StreamCut:
    """Return the message of a stream cut."""
    return pb.StreamCut(streamInfo=stream_message(cut.stream), cut=cut.positions)


def scale_message(stream: StreamName, seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> pb.ScaleRequest:
    """Return the message of a scaling that begins now."""
    return pb.ScaleRequest(
        streamInfo=stream_message(stream),
        sealedSegments=seal,
        newKeyRanges=[pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in ranges],
        scaleTimestamp=time.time_ns() // 1_000_000,
    )


def time_message(writer_id: str, position: StreamCut, millis: int) -> pb.TimestampFromWriter:
    """Return the message of the event time that a writer has reached at a position."""
    return pb.TimestampFromWriter(writer=writer_id, position=cut_message(position), timestamp=check_millis(millis))


def transaction_message(
    stream: StreamName, transaction: uuid.UUID, noted: tuple[str, int] | None = None
) -> pb.TxnRequest:
    """Return the message of a transaction, with the writer and event time that a commit notes."""
    high, low = struct.unpack(">qq", transaction.bytes)
    request = pb.TxnRequest(streamInfo=stream_message(stream), txnId=pb.TxnId(highBits=high, lowBits=low))
    if noted is not None:
        request.writerId, request.timestamp = noted[0], check_millis(noted[1])
    return request


def ping_message(stream: StreamName, transaction: uuid.UUID, lease_ms: int) -> pb.PingTxnRequest:
    """Return the message of a ping for a lease of ``lease_ms`` milliseconds."""
    which = transaction_message(stream, transaction)
    return pb.PingTxnRequest(streamInfo=which.streamInfo, txnId=which.txnId, lease=check_lease(lease_ms))


def decode_transaction(message: pb.TxnId) -> uuid.UUID:
    """Return the id of a transaction. Its text is the one that Java shows."""
    return uuid.UUID(bytes=struct.pack(">qq", message.highBits, message.lowBits))


def encode_config(stream: StreamName, config: StreamConfig) -> pb.StreamConfig:
    """Return the message of a stream's configuration."""
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
    """Return a stream's configuration from the controller's message."""
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
            # Servers before 0.10 have no upper limit, and their streams have 0.
            most=retention.retentionMax or MAX_LONG,
        ),
        tags=tuple(sorted(message.tags.tag)),
        timestamp_aggregation_timeout_ms=message.timestampAggregationTimeout,
        rollover_size_bytes=message.rolloverSizeBytes,
    )


def table_message(table: TableName) -> pb.KeyValueTableInfo:
    """Return the message of a key-value table."""
    return pb.KeyValueTableInfo(scope=table.scope, kvtName=table.table)


def encode_table(table: TableName, config: TableConfig) -> pb.KeyValueTableConfig:
    """Return the message of a key-value table's configuration."""
    return pb.KeyValueTableConfig(
        scope=table.scope,
        kvtName=table.table,
        partitionCount=config.partitions,
        primaryKeyLength=config.primary_key,
        secondaryKeyLength=config.secondary_key,
        rolloverSizeBytes=config.rollover_size_bytes,
    )


def decode_table(message: pb.KeyValueTableConfig) -> TableConfig:
    """Return a key-value table's configuration from the controller's message."""
    return TableConfig(
        primary_key=message.primaryKeyLength,
        secondary_key=message.secondaryKeyLength,
        partitions=message.partitionCount,
        rollover_size_bytes=message.rolloverSizeBytes,
    )


def decode_ranges(ranges: Iterable[pb.SegmentRange]) -> list[SegmentRange]:
    """Return segments with their key ranges, in the order of their ids."""
    values = (SegmentRange(r.segmentId.segmentId, r.minKey, r.maxKey) for r in ranges)
    return sorted(values, key=lambda value: value.id)


_STATES: Final = {getattr(pb.TxnState, status.name): status for status in TransactionStatus}


def decode_status(answer: pb.TxnState) -> TransactionStatus:
    """Return the status of a transaction. Raises ControllerError for a state of a newer server."""
    try:
        return _STATES[answer.state]
    except KeyError:
        raise ControllerError(f"the controller answered the unknown transaction state {answer.state}") from None


def subscriber_config(stream: StreamName, made: SubscriberId | None = None) -> GroupConfig:
    """Return the configuration of a reader group that subscribes to one stream and has no readers.

    The server chooses its id.
    """
    everything = {stream: protocol.Bound()}
    config = protocol.GroupConfig(start=everything, end=everything, retention=protocol.Retention.MANUAL, generation=0)
    return config if made is None else replace(config, generation=made.generation, id=uuid.UUID(made.id))


def group_message(scope: str, group: str, config: GroupConfig) -> pb.ReaderGroupConfiguration:
    """Return the message of a reader group with its configuration."""

    def cuts(bounds: Mapping[StreamName, Bound]) -> list[pb.StreamCut]:
        return [
            pb.StreamCut(streamInfo=stream_message(stream), cut=None if bound.cut is None else bound.cut.positions)
            for stream, bound in bounds.items()
        ]

    return pb.ReaderGroupConfiguration(
        scope=scope,
        readerGroupName=group,
        groupRefreshTimeMillis=config.refresh_ms,
        automaticCheckpointIntervalMillis=config.checkpoint_ms,
        maxOutstandingCheckpointRequest=config.max_outstanding,
        retentionType=config.retention.value,
        generation=config.generation,
        readerGroupId=str(config.id),
        startingStreamCuts=cuts(config.start),
        endingStreamCuts=cuts(config.end),
    )


def decode_group(message: pb.ReaderGroupConfiguration) -> GroupConfig:
    """Return the configuration of a reader group. Raises ControllerError for a newer server's configuration."""

    def bounds(cuts: Iterable[pb.StreamCut]) -> dict[StreamName, Bound]:
        streams = ((StreamName(cut.streamInfo.scope, cut.streamInfo.stream), dict(cut.cut)) for cut in cuts)
        return {stream: protocol.Bound(StreamCut(stream, at) if at else None) for stream, at in streams}

    try:
        return protocol.GroupConfig(
            start=bounds(message.startingStreamCuts),
            end=bounds(message.endingStreamCuts),
            checkpoint_ms=message.automaticCheckpointIntervalMillis,
            refresh_ms=message.groupRefreshTimeMillis,
            max_outstanding=message.maxOutstandingCheckpointRequest,
            retention=protocol.Retention(message.retentionType),
            generation=message.generation,
            id=uuid.UUID(message.readerGroupId),
        )
    except ValueError as error:
        raise ControllerError(
            f"the controller returned a configuration of the reader group {message.scope}/{message.readerGroupName} "
            f"that this version does not know: {error}"
        ) from None


def group_info(scope: str, group: str, config: GroupConfig | None = None) -> pb.ReaderGroupInfo:
    """Return the message that identifies a reader group by name, id and generation."""
    info = pb.ReaderGroupInfo(scope=scope, readerGroup=group)
    if config is not None:
        info.readerGroupId, info.generation = str(config.id), config.generation
    return info


def decode_subscriber(config: pb.ReaderGroupConfiguration, stream: StreamName, group: str) -> SubscriberId:
    """Return the subscriber for a reader group.

    Raises ConfigError for a group with another purpose.
    """
    streams = {(cut.streamInfo.scope, cut.streamInfo.stream) for cut in config.startingStreamCuts}
    if streams != {(stream.scope, stream.stream)} or config.retentionType != pb.ReaderGroupConfiguration.MANUAL:
        raise ConfigError(
            f"the reader group {stream.scope}/{group} belongs to another application: choose another name for the "
            f"subscriber of {stream}"
        )
    return SubscriberId(group, config.readerGroupId, config.generation)


def position_message(scope: str, subscriber: SubscriberId, cut: StreamCut) -> pb.SubscriberStreamCut:
    """Return the message of a position that a subscriber, a reader group of the scope, has reached."""
    return pb.SubscriberStreamCut(
        subscriber=f"{scope}/{subscriber.group}",
        generation=subscriber.generation,
        readerGroupId=subscriber.id,
        streamCut=cut_message(cut),
    )


# ---- checks ----------------------------------------------------------------------------------------------------------

MAX_LEASE_MS: Final = 2**63 - 1  # a Java long; the server's own limit is far lower


def check_millis(millis: int) -> int:
    """Return a valid time: milliseconds in a Java long. Raises ConfigError."""
    # The smallest long means "no time" (Watermark.EMPTY, and commits without a timestamp).
    if not -MAX_LONG <= millis <= MAX_LONG:
        raise ConfigError(f"invalid time: {millis} ms does not fit into 64 bits")
    return millis


def check_lease(lease_ms: int) -> int:
    """Return a valid lease: milliseconds in a Java long. Raises ConfigError."""
    if not 0 < lease_ms <= MAX_LEASE_MS:
        raise ConfigError(f"a lease must be a positive number of milliseconds, not {lease_ms}")
    return lease_ms


# The server's tolerance between adjoining key ranges (StreamMetadataStore's check before a scaling).
KEY_TOLERANCE: Final = 1e-9


def check_order(start: StreamCut, end: StreamCut) -> None:
    """Raise MalformedStreamCutError if ``end`` is certainly before ``start``.

    Ids grow from a segment to its successors. So neither the smallest nor the largest id of a later cut is smaller.
    This does not find every case; the controller finds the rest.
    """
    if start.stream != end.stream:
        raise MalformedStreamCutError(
            f"the start is a cut of {start.stream} and the end is a cut of {end.stream}: pass two cuts of one stream"
        )
    if not start.positions or not end.positions:
        raise MalformedStreamCutError(
            f"a stream cut of {start.stream} without segments is not a bound: use the head or tail"
        )
    for segment, offset in end.positions.items():
        if offset < start.positions.get(segment, offset):
            raise _reversed(start, f"in {segment_name(start.stream, segment)}, {offset} < {start.positions[segment]}")
    if max(end.positions) < max(start.positions) or min(end.positions) < min(start.positions):
        raise _reversed(start, "its segments come before the segments of the start")


def _reversed(start: StreamCut, where: str) -> MalformedStreamCutError:
    return MalformedStreamCutError(
        f"the end cut of {start.stream} is before the start cut ({where}): swap them, or omit the end if the query "
        "of a checkpoint has read past it"
    )


def check_scaling(
    stream: StreamName, current: Sequence[SegmentRange], seal: Sequence[int], ranges: Sequence[tuple[float, float]]
) -> None:
    """Raise ConfigError unless ``ranges`` cover exactly the key ranges of the current segments ``seal``."""
    if not current:
        raise StreamSealedError(f"cannot scale stream {stream}: it is sealed")
    by_id = {segment.id: segment for segment in current}
    if not seal or len(set(seal)) != len(seal):
        raise ConfigError(f"cannot scale stream {stream}: name each segment to replace once")
    for segment in seal:
        if segment not in by_id:
            raise ConfigError(
                f"cannot scale stream {stream}: {segment_name(stream, segment)} is not one of its current segments"
            )
    for low, high in ranges:
        if not 0.0 <= low < high <= 1.0:
            raise ConfigError(f"cannot scale stream {stream}: invalid key range [{low}, {high}), not within [0, 1)")
    old = _joined([(by_id[segment].low, by_id[segment].high) for segment in seal])
    new = _joined(ranges)
    if not _covers_the_same(old, new) or _overlap(ranges):
        raise ConfigError(
            f"cannot scale stream {stream}: the new ranges must cover {_in_words(old)} exactly once, as the replaced "
            f"segments do; they are {_in_words(sorted(ranges))}"
        )


def is_scaled(current: Sequence[SegmentRange], seal: Sequence[int], ranges: Sequence[tuple[float, float]]) -> bool:
    """Return True if the current segments are the result of such a scaling."""
    if any(segment.id in seal for segment in current):
        return False
    return all(any(_same(wanted, (segment.low, segment.high)) for segment in current) for wanted in ranges)


def _joined(ranges: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged: list[tuple[float, float]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + KEY_TOLERANCE:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def _covers_the_same(old: Sequence[tuple[float, float]], new: Sequence[tuple[float, float]]) -> bool:
    return len(old) == len(new) and all(map(_same, old, new))


def _overlap(ranges: Sequence[tuple[float, float]]) -> bool:
    ordered = sorted(ranges)
    return any(before[1] > after[0] + KEY_TOLERANCE for before, after in itertools.pairwise(ordered))


def _same(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return abs(one[0] - other[0]) <= KEY_TOLERANCE and abs(one[1] - other[1]) <= KEY_TOLERANCE


def _in_words(ranges: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"[{low:g}, {high:g})" for low, high in ranges) or "none"
