"""Unknown names of the client's classes: what users of Kafka, Pulsar, Java and Rust try first, and what is meant.

Each text is true of the client as it is; a name without a counterpart has no line here, or one that says so.
"""

from __future__ import annotations

from typing import Final

from pravega_serde import suggestions

_WRITER: Final = "write client.writer(stream, serializer)"
_ONE: Final = "write client.write(stream, value, serializer)"
_FOLLOW: Final = "write client.follow(stream, serializer), or client.read(stream, serializer) for what is there now"
_GROUPS: Final = "write client.reader_group('scope/group', streams), whose reader(id, serializer) reads"
_CONSUMER: Final = f"{_FOLLOW}; processes that share the work: client.reader_group('scope/group', streams)"
_RESET: Final = "reset(place) has the group begin again: 'earliest', a cut, 'timestamp:2026-11-21T10:00:00Z'"
_CHANGES: Final = "reset(streams=…, retention=…, checkpoint_interval=…) changes it, and has the group begin again"
_OF_THE_GROUP: Final = f"a reader has no place of its own: of the group, {_RESET}"
_COMMITS: Final = "nothing is to be committed: with each call, all that was handed out before counts as done with"
_TRANSACTIONS: Final = "write client.transactions(stream, serializer), whose begin() gives a transaction"
_OUTCOME: Final = (
    "commit(), abort(), ping() and status() are calls of a transaction: of client.transactions(stream, serializer) the "
    "one that begin() returns, or client.transaction(stream, id)"
)
_CREATE: Final = "write client.create_stream(stream, segments)"
_STREAMS: Final = "write client.streams(scope)"
_SCOPES: Final = "write client.scopes()"
_EMPTY_SCOPE: Final = "there is none; delete the streams, then client.delete_scope(scope)"
_DESCRIBE: Final = "write client.describe(stream)"
_DELETE: Final = "write client.delete_stream(stream)"
_MANAGER: Final = "the client itself has create_stream, delete_stream, streams, scopes, describe"
_METRICS: Final = (
    "pravega_connector.metrics.snapshot() has them, and connector.serve_metrics(port) shows them to Prometheus"
)
_KEEP: Final = "keep position, or publish it: client.subscriber(stream, name).publish(cut)"
_START: Final = "positions are given to begin with: client.follow(stream, serializer, start='earliest')"
_AT: Final = "write client.cut_at(stream, millis), for a stream whose writers note event times"
_STREAMS_READ: Final = "the streams are named to begin with: client.follow([stream, …], serializer)"
_WRITE: Final = "write write(value, routing_key=…)"
_DELIVERED: Final = "a writer sends by itself, and flush() waits until what was written is durable"
_EXACTLY_ONCE: Final = (
    "write client.reader_group('scope/group', streams), "
    "whose exactly_once(reader_id, serializer, to=stream) writes as well"
)
_FRAMES: Final = "write client.read_columns(stream, serializer), which has to_pandas, to_polars and to_arrow"
_KEYS: Final = (
    "Pravega's key-value tables are not supported; "
    "client.synchronizer(stream, create=…, apply=…) shares a state between processes"
)

#: Class -> name that it does not have, in snake case -> what is meant.
_MEANT: Final[dict[str, dict[str, str]]] = {
    "PravegaClient": {
        # Java
        "create_event_writer": _WRITER,
        "create_writer": _WRITER,
        "event_writer": _WRITER,
        "create_event_stream_writer": _WRITER,
        "create_reader": _FOLLOW,
        "create_event_reader": _FOLLOW,
        "reader": _FOLLOW,
        "create_reader_group": _GROUPS,
        "get_reader_group": _GROUPS,
        "reader_group_manager": _GROUPS,
        "create_transactional_writer": _TRANSACTIONS,
        "create_transactional_event_writer": _TRANSACTIONS,
        "begin_transaction": _TRANSACTIONS,
        "begin_txn": _TRANSACTIONS,
        "check_transaction_status": _OUTCOME,
        "transaction_status": _OUTCOME,
        "ping_transaction": _OUTCOME,
        "abort_txn": _OUTCOME,
        "commit_txn": _OUTCOME,
        "delete_reader_group": "write client.reader_group('scope/group').delete()",
        "list_reader_groups": "write client.reader_groups(scope)",
        "add_subscriber": "write client.subscriber(stream, name), whose publish(cut) creates it",
        "update_subscriber_stream_cut": "write client.subscriber(stream, name).publish(cut)",
        "delete_subscriber": "write client.subscriber(stream, name).remove()",
        "write_event": _ONE,
        "create_byte_stream_writer": "write client.byte_writer(stream)",
        "create_byte_writer": "write client.byte_writer(stream)",
        "create_byte_stream_reader": "write client.byte_reader(stream)",
        "create_byte_reader": "write client.byte_reader(stream)",
        "create_revisioned_stream_client": "write client.revisioned(stream, serializer)",
        "create_state_synchronizer": "write client.synchronizer(stream, create=…, apply=…)",
        "create_batch_client": "write client.read(stream, serializer, start=…, end=…)",
        "create_key_value_table": _KEYS,
        "key_value_table": _KEYS,
        "with_scope": "write PravegaClient(controller, scope=…)",
        "stream_manager": _MANAGER,
        "read_next_event": "write client.follow(stream, serializer).poll(timeout)",
        "get_stream_info": _DESCRIBE,
        "stream_info": _DESCRIBE,
        "describe_stream": _DESCRIBE,
        "get_segments": "write client.describe(stream).segments",
        "get_stream_configuration": "write client.describe(stream).config",
        "get_stream_tags": "write client.describe(stream).config.tags",
        "list_scopes": _SCOPES,
        "list_streams": _STREAMS,
        "check_scope_exists": "write client.scope_exists(scope)",
        "check_stream_exists": "write client.stream_exists(stream)",
        "truncate_stream": "write client.truncate(cut)",
        "fetch_stream_info": _DESCRIBE,
        "start_scale": "write client.scale_stream(stream, segments)",
        # Rust
        "create_stream_with_policy": "write client.create_stream(stream, ScalingPolicy.by_events(…), retention)",
        "update_stream_with_policy": "write client.update_stream(stream, segments=…, retention=…)",
        "get_head_stream_cut": "write client.head(stream)",
        "get_tail_stream_cut": "write client.tail(stream)",
        "create_stream_reader_group": _GROUPS,
        "create_transaction_writer": _TRANSACTIONS,
        "seal_scope": _EMPTY_SCOPE,
        "delete_scope_recursive": _EMPTY_SCOPE,
        # Kafka
        "producer": _WRITER,
        "consumer": _CONSUMER,
        "subscribe": _CONSUMER,
        "consumer_group": _GROUPS,
        "send_offsets_to_transaction": _EXACTLY_ONCE,
        "list_consumer_groups": "write client.reader_groups(scope)",
        "assign": _FOLLOW,
        "send": _ONE,
        "produce": _ONE,
        "init_transactions": _TRANSACTIONS,
        "abort_transaction": _OUTCOME,
        "commit_transaction": _OUTCOME,
        "poll": "write client.follow(stream, serializer).poll(timeout)",
        "consume": "write client.follow(stream, serializer).poll(timeout)",
        "seek": _START,
        "seek_to_beginning": _START,
        "commit": "keep the position of client.follow(…), or publish it: client.subscriber(stream, name).publish(cut)",
        "create_topic": _CREATE,
        "create_topics": _CREATE,
        "delete_topic": _DELETE,
        "delete_topics": _DELETE,
        "list_topics": _STREAMS,
        "topics": _STREAMS,
        "describe_topic": _DESCRIBE,
        "describe_topics": _DESCRIBE,
        "partitions_for_topic": "write client.describe(stream).segments",
        "create_partitions": "write client.scale_stream(stream, segments)",
        "delete_records": "write client.truncate(cut)",
        "beginning_offsets": "write client.head(stream)",
        "end_offsets": "write client.tail(stream)",
        "list_offsets": "write client.head(stream), or client.tail(stream)",
        "offsets_for_times": _AT,
        "lag": "write client.reader_group(name).unread_bytes(), or monitoring.stream_lag(client, cut)",
        "metrics": _METRICS,
        # data frames
        "to_pandas": _FRAMES,
        "read_pandas": _FRAMES,
        "read_arrow": _FRAMES,
        "write_batch": "write client.writer(stream, serializer).write_batch(batch)",
        "write_dataframe": "write client.writer(stream, serializer).write_batch(batch)",
        # Pulsar
        "create_producer": _WRITER,
        "get_topic_partitions": "write client.describe(stream).segments",
    },
    "EventWriter": {
        "write_event": _WRITE,
        "write_table": "write write_batch(batch) for each of table.to_batches()",
        "write_dataframe": "write write_batch(pyarrow.RecordBatch.from_pandas(frame, preserve_index=False))",
        "write_events": "write write(value, routing_key=…) for each, or write_column(events, routing_keys)",
        "write_many": "write write(value, routing_key=…) for each, or write_column(events, routing_keys)",
        "write_event_bytes": "write write(data, routing_key=…) of a writer without a serializer",
        "send": _WRITE,
        "produce": _WRITE,
        "send_and_wait": f"{_WRITE}, and flush()",
        "poll": _DELIVERED,
        "on_delivery": _DELIVERED,
        "send_offsets_to_transaction": _EXACTLY_ONCE,
        "begin": "write client.transactions(stream, serializer).begin()",
        "begin_txn": "write client.transactions(stream, serializer).begin()",
        "begin_transaction": "write client.transactions(stream, serializer).begin()",
        "commit": "flush() makes events durable; client.transactions(stream, serializer) has transactions",
        "get_config": "the settings of a writer are the arguments of client.writer",
        "metrics": _METRICS,
    },
    "TransactionalWriter": {
        "begin_txn": "write begin()",
        "begin_transaction": "write begin()",
        "get_txn": "write client.transaction(stream, id)",
        "get_transaction": "write client.transaction(stream, id)",
        "write": "write begin(), whose transaction has write and commit",
        "write_event": "write begin(), whose transaction has write and commit",
        "commit": "write begin(), whose transaction has write and commit",
    },
    "Transaction": {
        "write_event": _WRITE,
        "send": _WRITE,
        "txn_id": "write id",
        "get_txn_id": "write id",
        "check_status": "write status()",
        "get_status": "write status()",
        "rollback": "write abort()",
        "close": "write commit() or abort(); detach() leaves it open",
        "send_offsets_to_transaction": _EXACTLY_ONCE,
        "write": "client.transaction(stream, id) only ends a transaction: whoever began it writes to it",
    },
    "TailReader": {
        "read_next_event": "write poll(timeout)",
        "read": "write poll(timeout)",
        "receive": "write poll(timeout)",
        "get_message": "write poll(timeout)",
        "acknowledge": _KEEP,
        "consume": "write poll(timeout)",
        "seek": _START,
        "commit": _KEEP,
        "get_position": "write position",
        "get_segment_slice": "poll(timeout) gives the events of whichever segment has some",
        "unsubscribe": "write close()",
        "metrics": _METRICS,
        "values": "give a serializer: client.follow(stream, serializer) reads values",
    },
    "ValueReader": {
        "read_next_event": "write poll(timeout)",
        "consume": "write poll(timeout)",
        "getone": "write poll(timeout)",
        "getmany": "write poll(timeout)",
        "subscribe": _STREAMS_READ,
        "assign": _STREAMS_READ,
        "assignment": "it reads all segments of its streams: position has them",
        "beginning_offsets": "write client.head(stream)",
        "end_offsets": "write client.tail(stream)",
        "offsets_for_times": _AT,
        "seek": _START,
        "seek_to_beginning": _START,
        "commit": _KEEP,
        "committed": _KEEP,
        "acknowledge": _KEEP,
        "read_event": "write poll(timeout)",
        "receive": "write poll(timeout)",
        "unsubscribe": "write close()",
    },
    "ReaderGroup": {
        "lag": "write unread_bytes(); pravega-serde group lag SCOPE/GROUP has it for each stream",
        "consumer": "write reader(id, serializer)",
        "create_reader": "write reader(id, serializer)",
        "subscribe": "write reader(id, serializer), which comes into the group; reset(streams=…) has it read others",
        "update": _CHANGES,
        "update_config": _CHANGES,
        "set_config": _CHANGES,
        "add_stream": _CHANGES,
        "remove_stream": _CHANGES,
        "commit": "checkpoint(name) has all readers take one; it is done by itself every checkpoint_interval seconds",
        "initiate_checkpoint": "write checkpoint(name)",
        "get_current_time_window": "write time_window(stream)",
        "generate_stream_cuts": "write stream_cuts()",
        "get_stream_cuts": "write stream_cuts()",
        "reset_reader_group": f"{_RESET}; streams=… and other settings as for client.reader_group",
        "reset_readers_to_checkpoint": _RESET,
        "reset_offsets": _RESET,
        "seek": _RESET,
        "seek_to_beginning": _RESET,
        "list_members": "write online_readers(), or state",
        "describe": "write state, or config",
        "get_metrics": "write unread_bytes()",
        "update_retention_stream_cut": "write update_retention_cut(cuts)",
    },
    "GroupReader": {
        "read_next_event": "write poll(timeout)",
        "read": "write poll(timeout)",
        "consume": "write poll(timeout)",
        "commit": _COMMITS,
        "acknowledge": _COMMITS,
        "receive": "write poll(timeout)",
        "getone": "write poll(timeout)",
        "getmany": "write poll(timeout)",
        "assignment": "write position, which has the segments that it owns",
        "seek": _OF_THE_GROUP,
        "seek_to_beginning": _OF_THE_GROUP,
        "subscribe": "the group's streams are named by client.reader_group(name, streams)",
        "unsubscribe": "write close()",
        "get_current_time_window": "the group has it: group.time_window(stream)",
    },
    "StreamCut": {
        "as_text": "write to_text()",
        "as_impl": "its positions are a mapping: positions",
        "from_": "write StreamCut.from_text(text)",
        "parse": "write StreamCut.from_text(text)",
        "from_string": "write StreamCut.from_text(text)",
        "unbounded": "leave start or end out, or say 'earliest' or 'latest'",
        "get_positions": "write positions",
        "offsets": "write positions",
    },
    "ScalingPolicy": {
        "by_event_rate": "write by_events(rate, factor, min_segments)",
        "auto_scale_event_count": "write by_events(rate, factor, min_segments)",
        "by_data_rate": "write by_kbytes(rate, factor, min_segments)",
        "auto_scale_data_rate": "write by_kbytes(rate, factor, min_segments)",
        "fixed_scaling_policy": "write fixed(segments)",
    },
    "RetentionPolicy": {
        "by_size_bytes": "write by_size(size)",
        "by_age": "write by_time(ms)",
        "none": "write None instead of a policy",
    },
    "StreamName": {
        "of": "write StreamName(scope, stream) or StreamName.parse('scope/stream')",
        "scoped_name": "write str(name)",
        "name": "write stream",
        "stream_name": "write stream",
        "from_string": "write StreamName.parse('scope/stream')",
    },
    "PravegaConfig": {
        "builder": "write PravegaConfig(controller=…, username=…, password=…)",
        "build": "write PravegaConfig(controller=…, username=…, password=…)",
        "controller_uri": "write controller",
        "uri": "write controller",
        "default_scope": "write scope",
        "with_default_scope": "write with_scope(scope)",
        "with_username": "write with_credentials(username, password)",
        "with_password": "write with_credentials(username, password)",
        "with_user": "write with_credentials(username, password)",
        "credentials": "write with_credentials(username, password) or with_token(token)",
        "to_dict": "write options()",
    },
}


class HintedNames(suggestions.HintedNames):
    """Base of the client's classes: their unknown names are told what they are called here."""

    __slots__ = ()

    _meant = _MEANT
