"""Unknown names of the client's classes: methods of the clients of Kafka, Pulsar, Java and Rust, and what is meant.

The tests resolve each call in the texts. Only objects give hints, so factories of a class have no line here.
"""

from __future__ import annotations

from typing import Final

from pravega_serde import suggestions

_WRITER: Final = "write client.writer(stream, serializer)"
_ONE: Final = "write client.write(stream, value, serializer)"
_FOLLOW: Final = (
    "write client.follow(stream, serializer), or client.read(stream, serializer) for the events up to the current tail"
)
_GROUPS: Final = "write client.reader_group('scope/group', streams), whose reader(id, serializer) reads"
_CONSUMER: Final = f"{_FOLLOW}; to share the work among processes: client.reader_group('scope/group', streams)"
_RESET: Final = "reset(place) restarts the group at a position: 'earliest', a cut, 'timestamp:2026-11-21T10:00:00Z'"
_TRANSACTIONS: Final = (
    "write client.transactions(stream, serializer); its begin() returns a transaction. For several streams, write "
    "client.transaction_over([stream, …], serializer, ledger=…, app_id=…)"
)
_OUTCOME: Final = (
    "commit(), abort(), ping() and status() are methods of a transaction, which begin() of "
    "client.transactions(stream, serializer) returns, or client.transaction(stream, id)"
)
_METRICS: Final = (
    "pravega_connector.metrics.snapshot() returns the metrics, and pravega_connector.serve_metrics(port) serves them "
    "to Prometheus"
)
_KEEP: Final = "save position, or publish it: client.subscriber(stream, name).publish(cut)"
_START: Final = "set the position when you create the reader: client.follow(stream, serializer, start='earliest')"
_AT: Final = "write client.cut_at(stream, millis), for a stream whose writers note event times"
_WRITE: Final = "write write(value, routing_key=…)"
_EXACTLY_ONCE: Final = (
    "write client.reader_group('scope/group', streams), "
    "whose exactly_once(reader_id, serializer, to=stream) writes as well"
)
_TABLE: Final = "write client.create_table(table, primary_key=8), and client.table(table, key=…, value=…)"
_POLL: Final = "write poll(timeout)"
_BEGIN: Final = "write client.transactions(stream, serializer).begin()"

#: Class -> names that it does not have, in snake case, separated by blanks -> what is meant.
_MEANT: Final[dict[str, dict[str, str]]] = {
    "PravegaClient": {
        "create_event_writer create_writer create_producer producer": _WRITER,
        "create_reader assign": _FOLLOW,
        "consumer subscribe": _CONSUMER,
        "create_reader_group get_reader_group create_stream_reader_group consumer_group": _GROUPS,
        "create_transactional_writer create_transactional_event_writer create_transaction_writer": _TRANSACTIONS,
        "begin_transaction init_transactions": _TRANSACTIONS,
        "check_transaction_status ping_transaction abort_transaction commit_transaction": _OUTCOME,
        "delete_reader_group": "write client.reader_group('scope/group').delete()",
        "list_consumer_groups": "write client.reader_groups(scope)",
        "update_subscriber_stream_cut": "write client.subscriber(stream, name).publish(cut)",
        "write_event send produce": _ONE,
        "create_byte_stream_writer create_byte_writer": "write client.byte_writer(stream)",
        "create_byte_stream_reader create_byte_reader": "write client.byte_reader(stream)",
        "create_byte_stream": "write client.byte_writer(stream), or client.byte_reader(stream)",
        "create_revisioned_stream_client": "write client.revisioned(stream, serializer)",
        "create_state_synchronizer": "write client.synchronizer(stream, create=…, apply=…)",
        "create_key_value_table for_key_value_table key_value_table": _TABLE,
        "list_key_value_tables": "write client.tables(scope)",
        "delete_key_value_table": "write client.delete_table(table)",
        "get_key_value_table_configuration": "write client.table_config(table)",
        "with_scope": "write PravegaClient(controller, scope=…)",
        "stream_manager": "the client itself has create_stream, delete_stream, streams, scopes, describe",
        "read_next_event poll consume": "write client.follow(stream, serializer).poll(timeout)",
        "fetch_event": "write client.fetch(pointer, serializer)",
        "stream_info fetch_stream_info describe_stream describe_topics": "write client.describe(stream)",
        "get_segments get_topic_partitions partitions_for_topic": "write client.describe(stream).segments",
        "get_stream_configuration": "write client.describe(stream).config",
        "get_stream_tags": "write client.describe(stream).config.tags",
        "list_scopes": "write client.scopes()",
        "list_streams list_topics topics": "write client.streams(scope)",
        "check_scope_exists": "write client.scope_exists(scope)",
        "check_stream_exists": "write client.stream_exists(stream)",
        "create_topics": "write client.create_stream(stream, segments)",
        "create_stream_with_policy": "write client.create_stream(stream, ScalingPolicy.by_events(…), retention)",
        "update_stream_with_policy": "write client.update_stream(stream, segments=…, retention=…)",
        "start_scale create_partitions": "write client.scale_stream(stream, segments)",
        "truncate_stream delete_records": "write client.truncate(cut)",
        "delete_topics": "write client.delete_stream(stream)",
        "delete_scope_recursive": "write client.delete_scope(scope, recursive=True)",
        "seal_scope": "not supported; client.delete_scope(scope, recursive=True) deletes its streams and the scope",
        "get_head_stream_cut beginning_offsets": "write client.head(stream)",
        "get_tail_stream_cut end_offsets": "write client.tail(stream)",
        "list_offsets": "write client.head(stream), or client.tail(stream)",
        "offsets_for_times": _AT,
        "send_offsets_to_transaction": _EXACTLY_ONCE,
        "seek seek_to_beginning": _START,
        "commit": "save the position of client.follow(…), or publish it: client.subscriber(stream, name).publish(cut)",
        "lag": "write client.reader_group(name).unread_bytes(), or monitoring.stream_lag(client, cut)",
        "metrics": _METRICS,
        "to_pandas": "write client.read_columns(stream, serializer), which has to_pandas, to_polars and to_arrow",
        "write_batch": "write client.writer(stream, serializer).write_batch(batch)",
    },
    "EventWriter": {
        "write_event send produce": _WRITE,
        "write_events": "write write_all(values, routing_key), which is one step",
        "write_many": f"{_WRITE} for each, or write_all(values, routing_key) for one step",
        "write_event_bytes": "write write(data, routing_key=…) of a writer without a serializer",
        "send_and_wait": f"{_WRITE}, and flush()",
        "poll": "a writer sends in the background, and flush() waits until the written events are durable",
        "send_offsets_to_transaction": _EXACTLY_ONCE,
        "begin_txn begin_transaction": _BEGIN,
        "commit_transaction": "flush() makes events durable; client.transactions(stream, serializer) has transactions",
        "get_config": "pass the settings of a writer as arguments to client.writer",
        "metrics": _METRICS,
    },
    "TransactionalWriter": {
        "begin_txn begin_transaction": "write begin()",
        "get_txn": "write join(id) for more events, or client.transaction(stream, id) to commit or abort it",
        "write write_event commit": "write begin(); its transaction has write and commit",
    },
    "Transaction": {
        "write_event": _WRITE,
        "get_txn_id": "write id",
        "check_status": "write status()",
        "close": "write commit() or abort(); detach() leaves it open",
        "write": "write client.transactions(stream, serializer).join(id), which accepts events",
    },
    "StreamsTransaction": {
        "write_event send produce": "write write(stream, value, routing_key=…)",
        "commit_transaction": "write commit()",
        "abort_transaction": "write abort()",
        "close": "write commit() or abort()",
        "status check_status": "the version of the next transaction shows it: client.transaction_over(…).version",
    },
    "TailReader": {
        "read_next_event receive consume": _POLL,
        "acknowledge commit": _KEEP,
        "seek": _START,
        "get_segment_slice_async": "poll(timeout) returns the events of any segment that has some",
        "unsubscribe": "write close()",
        "metrics": _METRICS,
        "values": "pass a serializer: client.follow(stream, serializer) reads values",
    },
    "ValueReader": {
        "read_next_event receive consume getone getmany": _POLL,
        "subscribe assign": "set the streams when you create the reader: client.follow([stream, …], serializer)",
        "assignment": "the reader reads all segments of its streams, which position lists",
        "beginning_offsets": "write client.head(stream)",
        "end_offsets": "write client.tail(stream)",
        "offsets_for_times": _AT,
        "seek seek_to_beginning": _START,
        "acknowledge commit committed": _KEEP,
        "unsubscribe": "write close()",
    },
    "ReaderGroup": {
        "lag": "write unread_bytes(); pravega-serde group lag SCOPE/GROUP has it for each stream",
        "create_reader": "write reader(id, serializer)",
        "add_stream": "reset(streams=…, retention=…, checkpoint_interval=…) changes the group and restarts it",
        "initiate_checkpoint": "write checkpoint(name)",
        "generate_stream_cuts": "write stream_cuts()",
        "get_stream_cuts": "write reported_cuts(), or stream_cuts() to wait for all readers",
        "get_reader_segment_distribution": "write segment_distribution()",
        "get_segment_notifier get_end_of_data_notifier": "write watch(interval), which yields each change",
        "reset_reader_group": f"{_RESET}; streams=… and other settings as for client.reader_group",
        "reset_readers_to_checkpoint": _RESET,
        "get_metrics": "write unread_bytes()",
        "update_retention_stream_cut": "write update_retention_cut(cuts)",
    },
    "GroupReader": {
        "read_next_event receive consume getone getmany": _POLL,
        "acknowledge commit": "no commit is needed: each call marks the events returned before it as processed",
        "assignment": "write position, which has the segments that the reader owns",
        "seek seek_to_beginning": f"a reader has no separate position; on the group, {_RESET}",
        "subscribe": "set the group's streams with client.reader_group(name, streams)",
        "unsubscribe": "write close()",
        "fetch_event": "use the client: client.fetch(pointer, serializer)",
        "get_current_time_window": "use the group: group.time_window(stream)",
    },
    "Table": {
        "iterator scan items": "write entries(), or keys()",
        "put_if_absent": "write insert(key, value)",
        "replace compare_and_set": "write put(key, value, version)",
        "delete": "write remove(key)",
        "put_all insert_all remove_all": "write update(changes), for entries of one primary key",
        "close": "not needed: a table uses the connections of its client",
    },
    "StreamCut": {
        "as_text": "write to_text()",
        "as_impl": "write positions, a mapping from stream to position",
    },
    "EventPointer": {
        "as_impl": "write stream, segment_id, offset, length",
    },
    "StreamName": {
        "scoped_name": "write str(name)",
        "stream_name": "write stream",
    },
    "PravegaConfig": {
        "controller_uri": "write controller",
        "credentials": "write with_credentials(username, password) or with_token(token)",
    },
}


class HintedNames(suggestions.HintedNames):
    """Base of the client's classes: the error about an unknown name has its counterpart in this project."""

    __slots__ = ()

    _meant = _MEANT
