"""Controller of an in-process Pravega: its gRPC interface on a loopback port, over a :class:`Cluster`."""

from __future__ import annotations

import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.methods import decode_transaction
from pravega_connector.controller.rpc import grpc
from pravega_connector.core.values import TransactionStatus
from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.tcp_ports import listen_on_free_port
from pravega_connector.testing.controller_state import Cluster, RefusedError, StreamState
from pravega_connector.wire import SegmentRange, StreamName, TableName

#: Executes a call, and returns the answer.
Do = Callable[[], Message]
#: Handles a call instead of the controller: returns an answer, or a gRPC status to fail with.
Step = Callable[[Do], "Message | grpc.StatusCode"]

_SERVICE: Final = pb.DESCRIPTOR.services_by_name["ControllerService"]
_WORKERS: Final = 16
_ASKED_FOR: Final = "asked for by the test"
_STATES: Final = {
    TransactionStatus.OPEN: pb.TxnState.OPEN,
    TransactionStatus.COMMITTING: pb.TxnState.COMMITTING,
    TransactionStatus.COMMITTED: pb.TxnState.COMMITTED,
    TransactionStatus.ABORTED: pb.TxnState.ABORTED,
}


class Controller(grpc.GenericRpcHandler):  # type: ignore[misc] # grpc has no types
    """gRPC server that answers the clients' calls. ``calls`` counts them by name."""

    def __init__(self, cluster: Cluster, accepts: Callable[[str | None], bool] | None = None) -> None:
        self.cluster, self._accepts = cluster, accepts
        self.calls: Counter[str] = Counter()
        self.away = False
        """Set it to answer no call."""
        self._rules: list[tuple[str | None, Step, int]] = []
        self._lock = threading.Lock()
        self._server = grpc.server(
            ThreadPoolExecutor(_WORKERS, "pravega-controller"),
            handlers=[self],
            options=[("grpc.so_reuseport", 0)],
        )
        self.port: int = listen_on_free_port(lambda port: self._server.add_insecure_port(f"127.0.0.1:{port}"))
        self._server.start()

    def close(self) -> None:
        """End all calls and connections."""
        self._server.stop(None).wait()

    # ---- rules ----

    def on(self, name: str | None, step: Step, times: int = 1) -> None:
        """Handle the next calls of a method with ``step(do)``; None is any method.

        Raises ConfigError for an unknown method.
        """
        if name is not None and name not in _SERVICE.methods_by_name:
            raise ConfigError(f"the controller has no method {name!r}; it has: {', '.join(_SERVICE.methods_by_name)}")
        with self._lock:
            self._rules.append((name, step, times))

    @property
    def unused_rules(self) -> int:
        """Number of times that rules still apply."""
        return sum(times for _, _, times in self._rules)

    def forget_rules(self) -> None:
        """Drop all rules. All further calls are answered normally."""
        with self._lock:
            self._rules.clear()

    def _rule_for(self, name: str) -> Step | None:
        with self._lock:
            for i, (wanted, step, times) in enumerate(self._rules):
                if wanted in (None, name):
                    self._rules[i : i + 1] = [(wanted, step, times - 1)] if times > 1 else []
                    return step
        return None

    # ---- gRPC ----

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of one call, or None for a method that the interface does not have."""
        name = handler_call_details.method.rpartition("/")[2]
        method = _SERVICE.methods_by_name.get(name)
        if method is None:
            return None

        def answer(request: Message, context: grpc.ServicerContext) -> Message:
            self.calls[name] += 1
            if self.away:
                context.abort(grpc.StatusCode.UNAVAILABLE, _ASKED_FOR)
            if self._accepts is not None and not self._accepts(
                dict(context.invocation_metadata()).get("authorization")
            ):
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "the credentials are refused")
            step = self._rule_for(name)
            try:
                found = self._do(name, request) if step is None else step(lambda: self._do(name, request))
            except RefusedError as error:
                context.abort(grpc.StatusCode[error.code], str(error))
            except InvalidNameError as error:
                context.abort(grpc.StatusCode.NOT_FOUND, str(error))
            if isinstance(found, grpc.StatusCode):
                context.abort(found, _ASKED_FOR)
            return found

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=GetMessageClass(method.input_type).FromString,
            response_serializer=GetMessageClass(method.output_type).SerializeToString,
        )

    def _do(self, name: str, request: Message) -> Message:
        with self.cluster.store.changing():
            done: Message = getattr(self, f"_{name}")(request)
            return done

    # The methods below have the names of the interface.
    # ruff: noqa: N802

    # ---- scopes ----

    def _createScope(self, request: pb.ScopeInfo) -> Message:
        return _status(pb.CreateScopeStatus, self.cluster.create_scope(request.scope))

    def _deleteScope(self, request: pb.ScopeInfo) -> Message:
        return _status(pb.DeleteScopeStatus, self.cluster.delete_scope(request.scope))

    def _checkScopeExists(self, request: pb.ScopeInfo) -> Message:
        return pb.ExistsResponse(exists=request.scope in self.cluster.scopes)

    def _listScopes(self, request: pb.ScopesRequest) -> Message:
        names, token = _page(self.cluster.scope_names(), request.continuationToken)
        return pb.ScopesResponse(scopes=names, continuationToken=token)

    # ---- streams ----

    def _createStream(self, request: pb.StreamConfig) -> Message:
        try:
            return _status(pb.CreateStreamStatus, self.cluster.create_stream(request))
        except InvalidNameError:
            return _status(pb.CreateStreamStatus, "INVALID_STREAM_NAME")

    def _checkStreamExists(self, request: pb.StreamInfo) -> Message:
        return pb.ExistsResponse(exists=_stream(request) in self.cluster.streams)

    def _listStreamsInScope(self, request: pb.StreamsInScopeRequest) -> Message:
        scope = request.scope.scope
        if scope not in self.cluster.scopes:
            return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
        names, token = _page(self.cluster.stream_names(scope), request.continuationToken)
        streams = [pb.StreamInfo(scope=scope, stream=name) for name in names]
        return pb.StreamsInScopeResponse(streams=streams, continuationToken=token)

    def _listStreamsInScopeForTag(self, request: pb.StreamsInScopeWithTagRequest) -> Message:
        scope = request.scope.scope
        if scope not in self.cluster.scopes:
            return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
        names, token = _page(self.cluster.tagged_names(scope, request.tag), request.continuationToken)
        streams = [pb.StreamInfo(scope=scope, stream=name) for name in names]
        return pb.StreamsInScopeResponse(streams=streams, continuationToken=token)

    def _getStreamConfiguration(self, request: pb.StreamInfo) -> Message:
        return self._require(request).config

    def _updateStream(self, request: pb.StreamConfig) -> Message:
        return _status(pb.UpdateStreamStatus, self.cluster.update_stream(request))

    def _truncateStream(self, request: pb.StreamCut) -> Message:
        name = self.cluster.truncate_stream(_stream(request.streamInfo), request.cut)
        return _status(pb.UpdateStreamStatus, name)

    def _sealStream(self, request: pb.StreamInfo) -> Message:
        return _status(pb.UpdateStreamStatus, self.cluster.seal_stream(_stream(request)))

    def _deleteStream(self, request: pb.StreamInfo) -> Message:
        return _status(pb.DeleteStreamStatus, self.cluster.delete_stream(_stream(request)))

    # ---- segments and their order ----

    def _getCurrentSegments(self, request: pb.StreamInfo) -> Message:
        return pb.SegmentRanges(segmentRanges=_ranges(request, self._require(request).history.current))

    def _getEpochSegments(self, request: pb.GetEpochSegmentsRequest) -> Message:
        epochs = self._require(request.streamInfo).history.epochs
        if not 0 <= request.epoch < len(epochs):
            raise RefusedError("NOT_FOUND", f"there is no epoch {request.epoch}")
        return pb.SegmentRanges(segmentRanges=_ranges(request.streamInfo, epochs[request.epoch].segments))

    def _getSegments(self, request: pb.GetSegmentsRequest) -> Message:
        info, place = request.streamInfo, pb.SegmentsAtTime.SegmentLocation
        head = self._require(info).history.head
        return pb.SegmentsAtTime(segments=[place(segmentId=_id(info, i), offset=at) for i, at in head.items()])

    def _getSegmentsImmediatelyFollowing(self, request: pb.SegmentId) -> Message:
        info, entry = request.streamInfo, pb.SuccessorResponse.SegmentEntry
        found = self._require(info).history.successors(request.segmentId)
        return pb.SuccessorResponse(
            segments=[entry(segment=_range(info, new), value=followed) for new, followed in found]
        )

    def _getSegmentsBetween(self, request: pb.StreamCutRange) -> Message:
        start, info = getattr(request, "from"), request.streamInfo  # a keyword of Python
        try:
            found = self._require(info).history.between(dict(start), dict(request.to))
        except ValueError:
            raise RefusedError("UNKNOWN") from None
        return pb.StreamCutRangeResponse(segments=[_id(info, number) for number in found])

    def _isStreamCutValid(self, request: pb.StreamCut) -> Message:
        history = self._require(request.streamInfo).history
        if not history.knows(request.cut):
            raise RefusedError("UNKNOWN")
        return pb.StreamCutValidityResponse(response=history.covers(request.cut))

    # ---- scaling ----

    def _scale(self, request: pb.ScaleRequest) -> Message:
        ranges = [(each.start, each.end) for each in request.newKeyRanges]
        name = self.cluster.scale(_stream(request.streamInfo), list(request.sealedSegments), ranges)
        history = self._require(request.streamInfo).history
        # Later calls of checkScale name the previous epoch.
        epoch = max(0, history.active.number - 1)
        return pb.ScaleResponse(status=name, segments=_ranges(request.streamInfo, history.current), epoch=epoch)

    def _checkScale(self, request: pb.ScaleStatusRequest) -> Message:
        active = self._require(request.streamInfo).history.active.number
        known = pb.ScaleStatusResponse.SUCCESS if request.epoch < active else pb.ScaleStatusResponse.INVALID_INPUT
        return pb.ScaleStatusResponse(status=known)

    # ---- transactions ----

    def _createTransaction(self, request: pb.CreateTxnRequest) -> Message:
        made = self.cluster.create_transaction(_stream(request.streamInfo), request.lease)
        high, low = struct.unpack(">qq", made.id.bytes)
        segments = _ranges(request.streamInfo, made.parents)
        return pb.CreateTxnResponse(txnId=pb.TxnId(highBits=high, lowBits=low), activeSegments=segments)

    def _commitTransaction(self, request: pb.TxnRequest) -> Message:
        noted = (request.writerId, request.timestamp) if request.writerId else None
        name = self.cluster.commit_transaction(_stream(request.streamInfo), decode_transaction(request.txnId), noted)
        return _status(pb.TxnStatus, name)

    def _abortTransaction(self, request: pb.TxnRequest) -> Message:
        name = self.cluster.abort_transaction(_stream(request.streamInfo), decode_transaction(request.txnId))
        return _status(pb.TxnStatus, name)

    def _pingTransaction(self, request: pb.PingTxnRequest) -> Message:
        which = decode_transaction(request.txnId)
        return _status(
            pb.PingTxnStatus, self.cluster.ping_transaction(_stream(request.streamInfo), which, request.lease)
        )

    def _checkTransactionState(self, request: pb.TxnRequest) -> Message:
        found = self.cluster.transaction(_stream(request.streamInfo), decode_transaction(request.txnId))
        return pb.TxnState(state=pb.TxnState.UNKNOWN if found is None else _STATES[found.status])

    # ---- event time ----

    def _noteTimestampFromWriter(self, request: pb.TimestampFromWriter) -> Message:
        times = self._require(request.position.streamInfo).times
        name = times.note(request.writer, request.timestamp, request.position.cut)
        return pb.TimestampResponse(result=name)

    def _removeWriter(self, request: pb.RemoveWriterRequest) -> Message:
        statuses = pb.RemoveWriterResponse
        stream = self.cluster.streams.get(_stream(request.stream))
        if stream is None:
            return statuses(result=statuses.STREAM_DOES_NOT_EXIST)
        known = stream.times.remove(request.writer)
        return statuses(result=statuses.SUCCESS if known else statuses.UNKNOWN_WRITER)

    # ---- reader groups ----

    def _createReaderGroup(self, request: pb.ReaderGroupConfiguration) -> Message:
        name, config = self.cluster.create_group(request)
        return pb.CreateReaderGroupResponse(status=name, config=config)

    def _updateReaderGroup(self, request: pb.ReaderGroupConfiguration) -> Message:
        name, generation = self.cluster.update_group(request)
        return pb.UpdateReaderGroupResponse(status=name, generation=generation)

    def _getReaderGroupConfig(self, request: pb.ReaderGroupInfo) -> Message:
        config = self.cluster.groups.get((request.scope, request.readerGroup))
        if config is None:
            return pb.ReaderGroupConfigResponse(status=pb.ReaderGroupConfigResponse.RG_NOT_FOUND)
        return pb.ReaderGroupConfigResponse(status=pb.ReaderGroupConfigResponse.SUCCESS, config=config)

    def _deleteReaderGroup(self, request: pb.ReaderGroupInfo) -> Message:
        return _status(pb.DeleteReaderGroupStatus, self.cluster.delete_group(request.scope, request.readerGroup))

    def _listSubscribers(self, request: pb.StreamInfo) -> Message:
        stream = self.cluster.streams.get(_stream(request))
        if stream is None:
            return pb.SubscribersResponse(status=pb.SubscribersResponse.STREAM_NOT_FOUND)
        return pb.SubscribersResponse(subscribers=sorted(stream.subscribers))

    def _updateSubscriberStreamCut(self, request: pb.SubscriberStreamCut) -> Message:
        cut = request.streamCut
        name = self.cluster.update_subscriber(_stream(cut.streamInfo), request.subscriber, request.generation, cut.cut)
        return _status(pb.UpdateSubscriberStatus, name)

    # ---- key-value tables ----

    def _createKeyValueTable(self, request: pb.KeyValueTableConfig) -> Message:
        return _status(pb.CreateKeyValueTableStatus, self.cluster.create_table(request))

    def _deleteKeyValueTable(self, request: pb.KeyValueTableInfo) -> Message:
        return _status(pb.DeleteKVTableStatus, self.cluster.delete_table(_table(request)))

    def _getKeyValueTableConfiguration(self, request: pb.KeyValueTableInfo) -> Message:
        table = self.cluster.tables.get(_table(request))
        if table is None:
            return _status(pb.KeyValueTableConfigResponse, "TABLE_NOT_FOUND")
        return pb.KeyValueTableConfigResponse(config=table.config)

    def _getCurrentSegmentsKeyValueTable(self, request: pb.KeyValueTableInfo) -> Message:
        table = self.cluster.tables.get(_table(request))
        if table is None:
            raise RefusedError("NOT_FOUND", "table not found")
        info = pb.StreamInfo(scope=request.scope, stream=request.kvtName)
        return pb.SegmentRanges(segmentRanges=_ranges(info, table.segments))

    def _listKeyValueTablesInScope(self, request: pb.KVTablesInScopeRequest) -> Message:
        scope = request.scope.scope
        if scope not in self.cluster.scopes:
            return _status(pb.KVTablesInScopeResponse, "SCOPE_NOT_FOUND")
        names, token = _page(self.cluster.table_names(scope), request.continuationToken)
        tables = [pb.KeyValueTableInfo(scope=scope, kvtName=name) for name in names]
        return pb.KVTablesInScopeResponse(kvtables=tables, continuationToken=token)

    # ---- address of the store ----

    def _getURI(self, request: pb.SegmentId) -> Message:
        host, port = self.cluster.store.endpoint
        return pb.NodeUri(endpoint=host, port=port)

    def _getDelegationToken(self, request: pb.StreamInfo) -> Message:
        return pb.DelegationToken()

    def _require(self, info: pb.StreamInfo) -> StreamState:
        return self.cluster.require(_stream(info))


def _status(message: Any, name: str) -> Message:
    made: Message = message(status=name)
    return made


def _page(names: list[str], token: pb.ContinuationToken) -> tuple[list[str], pb.ContinuationToken]:
    """Return all names as the first page, and then an empty page."""
    return ([] if token.token else names), pb.ContinuationToken(token="end")  # noqa: S106 - not a secret


def _stream(info: pb.StreamInfo) -> StreamName:
    return StreamName(info.scope, info.stream)


def _table(info: pb.KeyValueTableInfo) -> TableName:
    return TableName(info.scope, info.kvtName)


def _id(info: pb.StreamInfo, number: int) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=pb.StreamInfo(scope=info.scope, stream=info.stream), segmentId=number)


def _range(info: pb.StreamInfo, segment: SegmentRange) -> pb.SegmentRange:
    return pb.SegmentRange(segmentId=_id(info, segment.id), minKey=segment.low, maxKey=segment.high)


def _ranges(info: pb.StreamInfo, segments: Iterable[SegmentRange]) -> list[pb.SegmentRange]:
    return [_range(info, segment) for segment in segments]
