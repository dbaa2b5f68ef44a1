"""Errors of the client, the Spark source and sink, and the embedded servers.

The one-line text begins with the code, because Spark hands nothing else on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pravega_serde.errors import Fault, OutputFileError, PravegaError
from pravega_serde.public_names import unknown_names

__all__ = [
    "AppIdReusedError",
    "AuthenticationError",
    "BadRecordError",
    "ColumnTypeError",
    "ConfigError",
    "ConnectionLostError",
    "ConnectorError",
    "ControllerError",
    "ControllerFailureError",
    "ControllerUnavailableError",
    "DataLossError",
    "DeadlineExceededError",
    "DuplicateWriteError",
    "EventError",
    "EventNumberError",
    "EventTooLargeError",
    "ExactlyOnceError",
    "FencedError",
    "GroupStateError",
    "IngestError",
    "InputLostError",
    "InvalidNameError",
    "InvalidPointerError",
    "JarDownloadError",
    "JavaNotFoundError",
    "KafkaRefusedError",
    "KafkaTopicNotFoundError",
    "KafkaUnavailableError",
    "LakeTableError",
    "LeaseExpiredError",
    "LeaseRangeError",
    "LedgerFormatError",
    "LedgerMissingError",
    "LedgerTruncatedError",
    "LocalServerError",
    "LostBatchError",
    "MalformedStreamCutError",
    "NoSuchSegmentError",
    "NullEventError",
    "OutcomeUnknownError",
    "OutputFileError",
    "ProtocolError",
    "ReaderGroupError",
    "ReaderGroupNotFoundError",
    "ReaderOfflineError",
    "ReaderOnlineError",
    "ReplayDiffersError",
    "RoutingKeyError",
    "ScopeExistsError",
    "ScopeNotFoundError",
    "SegmentSealedError",
    "SegmentStoreError",
    "SegmentTruncatedError",
    "SourceChangedError",
    "SourceError",
    "SourceUnreadableError",
    "StepUndecidedError",
    "StepsStateError",
    "StoreFailureError",
    "StreamExistsError",
    "StreamNotFoundError",
    "StreamSealedError",
    "TableExistsError",
    "TableKeyOrderError",
    "TableLimitError",
    "TableNotFoundError",
    "TableVersionError",
    "TimeUnknownError",
    "TokenExpiredError",
    "TornBatchError",
    "TransactionAbortedError",
    "TransactionCommittedError",
    "TransactionError",
    "TransactionExpiredError",
    "TransactionUnknownError",
    "UnexpectedReplyError",
    "UnfinishedBatchError",
    "UnknownOptionError",
    "UnsupportedModeError",
    "VersionMismatchError",
    "WrongHostError",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)


class ConnectorError(PravegaError):
    """Base class of the errors of client, connector and tools.

    Cause: the base class; a raised error is an instance of a subclass.

    Fix: catch this class to handle errors of servers, streams and settings in one place.
    """

    code = "PRAVEGA-CONNECTOR"


class ConfigError(ConnectorError):
    """A setting, an option or an argument is invalid.

    Cause: a value is invalid, or conflicts with another setting.

    Fix: set an allowed value; the message names the setting and its values. For Spark, see docs/reference/options.md.
    For the client, see docs/reference/api/client.md. To see which source set a value, check the arguments, the
    environment and the profile.
    """

    code = "PRAVEGA-CONFIG"


class UnknownOptionError(ConfigError):
    """The name of an option is unknown.

    Cause: the name is misspelled, or another system or another component has this option.

    Fix: correct the name: the message has the nearest names, and ``pravega-serde options`` lists all options. If the
    option belongs to another component, set ``ignore_unknown_options``.
    """

    code = "PRAVEGA-UNKNOWN-OPTION"


class InvalidNameError(ConfigError):
    """The name of a scope or stream is invalid.

    Cause: the name is too long or has characters that Pravega does not allow. Or rows are for a stream that has no
    events: an internal stream of Pravega, a ledger, or another state of exactly-once writes.

    Fix: use only ASCII letters, digits, ``.`` and ``-``, and at most 255 characters. Write a stream as
    ``scope/stream``. Set a stream of events as the target of rows.
    """

    code = "PRAVEGA-INVALID-NAME"


class MalformedStreamCutError(ConfigError):
    """The text or bytes are not a stream cut of this stream.

    Cause: the stream cut was copied incompletely, or belongs to another stream.

    Fix: get a new one with ``pravega-serde cut of``, ``client.tail`` or Java's ``asText()``.
    """

    code = "PRAVEGA-MALFORMED-STREAM-CUT"


class InvalidPointerError(ConfigError):
    """No event begins at the place of an event pointer, or its text or bytes are not a pointer.

    Cause: the pointer was copied incompletely, was computed, or belongs to a deleted stream with the same name.

    Fix: use pointers from a reader, from a row of Spark (``EventPointer.of``) or from Java.
    """

    code = "PRAVEGA-EVENT-POINTER"

    @classmethod
    def of(cls, pointer: object, reason: str) -> InvalidPointerError:
        """Return the error for a pointer at which there is no event."""
        return cls(f"cannot fetch the event at {pointer}: {reason}; use a pointer of this stream as it is now")


class UnsupportedModeError(ConfigError):
    """The requested operation is not supported by this version.

    Cause: Spark or a server has an unsupported version, or the options cannot be combined.

    Fix: install Spark 4.0 or later; in Spark 3.5, use ``pyspark_pravega.read`` and ``write``. Write streams with
    ``mode("append")``. Use the option ``metadata`` only in batch reads.
    """

    code = "PRAVEGA-UNSUPPORTED-MODE"


class VersionMismatchError(ConfigError):
    """Two processes of one query have different versions of this project.

    Cause: driver and executors have different versions, or a package was replaced under a running query.

    Fix: install one version everywhere and restart the query. It resumes from its checkpoint.
    """

    code = "PRAVEGA-VERSION-MISMATCH"


class ColumnTypeError(ConfigError):
    """The columns of a DataFrame cannot be written as events.

    Cause: a column is missing, is not expected, or has a type that the format does not support.

    Fix: select the columns to write, and cast the column in the message to a type of the format. For example, write
    ``frame.withColumn("price", frame.price.cast("double"))``. ``frame.printSchema()`` shows the types.
    """

    code = "PRAVEGA-COLUMN-TYPE"


class ControllerError(ConnectorError):
    """The controller refused a call or answered with a failure.

    Cause: the controller refused a call for a reason that has no subclass.

    Fix: find the failed call in the controller's log, and fix its cause there. For a truncation, pass a cut between the
    head and the tail of the stream.
    """

    code = "PRAVEGA-CONTROLLER"
    fault: ClassVar[Fault] = "remote"


class ControllerUnavailableError(ControllerError):
    """No controller was reachable before the deadline.

    Cause: the address is wrong, the controller is down, or the network blocks the connection.

    Fix: check ``controller``, and retry when the controller is up. A client that has reached it before retries for
    ``failover_timeout``.
    """

    code = "PRAVEGA-CONTROLLER-UNAVAILABLE"
    retriable = True


class ControllerFailureError(ControllerError):
    """The controller reported an internal failure or a conflict with another client.

    Cause: a segment store or ZooKeeper is unavailable to the controller for longer than a failover takes.

    Fix: check the cluster, then retry. Nothing was changed, or the same call makes the same change.
    """

    code = "PRAVEGA-CONTROLLER-FAILURE"
    retriable = True


class AuthenticationError(ControllerError):
    """Credentials are missing or wrong, or do not permit the call.

    Cause: user, password or token are missing or wrong, or the user lacks the permission that the message names. Or a
    credential provider or Keycloak returned no credential. Or the client does not trust the server's certificate, or
    the certificate is for another host.

    Fix: set the credentials with an option, the environment or a profile. Have the permission granted
    (docs/operate/security.md lists all permissions, and describes credential providers). For a certificate, set
    ``tls_ca_file`` or ``tls_server_name``.
    """

    code = "PRAVEGA-AUTHENTICATION"
    fault = "local"


class ScopeNotFoundError(ControllerError):
    """The scope does not exist.

    Cause: the name is misspelled, the cluster is another one, or the scope was not created.

    Fix: check the name. To create the scope, use ``client.create_scope``, ``allow_create_scope`` or ``pravega-serde
    scope create``.
    """

    code = "PRAVEGA-SCOPE-NOT-FOUND"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeNotFoundError:
        """The error for a scope that was asked for."""
        return cls(f"scope {scope} does not exist: check its name, or create it first")


class ScopeExistsError(ControllerError):
    """The scope already exists.

    Cause: another program or an earlier run created the scope.

    Fix: to use the existing scope, set ``if_exists="ignore"`` or ``--exist-ok``.
    """

    code = "PRAVEGA-SCOPE-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeExistsError:
        """The error for a scope that was to be created."""
        return cls(f"scope {scope} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamExistsError(ControllerError):
    """The stream already exists.

    Cause: another program or an earlier run created the stream.

    Fix: to use the existing stream, set ``if_exists="ignore"`` or ``--exist-ok``. Its number of segments may differ.
    """

    code = "PRAVEGA-STREAM-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamExistsError:
        """The error for a stream that was to be created."""
        return cls(f"stream {stream} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamNotFoundError(ControllerError):
    """The stream does not exist.

    Cause: the name is misspelled, the scope or cluster is another one, or the stream was not created. A read never
    creates a stream; a write does so only with ``allow_create_stream``. A writer also raises it if its stream was
    deleted, even if the stream was recreated.

    Fix: check the name. To create the stream, use ``client.create_stream``, ``allow_create_stream`` or ``pravega-serde
    stream create``. For a recreated stream, open a new writer.
    """

    code = "PRAVEGA-STREAM-NOT-FOUND"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamNotFoundError:
        """The error for a stream that was asked for."""
        return cls(f"stream {stream} does not exist: check its name and scope, or create it first")

    @classmethod
    def deleted(cls, stream: object) -> StreamNotFoundError:
        """The error for a stream that was there before."""
        return cls(f"stream {stream} was deleted while it was in use")

    @classmethod
    def recreated(cls, stream: object) -> StreamNotFoundError:
        """The error for a stream that was replaced by one with its name."""
        return cls(f"stream {stream} was deleted and recreated while it was in use: open the new stream")


class StreamSealedError(ControllerError):
    """The stream is sealed: you can read it, but not write to it.

    Cause: a user or program sealed the stream, which cannot be undone.

    Fix: write to another stream. Readers of this stream stop at its end.
    """

    code = "PRAVEGA-STREAM-SEALED"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamSealedError:
        """Error of a write to a sealed stream."""
        return cls(f"stream {stream} is sealed; it accepts no more events")


class TableNotFoundError(ControllerError):
    """The key-value table does not exist.

    Cause: the name is misspelled, the scope or cluster is another one, or the table was not created.

    Fix: check the name. To create the table, use ``client.create_table``.
    """

    code = "PRAVEGA-TABLE-NOT-FOUND"
    fault = "local"

    @classmethod
    def of(cls, table: object) -> TableNotFoundError:
        """The error for a table that was asked for."""
        return cls(f"table {table} does not exist: check its name and scope, or create it first")

    @classmethod
    def deleted(cls, table: object) -> TableNotFoundError:
        """The error for a table that was deleted while it was open."""
        return cls(f"table {table} was deleted while it was in use; if it was recreated, open it again")


class TableExistsError(ControllerError):
    """The key-value table already exists.

    Cause: another program or an earlier run created the table.

    Fix: to use the existing table, set ``if_exists="ignore"``. Its key lengths may differ.
    """

    code = "PRAVEGA-TABLE-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, table: object) -> TableExistsError:
        """The error for a table that was to be created."""
        return cls(f"table {table} exists already: choose another name, or use it as it is (if_exists='ignore')")


class TableLimitError(ConfigError):
    """A key, a value or an update exceeds a limit of key-value tables. Nothing was sent.

    Cause: a key does not have the length that was set when the table was created. Or a value has more than 1,040,384
    bytes. Or an update has more than 256 entries, more than 16 MiB, or entries of several primary keys.

    Fix: use keys of the table's lengths, which ``client.table_config`` returns. Store large values in a stream. Split
    the update; then each part is atomic.
    """

    code = "PRAVEGA-TABLE-LIMIT"


class TableVersionError(ConnectorError):
    """A conditional update of a key-value table was refused. Nothing was changed.

    Cause: the entry has another version than the update requires, because another client has changed or removed it. Or
    an entry that should be inserted exists.

    Fix: get the entry, decide again, and update it with its new version.
    """

    code = "PRAVEGA-TABLE-VERSION"
    fault = "local"


class TableKeyOrderError(ConnectorError):
    """Several tasks of a Spark write have changed the same key of a key-value table, in an unknown order.

    Cause: rows of one key are in several partitions of the DataFrame, and no option orders them. Or, with
    ``order_column``, one of the rows removes the key. The rows are already written.

    Fix: set ``order_column``, or repartition the DataFrame by the key before the write. Then write the rows again. A
    streaming query writes them again when it restarts.
    """

    code = "PRAVEGA-TABLE-KEY-ORDER"
    fault = "local"


class SegmentStoreError(ConnectorError):
    """A segment store refused a request or answered with a failure.

    Cause: a segment store refused a request for a reason that has no subclass.

    Fix: find the failed request in the log of the segment store, fix its cause there, and retry.
    """

    code = "PRAVEGA-SEGMENT-STORE"
    fault = "remote"


class StoreFailureError(SegmentStoreError):
    """A segment store failed while it answered a read; a retry may succeed.

    Cause: an exception in the store, such as a race between its cache and the read.

    Fix: retry. If the error returns, find the failed read in the log of the segment store, and fix its cause there.
    """

    code = "PRAVEGA-STORE-FAILURE"
    retriable = True


class ConnectionLostError(SegmentStoreError):
    """The connection to a segment store ended; a retry on a new connection may succeed.

    Cause: a segment store died, restarted or was cut off for longer than the call could wait.

    Fix: retry. Readers resume from their position, and writers resend unacknowledged events.
    """

    code = "PRAVEGA-CONNECTION-LOST"
    retriable = True


class ProtocolError(SegmentStoreError):
    """A server sent bytes that the wire protocol does not allow.

    Cause: the address does not belong to a Pravega server, the server's version is not supported, or bytes were damaged
    in flight.

    Fix: check the address and the version of the server. If both are correct, report a bug.
    """

    code = "PRAVEGA-PROTOCOL"


class UnexpectedReplyError(SegmentStoreError):
    """A segment store sent a reply to no request; a retry on a new connection may succeed.

    Cause: a segment store, or a proxy in front of it, repeated a reply or confused the replies to two requests.

    Fix: retry. If the error returns, check which proxies are between the client and the store, and report a bug.
    """

    code = "PRAVEGA-UNEXPECTED-REPLY"
    retriable = True

    @classmethod
    def of(cls, where: str, reply: object, about: str = "") -> UnexpectedReplyError:
        """The error for a reply that ``where`` sent."""
        name = f"{type(reply).__name__} {about}".rstrip()
        return cls(f"{where} sent {name}, which answers no request; retry on a new connection")


class TokenExpiredError(SegmentStoreError):
    """A segment store refused a delegation token; the controller may issue a new one.

    Cause: the token expired and was not renewed in time, or the servers' clocks differ.

    Fix: retry. Check that the user still has the permission, and check the servers' clocks.
    """

    code = "PRAVEGA-TOKEN-EXPIRED"
    retriable = True


class SegmentSealedError(SegmentStoreError):
    """The segment is sealed; its successors hold its key range.

    Cause: the stream was scaled or sealed while the segment was addressed directly.

    Fix: get the successors from ``client.controller.successors``, or use a writer or reader, which follow them.
    """

    code = "PRAVEGA-SEGMENT-SEALED"


class SegmentTruncatedError(SegmentStoreError):
    """The offset is before the first offset that the segment still has.

    Cause: retention or a truncation overtook a reader of single segments.

    Fix: read from the head of the stream: ``client.head``.
    """

    code = "PRAVEGA-SEGMENT-TRUNCATED"

    def __init__(self, message: str, *, start_offset: int) -> None:
        self.start_offset = start_offset
        super().__init__(message)


class NoSuchSegmentError(SegmentStoreError):
    """The segment was deleted or truncated, or never existed.

    Cause: the segment id belongs to another stream, or retention has removed the segment.

    Fix: get the current ids from ``client.describe`` or ``client.head``.
    """

    code = "PRAVEGA-NO-SUCH-SEGMENT"


class WrongHostError(SegmentStoreError):
    """The segment is on another segment store now.

    Cause: the segment moved, and the controller did not report the new host in time.

    Fix: retry. The client asks for the host again.
    """

    code = "PRAVEGA-WRONG-HOST"
    retriable = True


class EventNumberError(SegmentStoreError):
    """An append was refused because its writer id has a later event number (InvalidEventNumber).

    Cause: two processes write with the same ``writer_id`` at the same time.

    Fix: use a separate id for each writer, or none, then retry.
    """

    code = "PRAVEGA-EVENT-NUMBER"
    retriable = True


class TransactionError(ConnectorError):
    """The state of a transaction does not allow the operation.

    Cause: the operation does not match the state, or the error is of a subclass below.

    Fix: check ``status()``. If the transaction has ended, begin a new one.
    """

    code = "PRAVEGA-TRANSACTION"
    fault: ClassVar[Fault] = "remote"


class TransactionCommittedError(TransactionError):
    """The transaction is committed or committing: it accepts no events and no abort.

    Cause: this process or another one has already requested the commit.

    Fix: do nothing. Readers see the events now or soon.
    """

    code = "PRAVEGA-TRANSACTION-COMMITTED"


class TransactionAbortedError(TransactionError):
    """The transaction is aborted or aborting: its events were deleted.

    Cause: a client requested the abort, the stream was sealed, or the lease expired.

    Fix: begin a new transaction and write the events again.
    """

    code = "PRAVEGA-TRANSACTION-ABORTED"


class TransactionExpiredError(TransactionAbortedError):
    """The transaction was aborted because its lease expired before a ping or a commit.

    Cause: no ping arrived within the lease: the process paused, or a step took longer.

    Fix: write again in a new transaction with a longer ``lease``, or keep it open with a ``LeaseKeeper``.
    """

    code = "PRAVEGA-TRANSACTION-EXPIRED"


class TransactionUnknownError(TransactionError):
    """The controller does not know the transaction: it never existed, or completed long ago.

    The error does not say whether the transaction was committed.

    Cause: the id or stream is wrong, or the transaction completed more than a day ago.

    Fix: check id and stream. Read the stream to find out if the transaction was committed.
    """

    code = "PRAVEGA-TRANSACTION-UNKNOWN"


class LeaseRangeError(TransactionError):
    """The lease is out of range.

    ``shortest`` and ``longest`` are the server's bounds in seconds, or None if they are unknown.

    Cause: the lease is outside the server's bounds, by default 10 s to 600 s; or the sink's ``transaction_timeout_ms``
    is not longer than its ``commit_timeout_ms``.

    Fix: set a lease between 10 s and 600 s, or between the bounds in the message. For a longer lease, raise the
    server's ``controller.transaction.lease.count.max``. In Spark, set ``commit_timeout_ms`` below
    ``transaction_timeout_ms``.
    """

    code = "PRAVEGA-LEASE-RANGE"
    fault = "local"

    def __init__(self, message: str, *, shortest: float | None = None, longest: float | None = None) -> None:
        self.shortest, self.longest = shortest, longest
        super().__init__(message)


class ReaderGroupError(ConnectorError):
    """The state of a reader group does not allow the operation.

    Cause: the group does not exist, reads other streams, or is in use; or the error is of a subclass below.

    Fix: check the name with ``pravega-serde group list``. To join a group, omit ``streams``. To change its streams,
    call ``reset(streams=…)``. Wait until running checkpoints are complete before you begin another one.
    """

    code = "PRAVEGA-READER-GROUP"


class ReaderGroupNotFoundError(ReaderGroupError):
    """The reader group does not exist.

    Cause: the name is misspelled, or the group was deleted.

    Fix: list the groups of a scope with ``pravega-serde group list``. To create the group, name the streams that it
    reads.
    """

    code = "PRAVEGA-READER-GROUP-NOT-FOUND"


class GroupStateError(ReaderGroupError):
    """The state of a group has an invalid update: no client can use the group before a reset.

    Cause: another client, or damage, wrote an update that does not match the state.

    Fix: save the message for a bug report, then reset the group to a stream cut with ``pravega-serde group reset``.
    """

    code = "PRAVEGA-GROUP-STATE"
    fault: ClassVar[Fault] = "data"


class ReaderOnlineError(ReaderGroupError):
    """The group already has a reader with this id: it is reading, or it failed without being removed.

    Cause: two readers have the same id, or a reader failed without being removed.

    Fix: use another id, or remove the failed reader first.
    """

    code = "PRAVEGA-READER-ONLINE"


class ReaderOfflineError(ReaderGroupError):
    """The reader was removed, or the group was reset: events since its last checkpoint are read again.

    Cause: a user or program removed the reader or reset the group.

    Fix: create a new reader. Expect the events since the last checkpoint again.
    """

    code = "PRAVEGA-READER-OFFLINE"


class OutcomeUnknownError(ConnectorError):
    """It is unknown whether an operation took effect: it may have, may still do so, or never will.

    Repeat the same operation; this is safe. Do not treat it as done or as refused.

    Cause: the answer to an operation was lost and could not be requested again in time.

    Fix: repeat the same operation, or restart the query. The repetition finds out what was done and does not do it
    twice.
    """

    code = "PRAVEGA-OUTCOME-UNKNOWN"
    fault = "remote"
    retriable = True


class DeadlineExceededError(ConnectorError):
    """An operation did not finish in time; acknowledged events are durable.

    Cause: servers stall or are overloaded, or ``timeout`` is too short for the amount of data.

    Fix: check the servers, and retry. For large amounts of data, raise ``timeout`` of the call. In Spark, raise
    ``commit_timeout_ms`` or ``write_timeout_ms``.
    """

    code = "PRAVEGA-DEADLINE-EXCEEDED"
    fault = "remote"
    retriable = True


class DataLossError(ConnectorError):
    """Events that a reader had not read yet were truncated or deleted.

    Cause: retention, a truncation or a deletion overtook the reader.

    Fix: to continue without these events, set ``fail_on_data_loss=false``. To make retention wait for readers, set
    ``publish_position``.
    """

    code = "PRAVEGA-DATA-LOSS"
    fault = "remote"


class RoutingKeyError(ConnectorError):
    """A read of one routing key found an event whose routing key is unknown, or belongs to another segment.

    Cause: the router of the read raised an error for the event. Or it returned another key than the writer has used:
    the writer had another router, or wrote the event without a routing key. Then events of the wanted key may also be
    in other segments, so the read stops.

    Fix: pass the router of the writer. If the router raises an error for events without a key, pass one that returns
    None for them. If writers used different keys or none, read the whole stream and filter the events by the field.
    """

    code = "PRAVEGA-ROUTING-KEY"
    fault = "data"

    @classmethod
    def foreign(cls, place: str, key: str) -> RoutingKeyError:
        """Error for an event whose routing key belongs to another segment."""
        return cls(
            f"{place}: the router returned routing key {key!r}, which belongs to another segment, so the writer used "
            "another key or none for this event, and a read of one key could miss events; pass the router of the "
            "writer, or read the whole stream and filter it"
        )

    @classmethod
    def unknown(cls, place: str, reason: str) -> RoutingKeyError:
        """Error for an event for which the router raised an error."""
        return cls(
            f"{place}: {reason}; pass the router of the writer, or one that returns None for events without a key"
        )


class TimeUnknownError(ConnectorError):
    """The stream has no watermark for the requested time, or not yet.

    Cause: the stream's writers note no times, or none as late as the requested time.

    Fix: pass a stream cut, ``earliest`` or ``latest``, or let writers note times (docs/spark/event-time.md).
    """

    code = "PRAVEGA-TIME-UNKNOWN"


class ExactlyOnceError(ConnectorError):
    """A batch cannot be committed exactly once, or not now.

    Cause: the commit failed for a reason that has no subclass.

    Fix: restart the query. Check the ledger with ``pravega-serde recover SCOPE/TARGET``.
    """

    code = "PRAVEGA-EXACTLY-ONCE"
    fault: ClassVar[Fault] = "remote"


class FencedError(ExactlyOnceError):
    """Another run has taken over, or a later batch is prepared; this run wrote no visible rows.

    Cause: the query runs twice: two drivers were started, or a suspended driver resumed. Or an older copy of the
    checkpoint was restored while a later batch was prepared. Or two runs of ``tier`` write one stream into one table.

    Fix: stop one of the two. If only one is running, run ``pravega-serde recover
    SCOPE/TARGET --finish`` and restart it.
    """

    code = "PRAVEGA-FENCED"
    fault = "local"


class DuplicateWriteError(ExactlyOnceError):
    """One run wrote the same batch twice with the same application id.

    Cause: two writes in one ``foreachBatch`` have the same ``txn_app_id``.

    Fix: use a separate id for each write.
    """

    code = "PRAVEGA-DUPLICATE-WRITE"
    fault = "local"


class LedgerMissingError(ExactlyOnceError):
    """The ledger does not have a query that has committed batches.

    Cause: the ledger was deleted, the target was recreated, or the query was at_least_once before.

    Fix: find out which of these happened, then set ``ledger_adopt=true`` for one run.
    """

    code = "PRAVEGA-LEDGER-MISSING"
    fault = "local"


class LedgerTruncatedError(ExactlyOnceError):
    """Entries of the ledger were deleted, so the committed batches are unknown.

    Cause: the ledger has a retention policy, or was truncated manually.

    Fix: find the batches that are in the target, delete the ledger, then set ``ledger_adopt=true`` for one run.
    """

    code = "PRAVEGA-LEDGER-TRUNCATED"
    fault = "local"


class AppIdReusedError(ExactlyOnceError):
    """The application id belongs to another query that has reached the same versions.

    Cause: another program uses the same ``txn_app_id``.

    Fix: use another id.
    """

    code = "PRAVEGA-APP-ID-REUSED"
    fault = "local"


class LeaseExpiredError(ExactlyOnceError):
    """A task's transaction expired before its batch was recorded; no row of the batch is visible.

    Cause: a task or the driver took longer than ``transaction_timeout_ms``.

    Fix: restart the query: no row is lost. Set a longer lease, or use smaller batches.
    """

    code = "PRAVEGA-LEASE-EXPIRED"
    retriable = True


class TornBatchError(ExactlyOnceError):
    """A batch is partially committed, or the server no longer knows its state: an operator must decide.

    Cause: the driver was down for longer than the lease between two commits of one batch, and the replay partitioned
    the rows differently; or it was down for longer than servers keep completed transactions.

    Fix: run ``pravega-serde recover SCOPE/TARGET --finish``. If the batch is still open, choose: ``--accept`` leaves
    the missing rows out, ``--discard`` writes the batch again, so its visible rows are duplicated. See
    docs/operate/troubleshooting.md.
    """

    code = "PRAVEGA-TORN-BATCH"


class LostBatchError(ExactlyOnceError):
    """A batch that Spark has finished was recorded but never became visible.

    Cause: the transactions of a recorded batch expired before the commit, and Spark has started a later batch.

    Fix: find the batch with ``pravega-serde recover SCOPE/TARGET``, and write its rows again from their source.
    """

    code = "PRAVEGA-LOST-BATCH"


class ReplayDiffersError(ExactlyOnceError):
    """A committed batch was replayed with other rows, or is too old to compare; the replay wrote nothing.

    Cause: files of the checkpoint were removed, two drivers share the checkpoint, or the query cannot repeat its rows.

    Fix: restore the checkpoint. If you cannot, use a new one or ``accept_recorded_batch`` (docs/spark/exactly-once.md).
    """

    code = "PRAVEGA-REPLAY-DIFFERS"
    fault = "local"


class UnfinishedBatchError(ExactlyOnceError):
    """A recorded batch cannot be finished without its rows, and this run does not have them.

    Cause: the recorded transactions were lost, and ``recover`` or an empty batch has no rows to write.

    Fix: restart the query, which has the rows.
    """

    code = "PRAVEGA-UNFINISHED-BATCH"


class LedgerFormatError(ExactlyOnceError):
    """The ledger cannot be read by this version.

    Cause: a later version wrote the ledger, or the stream is not a ledger.

    Fix: update the driver, and check the option ``ledger``.
    """

    code = "PRAVEGA-LEDGER-FORMAT"
    fault = "local"


class IngestError(ConnectorError):
    """A source cannot be ingested, or the ingestion cannot continue.

    Cause: the ingestion failed for a reason that has no subclass.

    Fix: fix the cause in the message, then run the same command again. It resumes where it stopped.
    """

    code = "PRAVEGA-INGEST"


class SourceError(IngestError):
    """A source of an ingestion is invalid; nothing is lost, and the next run resumes there.

    Cause: the source does not match its description, or the error is of a subclass below.

    Fix: correct the file in the message, and run the same command again. To continue without malformed records or
    files, add ``--dead-letters`` or ``--keep-going``.
    """

    code = "PRAVEGA-SOURCE"
    fault = "data"
    source_id: str | None = None
    """The source, where it is known."""


class KafkaUnavailableError(ConnectorError):
    """No Kafka broker answered in time.

    Cause: the address is wrong, the broker is down, or the network blocks the connection. A broker also advertises its
    own address, which may be unreachable from here.

    Fix: check the address and the broker's ``advertised.listeners``, and run the same command again. A run that has
    reached the broker before retries for ``failover_timeout``.
    """

    code = "PRAVEGA-KAFKA-UNAVAILABLE"
    retriable = True


class KafkaRefusedError(ConnectorError):
    """A Kafka broker refused the credentials, or the user may not read the topic.

    Cause: user, password or certificate are missing or wrong, or the user lacks the permissions Describe and Read.

    Fix: set the security settings of librdkafka with ``--kafka-config FILE``, or have the permissions granted.
    """

    code = "PRAVEGA-KAFKA-REFUSED"
    fault = "local"


class KafkaTopicNotFoundError(ConnectorError):
    """The Kafka topic does not exist, or was deleted.

    Cause: the name is misspelled, the cluster is another one, or the topic was deleted.

    Fix: check the topic and the brokers in ``kafka://host:port/topic``.
    """

    code = "PRAVEGA-KAFKA-TOPIC-NOT-FOUND"
    fault = "local"


class SourceUnreadableError(SourceError):
    """A source is missing, unreadable or damaged.

    Cause: the path is wrong, a permission is missing, or the file is damaged.

    Fix: check the path, repair the file, and run the same command again.
    """

    code = "PRAVEGA-SOURCE-UNREADABLE"


class SourceChangedError(SourceError):
    """A source changed after a part of it was read.

    Cause: the file was modified or replaced after a part of it was read, or the Kafka topic was recreated.

    Fix: restore the old file, or use a new name for the new contents. For a topic, see the message.
    """

    code = "PRAVEGA-SOURCE-CHANGED"


class BadRecordError(SourceError):
    """A record of a source does not match the common columns.

    Cause: a line has other columns, or a value has another type than the other values.

    Fix: correct the record, or write malformed records to a dead-letter queue: ``--dead-letters FOLDER``.
    """

    code = "PRAVEGA-BAD-RECORD"


class StepUndecidedError(ConnectorError):
    """The outcome of a recorded transaction is unknown to the server: an operator must decide.

    Cause: a run was down for longer than servers keep completed transactions.

    Fix: the error names each transaction. Check if its events are in its stream. Then run once with
    ``--resolve ID=committed`` for each transaction, or ``--resolve ID=aborted`` if the stream lacks its events.
    """

    code = "PRAVEGA-STEP-UNDECIDED"


class StepsStateError(ConnectorError):
    """The log of an ingestion, a mirror or exactly-once readers cannot be continued.

    Cause: a later version wrote the log, the stream of the log belongs to another target, or a mirrored stream was
    recreated.

    Fix: update, or set another stream for the log. For a mirror, set another name.
    """

    code = "PRAVEGA-STEPS-STATE"
    fault = "local"


class EventError(ConnectorError):
    """An event cannot be written.

    Cause: the value is not an event, or the error is of a subclass below.

    Fix: write a value that the serializer accepts; without a serializer, write bytes. Skip or correct the row in the
    message.
    """

    code = "PRAVEGA-EVENT"
    fault = "data"


class EventTooLargeError(EventError):
    """An event is larger than the limit.

    Cause: the event is larger than 8 MiB or than ``max_event_size``; or larger than 128 MiB, the limit of the readers.

    Fix: write a smaller event. If no Java or Rust client writes such events, raise ``max_event_size``.
    """

    code = "PRAVEGA-EVENT-TOO-LARGE"


class NullEventError(EventError):
    """An event is null, which Pravega does not support.

    Cause: the event's column has a null.

    Fix: filter such rows, or replace the null.
    """

    code = "PRAVEGA-NULL-EVENT"

    @classmethod
    def at_row(cls, row: int) -> NullEventError:
        """Error for a row of a column of events."""
        return cls(f"row {row} of the column is null, and an event cannot be null: fill or drop the row")


class InputLostError(ConnectorError):
    """The connection or pipe that events came from broke.

    Cause: the sender closed the connection.

    Fix: restart the sender and the same command. Acknowledged events are durable.
    """

    code = "PRAVEGA-INPUT-LOST"
    fault = "remote"
    retriable = True


class LakeTableError(ConnectorError):
    """A Delta or Iceberg table cannot be read or written.

    Cause: the message has the text of the table's library: a permission, a full disk, a catalog that does not answer,
    or a schema that does not fit the table.

    Fix: remove the cause and run the command again: it continues after the last commit of the table, and no row is
    missing or repeated.
    """

    code = "PRAVEGA-LAKE-TABLE"
    retriable = True


class LocalServerError(ConnectorError):
    """An embedded server did not start, or stopped unexpectedly.

    Cause: a port is in use, memory is too small, or the server stopped. The message has the end of its log.

    Fix: free the port or the memory, or use another port.
    """

    code = "PRAVEGA-LOCAL-SERVER"


class JavaNotFoundError(LocalServerError):
    """Java is not installed in the version that the servers require.

    Cause: ``PATH`` and ``JAVA_HOME`` have no Java, or one before 17.

    Fix: install JDK 17 or newer, or set ``JAVA_HOME``.
    """

    code = "PRAVEGA-JAVA-NOT-FOUND"


class JarDownloadError(LocalServerError):
    """The servers' jars could not be downloaded.

    Cause: the network, a proxy or the repository failed, or the repository lacks a jar.

    Fix: retry: the download resumes. To use a mirror, set ``--maven-repository``, or set a proxy.
    """

    code = "PRAVEGA-JAR-DOWNLOAD"
    fault = "remote"
    retriable = True
