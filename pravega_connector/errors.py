"""Errors of the client, the Spark source and sink, and the embedded servers.

The one-line text begins with the code, because Spark hands nothing else on.
"""

from __future__ import annotations

from typing import ClassVar

from pravega_serde.errors import Fault, PravegaError

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
    "IngestUndecidedError",
    "InputLostError",
    "InvalidNameError",
    "JarDownloadError",
    "JavaNotFoundError",
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
    "ScopeExistsError",
    "ScopeNotFoundError",
    "SegmentSealedError",
    "SegmentStoreError",
    "SegmentTruncatedError",
    "SourceChangedError",
    "SourceError",
    "SourceUnreadableError",
    "StepsStateError",
    "StreamExistsError",
    "StreamNotFoundError",
    "StreamSealedError",
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


class ConnectorError(PravegaError):
    """Base of what the connector raises.

    Cause: the base of what the connector raises; what is raised is a kind of it.

    Mend: catch it where errors of servers, streams and settings are to be handled alike.
    """

    code = "PRAVEGA-CONNECTOR"


class ConfigError(ConnectorError):
    """A setting or an option cannot be right.

    Cause: an option, a setting or an argument has a value that cannot be right, or does not go with another one.

    Mend: correct what the text names; it says what is allowed.
    """

    code = "PRAVEGA-CONFIG"


class UnknownOptionError(ConfigError):
    """An option has a name that there is not.

    Cause: the name of an option is misspelt.

    Mend: take the name that the text gives; where the option is for something else, set ``ignore_unknown_options``.
    """

    code = "PRAVEGA-UNKNOWN-OPTION"


class InvalidNameError(ConfigError):
    """A scope or stream name that the server would refuse.

    Cause: a scope or stream has letters that names do not have, or is too long.

    Mend: take ASCII letters, digits, ``.`` and ``-`` alone.
    """

    code = "PRAVEGA-INVALID-NAME"


class MalformedStreamCutError(ConfigError):
    """Text or bytes are not a stream cut, or one of another stream.

    Cause: a cut was cut off when it was copied, or is that of another stream.

    Mend: take it anew: ``pravega-serde cut of``, ``client.tail``, Java's ``asText()``.
    """

    code = "PRAVEGA-MALFORMED-STREAM-CUT"


class UnsupportedModeError(ConfigError):
    """Something was asked for that this version does not do.

    Cause: a version of Spark or of a server that lacks what is needed, or a combination of options that is not
    done.

    Mend: do as the text says: mostly another version, mode or option.
    """

    code = "PRAVEGA-UNSUPPORTED-MODE"


class VersionMismatchError(ConfigError):
    """Two processes of one query have different versions of this project.

    Cause: driver and executors have different versions, or a package was replaced under a running query.

    Mend: install one version everywhere and start the query again: it goes on from its checkpoint.
    """

    code = "PRAVEGA-VERSION-MISMATCH"


class ColumnTypeError(ConfigError):
    """The columns of a DataFrame cannot be written as events.

    Cause: a column is missing, is one too many, or has a type that the format does not hold.

    Mend: select and cast the columns that the text names.
    """

    code = "PRAVEGA-COLUMN-TYPE"


class ControllerError(ConnectorError):
    """The controller refused a call or answered with a failure.

    Cause: the controller refused a call for a reason without a kind of its own.

    Mend: read the text, which has what the controller said, and the controller's log.
    """

    code = "PRAVEGA-CONTROLLER"
    fault: ClassVar[Fault] = "remote"


class ControllerUnavailableError(ControllerError):
    """All controllers were unreachable or silent until the deadline.

    Cause: a wrong address, a controller that is down, a network that does not let the connection through.

    Mend: check ``controller``; try again when it is up. A service that has been answered before waits for
    ``failover_timeout`` by itself.
    """

    code = "PRAVEGA-CONTROLLER-UNAVAILABLE"
    retriable = True


class ControllerFailureError(ControllerError):
    """The controller answered with a failure of its own: a store is away, or another client was faster.

    Cause: a segment store or ZooKeeper behind the controller is away, for longer than a failover takes.

    Mend: look after the cluster, then try again: nothing was changed, or the same call makes the same change.
    """

    code = "PRAVEGA-CONTROLLER-FAILURE"
    retriable = True


class AuthenticationError(ControllerError):
    """Credentials are missing, wrong, or do not permit the call.

    Cause: user, password or token are missing or wrong, or the user lacks the permission that the text names. Or the
    client does not trust the server's certificate, or the certificate is of another host.

    Mend: give credentials by option, environment or profile; have the permission granted (docs/operations.md lists
    them). For a certificate, set ``tls_ca_file`` or ``tls_server_name``.
    """

    code = "PRAVEGA-AUTHENTICATION"
    fault = "local"


class ScopeNotFoundError(ControllerError):
    """The scope does not exist.

    Cause: a misspelt name, another cluster, or nobody has created the scope.

    Mend: check the name; create it: ``client.create_scope``, ``allow_create_scope``, ``pravega-serde scope
    create``.
    """

    code = "PRAVEGA-SCOPE-NOT-FOUND"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeNotFoundError:
        """The error for a scope that was asked for."""
        return cls(f"scope {scope} does not exist: check its name, or create it first")


class ScopeExistsError(ControllerError):
    """The scope exists already.

    Cause: another program, or an earlier run, has created the scope.

    Mend: go on with it: ``if_exists="ignore"``, ``--exist-ok``.
    """

    code = "PRAVEGA-SCOPE-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeExistsError:
        """The error for a scope that was to be created."""
        return cls(f"scope {scope} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamExistsError(ControllerError):
    """The stream exists already.

    Cause: another program, or an earlier run, has created the stream.

    Mend: go on with it: ``if_exists="ignore"``, ``--exist-ok``; its number of segments may differ.
    """

    code = "PRAVEGA-STREAM-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamExistsError:
        """The error for a stream that was to be created."""
        return cls(f"stream {stream} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamNotFoundError(ControllerError):
    """The stream does not exist.

    Cause: a misspelt name, another scope or cluster, or nobody has created the stream: reading creates nothing,
    writing only if it is told to.

    Mend: check the name; create it: ``client.create_stream``, ``allow_create_stream``, ``pravega-serde stream
    create``.
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


class StreamSealedError(ControllerError):
    """The stream is sealed: it can be read, but no more events can be written.

    Cause: somebody has sealed the stream, which cannot be undone.

    Mend: write to another stream; readers of this one come to its end.
    """

    code = "PRAVEGA-STREAM-SEALED"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamSealedError:
        """Error of a write to a sealed stream."""
        return cls(f"stream {stream} is sealed; nothing more can be written to it")


class SegmentStoreError(ConnectorError):
    """A segment store refused a request or answered with a failure.

    Cause: a segment store refused a request for a reason without a kind of its own.

    Mend: read the text, which has what the store said, and the store's log.
    """

    code = "PRAVEGA-SEGMENT-STORE"
    fault = "remote"


class ConnectionLostError(SegmentStoreError):
    """The connection to a segment store ended; the same call may succeed on a new one.

    Cause: a segment store died, restarted or was cut off, for longer than the call could wait.

    Mend: try again: readers go on from their position, writers send what was not acknowledged.
    """

    code = "PRAVEGA-CONNECTION-LOST"
    retriable = True


class ProtocolError(SegmentStoreError):
    """Bytes arrived that the wire protocol does not allow here.

    Cause: the address is not that of a Pravega server, or its version speaks another protocol, or bytes were
    damaged on their way.

    Mend: check address and version of the server; report it if both are right.
    """

    code = "PRAVEGA-PROTOCOL"


class UnexpectedReplyError(SegmentStoreError):
    """A segment store sent a reply that belongs to no request; the same call may succeed on a new connection.

    Cause: a segment store, or a proxy in front of it, repeated a reply or confused the replies to two requests.

    Mend: retry. If the error returns, check which proxies are between the client and the store, and report it.
    """

    code = "PRAVEGA-UNEXPECTED-REPLY"
    retriable = True

    @classmethod
    def of(cls, where: str, reply: object, about: str = "") -> UnexpectedReplyError:
        """The error for a reply that ``where`` sent."""
        name = f"{type(reply).__name__} {about}".rstrip()
        return cls(f"{where} sent {name}, which answers no request; retry on a new connection")


class TokenExpiredError(SegmentStoreError):
    """A delegation token was refused; the controller may give a new one.

    Cause: the token for segment stores ran out and no new one could be had in time; clocks differ.

    Mend: try again; check that the user still has the permission, and the servers' clocks.
    """

    code = "PRAVEGA-TOKEN-EXPIRED"
    retriable = True


class SegmentSealedError(SegmentStoreError):
    """The segment has ended; its successors take over its key range.

    Cause: the stream was scaled or sealed while a segment was addressed directly.

    Mend: ask for the successors (``client.controller.successors``), or use a writer or reader, which do so
    themselves.
    """

    code = "PRAVEGA-SEGMENT-SEALED"


class SegmentTruncatedError(SegmentStoreError):
    """The offset lies before the first one that the segment still holds.

    Cause: retention or a truncation was faster than a reader of single segments.

    Mend: read from the stream's head: ``client.head``.
    """

    code = "PRAVEGA-SEGMENT-TRUNCATED"

    def __init__(self, message: str, *, start_offset: int) -> None:
        self.start_offset = start_offset
        super().__init__(message)


class NoSuchSegmentError(SegmentStoreError):
    """The segment was deleted, truncated away, or never existed.

    Cause: a segment id of another stream, or one that retention has removed since.

    Mend: take the ids anew: ``client.describe``, ``client.head``.
    """

    code = "PRAVEGA-NO-SUCH-SEGMENT"


class WrongHostError(SegmentStoreError):
    """The segment lives on another segment store now.

    Cause: the segment moved, and the controller did not know its new place in time.

    Mend: try again: the place is asked for anew.
    """

    code = "PRAVEGA-WRONG-HOST"
    retriable = True


class EventNumberError(SegmentStoreError):
    """An append was refused because its writer id has moved on (InvalidEventNumber).

    Cause: two processes write with one ``writer_id`` at a time.

    Mend: give each writer an id of its own, or none; then try again.
    """

    code = "PRAVEGA-EVENT-NUMBER"
    retriable = True


class TransactionError(ConnectorError):
    """A transaction is not in the state that was asked for.

    Cause: a step that the transaction's state does not allow, or a kind below.

    Mend: ask ``status()``, and begin a new one where it is over.
    """

    code = "PRAVEGA-TRANSACTION"
    fault: ClassVar[Fault] = "remote"


class TransactionCommittedError(TransactionError):
    """The transaction is committed, or about to be: it takes no more events and cannot be aborted.

    Cause: a commit has been asked for before, here or by another process.

    Mend: nothing is to be done: its events can be read, or will be soon.
    """

    code = "PRAVEGA-TRANSACTION-COMMITTED"


class TransactionAbortedError(TransactionError):
    """The transaction is aborted, or about to be, by a client or by its lease: its events are gone.

    Cause: an abort was asked for, or the stream was sealed, or the lease has ended.

    Mend: begin a new transaction and write the events again.
    """

    code = "PRAVEGA-TRANSACTION-ABORTED"


class TransactionExpiredError(TransactionAbortedError):
    """The transaction was aborted because its lease ended before it was pinged or committed.

    Cause: nobody pinged it for as long as its lease: a pause of the process, a step that took longer.

    Mend: write again in a new one with a longer ``lease``, or keep it open with a ``LeaseKeeper``.
    """

    code = "PRAVEGA-TRANSACTION-EXPIRED"


class TransactionUnknownError(TransactionError):
    """The controller knows no such transaction: never there, or completed so long ago that it is forgotten.

    It does not say whether the transaction was committed.

    Cause: a wrong id or stream, or a transaction that was completed more than a day ago.

    Mend: check id and stream; whether it was committed, only its events can tell.
    """

    code = "PRAVEGA-TRANSACTION-UNKNOWN"


class LeaseRangeError(TransactionError):
    """The lease is out of range; ``shortest`` and ``longest`` are the server's bounds (seconds; None: unknown).

    Cause: a lease shorter or longer than the server's bounds, 10 s and 600 s unless set; or a sink whose
    ``transaction_timeout_ms`` is not longer than its ``commit_timeout_ms``.

    Mend: set a lease within the bounds that the error names, raise ``controller.transaction.lease.count.max``, or set a
    shorter ``commit_timeout_ms``.
    """

    code = "PRAVEGA-LEASE-RANGE"
    fault = "local"

    def __init__(self, message: str, *, shortest: float | None = None, longest: float | None = None) -> None:
        self.shortest, self.longest = shortest, longest
        super().__init__(message)


class ReaderGroupError(ConnectorError):
    """A reader group is not as it would have to be for what was asked.

    Cause: the group is missing, has other streams, or is in use where it may not be; or a kind below.

    Mend: do as the text says; check the group's name.
    """

    code = "PRAVEGA-READER-GROUP"


class ReaderGroupNotFoundError(ReaderGroupError):
    """There is no reader group of that name.

    Cause: the name is another one, or the group was deleted.

    Mend: ``pravega-serde group list`` shows the groups of a scope; make it by naming the streams that it is to read.
    """

    code = "PRAVEGA-READER-GROUP-NOT-FOUND"


class GroupStateError(ReaderGroupError):
    """The state of a group holds an update that does not fit: no client can go on with it before a reset.

    Cause: another client, or damage, has written an update that does not follow from the state.

    Mend: reset the group to a stream cut; keep the text for a report.
    """

    code = "PRAVEGA-GROUP-STATE"
    fault: ClassVar[Fault] = "data"


class ReaderOnlineError(ReaderGroupError):
    """The group has a reader of that id: it reads, or has died and must be taken offline first.

    Cause: two readers with one id, or one that has died without being taken offline.

    Mend: take another id, or take the dead reader offline first.
    """

    code = "PRAVEGA-READER-ONLINE"


class ReaderOfflineError(ReaderGroupError):
    """The reader was taken offline, or the group was reset: what it read since its last checkpoint comes again.

    Cause: somebody took the reader offline, or reset the group.

    Mend: make a new reader; be ready to meet events again since its last checkpoint.
    """

    code = "PRAVEGA-READER-OFFLINE"


class OutcomeUnknownError(ConnectorError):
    """It is unknown whether a step took effect within the time: it may have, it may do so yet, or never.

    Repeating the very same step is safe and tells; taking it for done, or for refused, is not.

    Cause: the answer to a step was lost and could not be asked for in time.

    Mend: repeat the very same step, or restart the query: what was done is found out, and not done twice.
    """

    code = "PRAVEGA-OUTCOME-UNKNOWN"
    fault = "remote"
    retriable = True


class DeadlineExceededError(ConnectorError):
    """Something was not done in time; what was acknowledged until then is durable.

    Cause: servers that stall or are overloaded, or a ``timeout`` that is too short for the amount.

    Mend: try again; raise the timeout that the text names.
    """

    code = "PRAVEGA-DEADLINE-EXCEEDED"
    fault = "remote"
    retriable = True


class DataLossError(ConnectorError):
    """Events that a reader still wanted are gone: truncated by retention, or deleted.

    Cause: retention, a truncation or a deletion was faster than the reader.

    Mend: decide whether to go on without them (``fail_on_data_loss=false``); let retention wait:
    ``publish_position``.
    """

    code = "PRAVEGA-DATA-LOSS"
    fault = "remote"


class TimeUnknownError(ConnectorError):
    """The position of a time in a stream is unknown: there is no watermark for it, or not yet.

    Cause: the stream's writers note no times, or none as late as was asked for.

    Mend: name a cut, ``earliest`` or ``latest``; have writers note times (docs/event-time.md).
    """

    code = "PRAVEGA-TIME-UNKNOWN"


class ExactlyOnceError(ConnectorError):
    """A batch cannot be committed exactly once, or not now.

    Cause: a commit that cannot be done for a reason without a kind of its own.

    Mend: restart the query; look at the ledger with ``pravega-serde recover``.
    """

    code = "PRAVEGA-EXACTLY-ONCE"
    fault: ClassVar[Fault] = "remote"


class FencedError(ExactlyOnceError):
    """Another run of the query has taken over, or a later batch is prepared; this run wrote nothing that can be seen.

    Cause: the query runs twice: a driver that was taken for dead has come back, or two were started. Or its checkpoint
    was put back from an older copy while a later batch was prepared.

    Mend: stop one of the two. If there is only one, run ``pravega-serde recover STREAM --finish`` and restart it.
    """

    code = "PRAVEGA-FENCED"
    fault = "local"


class DuplicateWriteError(ExactlyOnceError):
    """One run wrote the same batch twice: two writes of a batch need application ids of their own.

    Cause: two writes of one ``foreachBatch`` have the same ``txn_app_id``.

    Mend: give each write an id of its own.
    """

    code = "PRAVEGA-DUPLICATE-WRITE"
    fault = "local"


class LedgerMissingError(ExactlyOnceError):
    """The ledger does not know a query that has committed batches: it was deleted, or the query had no ledger.

    Cause: the ledger was deleted, the target was made anew, or the query was at_least_once before.

    Mend: find out which; then ``ledger_adopt=true`` for one run.
    """

    code = "PRAVEGA-LEDGER-MISSING"
    fault = "local"


class LedgerTruncatedError(ExactlyOnceError):
    """Entries of the ledger were deleted, so nothing tells which batches are committed.

    Cause: a retention policy on the ledger, or a truncation by hand.

    Mend: look which batches are in the target, delete the ledger, then ``ledger_adopt=true`` for one run.
    """

    code = "PRAVEGA-LEDGER-TRUNCATED"
    fault = "local"


class AppIdReusedError(ExactlyOnceError):
    """The application id belongs to another query, whose versions are as high already.

    Cause: a ``txn_app_id`` of another program.

    Mend: take another id.
    """

    code = "PRAVEGA-APP-ID-REUSED"
    fault = "local"


class LeaseExpiredError(ExactlyOnceError):
    """A task's transaction ended before its batch was recorded; nothing of the batch is visible.

    Cause: a task or the driver took longer than ``transaction_timeout_ms``.

    Mend: restart the query: nothing is lost; give it a longer lease, or smaller batches.
    """

    code = "PRAVEGA-LEASE-EXPIRED"
    retriable = True


class TornBatchError(ExactlyOnceError):
    """A part of a batch is visible and a part is lost, or the server has forgotten which: an operator must choose.

    Cause: the driver was away for longer than the lease between two commits of one batch, and its repetition placed
    the rows otherwise; or for longer than servers remember.

    Mend: ``pravega-serde recover``: ``--accept`` (the lost rows stay lost) or ``--discard`` (the visible ones come
    twice).
    """

    code = "PRAVEGA-TORN-BATCH"


class LostBatchError(ExactlyOnceError):
    """A batch that Spark has done with was recorded and never became visible.

    Cause: the leases of a recorded batch ended before it was committed, and Spark has gone on.

    Mend: ``pravega-serde recover`` shows which; write its rows again from their source.
    """

    code = "PRAVEGA-LOST-BATCH"


class ReplayDiffersError(ExactlyOnceError):
    """A committed batch was repeated with other rows, or is too old to be compared; the repetition wrote nothing.

    Cause: files of the checkpoint were removed, two drivers share it, or the query cannot repeat its rows.

    Mend: put the checkpoint back; else a new one, or ``accept_recorded_batch`` (docs/exactly-once.md).
    """

    code = "PRAVEGA-REPLAY-DIFFERS"
    fault = "local"


class UnfinishedBatchError(ExactlyOnceError):
    """A recorded batch cannot be finished without its rows, and this run has none.

    Cause: what was recorded is lost, and ``recover`` or a batch without rows has nothing to write.

    Mend: restart the query, which has the rows.
    """

    code = "PRAVEGA-UNFINISHED-BATCH"


class LedgerFormatError(ExactlyOnceError):
    """The ledger holds something that this version cannot read.

    Cause: a later version has written the ledger, or it is no ledger.

    Mend: update this driver; check option ``ledger``.
    """

    code = "PRAVEGA-LEDGER-FORMAT"
    fault = "local"


class IngestError(ConnectorError):
    """A source cannot be ingested, or its ingestion cannot go on.

    Cause: an ingestion that cannot go on for a reason without a kind of its own.

    Mend: do as the text says, and run the same command again: it goes on where it was.
    """

    code = "PRAVEGA-INGEST"


class SourceError(IngestError):
    """A source of an ingestion is not what it should be; nothing is lost, and another run goes on from there.

    Cause: a source that is not as it was described, or a kind below.

    Mend: correct the file that the text names, and run the same command again.
    """

    code = "PRAVEGA-SOURCE"
    fault = "data"
    source_id: str | None = None
    """The source, where it is known."""


class SourceUnreadableError(SourceError):
    """A source is missing, may not be read, or is damaged.

    Cause: a wrong path, a permission, or a damaged file.

    Mend: check the path; put the file right, and run the same command again.
    """

    code = "PRAVEGA-SOURCE-UNREADABLE"


class SourceChangedError(SourceError):
    """A source is not what it was when it was read, or when a part of it was.

    Cause: a file was written to or replaced after a part of it had been read.

    Mend: put the old file back, or give the new contents a new name.
    """

    code = "PRAVEGA-SOURCE-CHANGED"


class BadRecordError(SourceError):
    """A record of a source does not fit the common columns.

    Cause: a line with other columns, or a value of another type than the others.

    Mend: correct it, or let bad records go elsewhere: ``--dead-letters FOLDER``.
    """

    code = "PRAVEGA-BAD-RECORD"


class IngestUndecidedError(IngestError):
    """The server does not know what became of a recorded transaction: an operator must choose.

    Cause: a run was away for longer than servers remember its transaction.

    Mend: look for its events in the stream, then run once with ``--resolve committed`` if they are there, else
    ``aborted``.
    """

    code = "PRAVEGA-INGEST-UNDECIDED"


class StepsStateError(ConnectorError):
    """The log of an ingestion, or of exactly-once readers, cannot be continued.

    Cause: a later version has written it, or the stream that is named for it belongs to another target.

    Mend: update, or name another stream for the log.
    """

    code = "PRAVEGA-STEPS-STATE"
    fault = "local"


class EventError(ConnectorError):
    """An event cannot be written.

    Cause: a value that is no event, or a kind below.

    Mend: correct the value that the text names.
    """

    code = "PRAVEGA-EVENT"
    fault = "data"


class EventTooLargeError(EventError):
    """An event is larger than the limit in force.

    Cause: an event beyond 8 MiB, or beyond ``max_event_size``; or beyond 128 MiB, which no reader here can pass.

    Mend: make it smaller, or raise ``max_event_size`` if no Java or Rust client is to write such ones.
    """

    code = "PRAVEGA-EVENT-TOO-LARGE"


class NullEventError(EventError):
    """An event is null, and Pravega has no null events.

    Cause: a null in the event's column.

    Mend: leave such rows out, or write something in their place.
    """

    code = "PRAVEGA-NULL-EVENT"

    @classmethod
    def at_row(cls, row: int) -> NullEventError:
        """Error for a row of a column of events."""
        return cls(f"row {row} of the column is null, and Pravega has no null events: fill or drop it")


class InputLostError(ConnectorError):
    """A connection or pipe that events came from broke.

    Cause: the sender broke the connection.

    Mend: start the sender, and the same command again; what was acknowledged is durable.
    """

    code = "PRAVEGA-INPUT-LOST"
    fault = "remote"
    retriable = True


class OutputFileError(ConnectorError):
    """A file cannot be written; nothing half is left under its name.

    Cause: a full disk, a missing permission, a folder that is not there.

    Mend: make room, or name another file; then the same command.
    """

    code = "PRAVEGA-OUTPUT-FILE"
    retriable = True


class LocalServerError(ConnectorError):
    """An embedded server cannot be started, or ended on its own.

    Cause: a port that is taken, too little memory, or a server that ended: the text has the end of its log.

    Mend: free the port or the memory, or take another port.
    """

    code = "PRAVEGA-LOCAL-SERVER"


class JavaNotFoundError(LocalServerError):
    """Java is missing in the version that the servers need.

    Cause: no Java on ``PATH`` or at ``JAVA_HOME``, or one before 17.

    Mend: install a JDK 17 or newer, or set ``JAVA_HOME``.
    """

    code = "PRAVEGA-JAVA-NOT-FOUND"


class JarDownloadError(LocalServerError):
    """The servers' jars could not be fetched.

    Cause: no network, a proxy, or a repository that lacks a jar.

    Mend: try again: it goes on where it was; name a mirror (``--maven-repository``) or proxy.
    """

    code = "PRAVEGA-JAR-DOWNLOAD"
    fault = "remote"
    retriable = True
