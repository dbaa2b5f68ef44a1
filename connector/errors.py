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
    "IngestStateError",
    "IngestUndecidedError",
    "InputLostError",
    "InvalidNameError",
    "JarDownloadError",
    "JavaNotFoundError",
    "LeaseExpiredError",
    "LeaseRangeError",
    "LedgerFormatError",
    "LedgerMissingError",
    "LocalServerError",
    "LostBatchError",
    "MalformedStreamCutError",
    "NoSuchSegmentError",
    "NullEventError",
    "OutcomeUnknownError",
    "OutputFileError",
    "ProtocolError",
    "ReaderGroupError",
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
    "UnfinishedBatchError",
    "UnknownOptionError",
    "UnsupportedModeError",
    "VersionMismatchError",
    "WrongHostError",
]


class ConnectorError(PravegaError):
    """Base of what the connector raises."""

    code = "PRAVEGA-CONNECTOR"


class ConfigError(ConnectorError):
    """A setting or an option cannot be right."""

    code = "PRAVEGA-CONFIG"


class UnknownOptionError(ConfigError):
    """An option has a name that there is not."""

    code = "PRAVEGA-UNKNOWN-OPTION"


class InvalidNameError(ConfigError):
    """A scope or stream name that the server would refuse."""

    code = "PRAVEGA-INVALID-NAME"


class MalformedStreamCutError(ConfigError):
    """Text or bytes are not a stream cut, or one of another stream."""

    code = "PRAVEGA-MALFORMED-STREAM-CUT"


class UnsupportedModeError(ConfigError):
    """Something was asked for that this version does not do."""

    code = "PRAVEGA-UNSUPPORTED-MODE"


class VersionMismatchError(ConfigError):
    """Two processes of one query have different versions of this project."""

    code = "PRAVEGA-VERSION-MISMATCH"


class ColumnTypeError(ConfigError):
    """The columns of a DataFrame cannot be written as events."""

    code = "PRAVEGA-COLUMN-TYPE"


class ControllerError(ConnectorError):
    """The controller refused a call or answered with a failure."""

    code = "PRAVEGA-CONTROLLER"
    fault: ClassVar[Fault] = "remote"


class ControllerUnavailableError(ControllerError):
    """All controllers were unreachable or silent until the deadline."""

    code = "PRAVEGA-CONTROLLER-UNAVAILABLE"
    retriable = True


class ControllerFailureError(ControllerError):
    """The controller answered with a failure of its own: a store is away, or another client was faster."""

    code = "PRAVEGA-CONTROLLER-FAILURE"
    retriable = True


class AuthenticationError(ControllerError):
    """Credentials are missing, wrong, or do not permit the call."""

    code = "PRAVEGA-AUTHENTICATION"
    fault = "local"


class ScopeNotFoundError(ControllerError):
    """The scope does not exist."""

    code = "PRAVEGA-SCOPE-NOT-FOUND"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeNotFoundError:
        """The error for a scope that was asked for."""
        return cls(f"scope {scope} does not exist: check its name, or create it first")


class ScopeExistsError(ControllerError):
    """The scope exists already."""

    code = "PRAVEGA-SCOPE-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, scope: str) -> ScopeExistsError:
        """The error for a scope that was to be created."""
        return cls(f"scope {scope} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamExistsError(ControllerError):
    """The stream exists already."""

    code = "PRAVEGA-STREAM-EXISTS"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamExistsError:
        """The error for a stream that was to be created."""
        return cls(f"stream {stream} exists already: choose another name, or use it as it is (if_exists='ignore')")


class StreamNotFoundError(ControllerError):
    """The stream does not exist."""

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
    """The stream is sealed: it can be read, but no more events can be written."""

    code = "PRAVEGA-STREAM-SEALED"
    fault = "local"

    @classmethod
    def of(cls, stream: object) -> StreamSealedError:
        """Error of a write to a sealed stream."""
        return cls(f"stream {stream} is sealed; nothing more can be written to it")


class SegmentStoreError(ConnectorError):
    """A segment store refused a request or answered with a failure."""

    code = "PRAVEGA-SEGMENT-STORE"
    fault = "remote"


class ConnectionLostError(SegmentStoreError):
    """The connection to a segment store ended; the same call may succeed on a new one."""

    code = "PRAVEGA-CONNECTION-LOST"
    retriable = True


class ProtocolError(SegmentStoreError):
    """Bytes arrived that the wire protocol does not allow here."""

    code = "PRAVEGA-PROTOCOL"


class TokenExpiredError(SegmentStoreError):
    """A delegation token was refused; the controller may give a new one."""

    code = "PRAVEGA-TOKEN-EXPIRED"
    retriable = True


class SegmentSealedError(SegmentStoreError):
    """The segment has ended; its successors take over its key range."""

    code = "PRAVEGA-SEGMENT-SEALED"


class SegmentTruncatedError(SegmentStoreError):
    """The offset lies before the first one that the segment still holds."""

    code = "PRAVEGA-SEGMENT-TRUNCATED"

    def __init__(self, message: str, *, start_offset: int) -> None:
        self.start_offset = start_offset
        super().__init__(message)


class NoSuchSegmentError(SegmentStoreError):
    """The segment was deleted, truncated away, or never existed."""

    code = "PRAVEGA-NO-SUCH-SEGMENT"


class WrongHostError(SegmentStoreError):
    """The segment lives on another segment store now."""

    code = "PRAVEGA-WRONG-HOST"
    retriable = True


class EventNumberError(SegmentStoreError):
    """An append was refused because its writer id has moved on (InvalidEventNumber)."""

    code = "PRAVEGA-EVENT-NUMBER"
    retriable = True


class TransactionError(ConnectorError):
    """A transaction is not in the state that was asked for."""

    code = "PRAVEGA-TRANSACTION"
    fault: ClassVar[Fault] = "remote"


class TransactionCommittedError(TransactionError):
    """The transaction is committed, or about to be: it takes no more events and cannot be aborted."""

    code = "PRAVEGA-TRANSACTION-COMMITTED"


class TransactionAbortedError(TransactionError):
    """The transaction is aborted, or about to be, by a client or by its lease: its events are gone."""

    code = "PRAVEGA-TRANSACTION-ABORTED"


class TransactionExpiredError(TransactionAbortedError):
    """The transaction was aborted because its lease ended before it was pinged or committed."""

    code = "PRAVEGA-TRANSACTION-EXPIRED"


class TransactionUnknownError(TransactionError):
    """The controller knows no such transaction: never there, or completed so long ago that it is forgotten.

    It does not say whether the transaction was committed.
    """

    code = "PRAVEGA-TRANSACTION-UNKNOWN"


class LeaseRangeError(TransactionError):
    """The server does not allow such a lease; ``shortest`` and ``longest`` are its bounds (seconds; None: unknown)."""

    code = "PRAVEGA-LEASE-RANGE"
    fault = "local"

    def __init__(self, message: str, *, shortest: float | None = None, longest: float | None = None) -> None:
        self.shortest, self.longest = shortest, longest
        super().__init__(message)


class ReaderGroupError(ConnectorError):
    """A reader group is not as it would have to be for what was asked."""

    code = "PRAVEGA-READER-GROUP"


class GroupStateError(ReaderGroupError):
    """The state of a group holds an update that does not fit: no client can go on with it before a reset."""

    code = "PRAVEGA-GROUP-STATE"
    fault: ClassVar[Fault] = "data"


class ReaderOnlineError(ReaderGroupError):
    """The group has a reader of that id: it reads, or has died and must be taken offline first."""

    code = "PRAVEGA-READER-ONLINE"


class ReaderOfflineError(ReaderGroupError):
    """The reader was taken offline, or the group was reset: what it read since its last checkpoint comes again."""

    code = "PRAVEGA-READER-OFFLINE"


class OutcomeUnknownError(ConnectorError):
    """It is unknown whether a step took effect within the time: it may have, it may do so yet, or never.

    Repeating the very same step is safe and tells; taking it for done, or for refused, is not.
    """

    code = "PRAVEGA-OUTCOME-UNKNOWN"
    fault = "remote"
    retriable = True


class DeadlineExceededError(ConnectorError):
    """Something was not done in time; what was acknowledged until then is durable."""

    code = "PRAVEGA-DEADLINE-EXCEEDED"
    fault = "remote"
    retriable = True


class DataLossError(ConnectorError):
    """Events that a reader still wanted are gone: truncated by retention, or deleted."""

    code = "PRAVEGA-DATA-LOSS"
    fault = "remote"


class TimeUnknownError(ConnectorError):
    """The position of a time in a stream is unknown: there is no watermark for it, or not yet."""

    code = "PRAVEGA-TIME-UNKNOWN"


class ExactlyOnceError(ConnectorError):
    """A batch cannot be committed exactly once, or not now."""

    code = "PRAVEGA-EXACTLY-ONCE"
    fault: ClassVar[Fault] = "remote"


class FencedError(ExactlyOnceError):
    """Another run of the query has taken over; this one wrote nothing that can be seen."""

    code = "PRAVEGA-FENCED"
    fault = "local"


class DuplicateWriteError(ExactlyOnceError):
    """One run wrote the same batch twice: two writes of a batch need application ids of their own."""

    code = "PRAVEGA-DUPLICATE-WRITE"
    fault = "local"


class LedgerMissingError(ExactlyOnceError):
    """The ledger does not know a query that has committed batches: it was deleted, or the query had no ledger."""

    code = "PRAVEGA-LEDGER-MISSING"
    fault = "local"


class AppIdReusedError(ExactlyOnceError):
    """The application id belongs to another query, whose versions are as high already."""

    code = "PRAVEGA-APP-ID-REUSED"
    fault = "local"


class LeaseExpiredError(ExactlyOnceError):
    """A task's transaction ended before its batch was recorded; nothing of the batch is visible."""

    code = "PRAVEGA-LEASE-EXPIRED"
    retriable = True


class TornBatchError(ExactlyOnceError):
    """A part of a batch is visible and a part is lost, or the server has forgotten which: an operator must choose."""

    code = "PRAVEGA-TORN-BATCH"


class LostBatchError(ExactlyOnceError):
    """A batch that Spark has done with was recorded and never became visible."""

    code = "PRAVEGA-LOST-BATCH"


class ReplayDiffersError(ExactlyOnceError):
    """A committed batch was repeated with other rows, or is too old to be compared; the repetition wrote nothing."""

    code = "PRAVEGA-REPLAY-DIFFERS"
    fault = "local"


class UnfinishedBatchError(ExactlyOnceError):
    """A recorded batch cannot be finished without its rows, and this run has none."""

    code = "PRAVEGA-UNFINISHED-BATCH"


class LedgerFormatError(ExactlyOnceError):
    """The ledger holds something that this version cannot read."""

    code = "PRAVEGA-LEDGER-FORMAT"
    fault = "local"


class IngestError(ConnectorError):
    """A source cannot be ingested, or its ingestion cannot go on."""

    code = "PRAVEGA-INGEST"


class SourceError(IngestError):
    """A source of an ingestion is not what it should be; nothing is lost, and another run goes on from there."""

    code = "PRAVEGA-SOURCE"
    fault = "data"
    source_id: str | None = None
    """The source, where it is known."""


class SourceUnreadableError(SourceError):
    """A source is missing, may not be read, or is damaged."""

    code = "PRAVEGA-SOURCE-UNREADABLE"


class SourceChangedError(SourceError):
    """A source is not what it was when it was read, or when a part of it was."""

    code = "PRAVEGA-SOURCE-CHANGED"


class BadRecordError(SourceError):
    """A record of a source does not fit the common columns."""

    code = "PRAVEGA-BAD-RECORD"


class IngestUndecidedError(IngestError):
    """The server does not know what became of a recorded transaction: an operator must choose."""

    code = "PRAVEGA-INGEST-UNDECIDED"


class IngestStateError(IngestError):
    """The state of an ingestion is not one that this version can go on from."""

    code = "PRAVEGA-INGEST-STATE"
    fault = "local"


class EventError(ConnectorError):
    """An event cannot be written."""

    code = "PRAVEGA-EVENT"
    fault = "data"


class EventTooLargeError(EventError):
    """An event is larger than the limit in force."""

    code = "PRAVEGA-EVENT-TOO-LARGE"


class NullEventError(EventError):
    """An event is null, and Pravega has no null events."""

    code = "PRAVEGA-NULL-EVENT"

    @classmethod
    def at_row(cls, row: int) -> NullEventError:
        """Error for a row of a column of events."""
        return cls(f"row {row} of the column is null, and Pravega has no null events: fill or drop it")


class InputLostError(ConnectorError):
    """A socket or pipe that events came from broke, or its address does not answer."""

    code = "PRAVEGA-INPUT-LOST"
    fault = "remote"
    retriable = True


class OutputFileError(ConnectorError):
    """A file cannot be written; nothing half is left under its name."""

    code = "PRAVEGA-OUTPUT-FILE"
    retriable = True


class LocalServerError(ConnectorError):
    """An embedded server cannot be started, or ended on its own."""

    code = "PRAVEGA-LOCAL-SERVER"


class JavaNotFoundError(LocalServerError):
    """Java is missing in the version that the servers need."""

    code = "PRAVEGA-JAVA-NOT-FOUND"


class JarDownloadError(LocalServerError):
    """The servers' jars could not be fetched."""

    code = "PRAVEGA-JAR-DOWNLOAD"
    fault = "remote"
    retriable = True
