"""Options of the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.core.values import RetentionPolicy, ScalingPolicy
from pravega_connector.errors import ConfigError, InvalidNameError, LeaseRangeError
from pravega_connector.rows.options import CommonOptions, choice, codec_names, flag, number, option, registry_option
from pravega_connector.wire import StreamName

#: Column that names the stream of each row if the options name none.
TARGET_STREAM: Final = "target_stream"
_MAX_INT: Final = 2**31 - 1
_MAX_LONG: Final = 2**63 - 1


def _codec(name: str, value: str) -> str:
    """Parse the name of a known codec, or ``package.module:name`` of a custom one."""
    if ":" in value:
        (place,) = codec_names(name, value.replace(",", " "))
        return place
    return choice("gzip", "snappy")(name, value)


@dataclass(frozen=True, kw_only=True)
class SinkOptions(CommonOptions):
    """Options of ``df.write`` and ``df.writeStream``."""

    writer_mode: str | None = option(
        None,
        "`exactly_once`: each row is in the stream once, through retries and failures (batch writes and "
        "`foreachBatch` need `txn_app_id` and `txn_version`). `at_least_once`: a task succeeds when its "
        "events are durable, and a retried task writes them again. `best_effort`: events that the servers do "
        "not accept in time are dropped and counted. Default: `exactly_once` in streaming queries and with "
        "the two ids, otherwise `at_least_once`",
        choice("exactly_once", "at_least_once", "best_effort"),
    )
    exactly_once: bool | None = option(
        None, "the Scala connector's name: `true` is `writer_mode=exactly_once`, `false` is `at_least_once`", flag
    )
    txn_app_id: str | None = option(
        None,
        "exactly once in a batch write or `foreachBatch`: id of the application. Use a separate id for each "
        "write in one `foreachBatch`",
    )
    txn_version: int | None = option(
        None,
        "exactly once in a batch write or `foreachBatch`: increasing number of the write of `txn_app_id` (in "
        "`foreachBatch` the batch id). A committed version is not written again, and raises an error with "
        "other rows",
        number(0, _MAX_LONG),
    )
    transaction_timeout_ms: int = option(
        600_000,
        "transaction timeout: lease of a task's transaction. It must exceed pauses of the driver, the slowest task, "
        "and `commit_timeout_ms`. The servers allow 600 s by default",
        number(1_000, _MAX_INT),
        operator=True,
    )
    commit_timeout_ms: int | None = option(
        None,
        "longest commit of a batch before the query fails, shorter than `transaction_timeout_ms` (default: "
        "`failover_timeout_ms`)",
        number(1_000, 86_400_000),
        operator=True,
    )
    ledger: str | None = option(
        None,
        "stream for the committed batches, in the scope of the target, or as `scope/stream`. Several targets may share "
        "one (default: `<stream>-ledger`). Required with the column `target_stream`",
        operator=True,
    )
    ledger_adopt: bool = option(
        False, "accept a query that is not in the ledger. Set it for one run, after a manual check", flag, operator=True
    )
    accept_recorded_batch: int | None = option(
        None,
        "number of a committed batch (or `txn_version`) that was replayed with other rows "
        "(`PRAVEGA-REPLAY-DIFFERS`): the committed rows count, and the rows of the replay are dropped. It "
        "applies only to that number. Use it after a manual check, for queries that cannot repeat their rows "
        "(`rand()`, `uuid()`)",
        number(0, _MAX_LONG),
        operator=True,
    )
    raw_writer: str = option(
        "auto",
        "`jvm` writes raw events inside Spark's JVM, and needs `configure(spark)` and Spark 4.2 or newer. `python` "
        "writes them in Python. `auto` uses the JVM if it can",
        choice("auto", "jvm", "python"),
    )
    routing_key_field: str | None = option(
        None,
        "column (text, whole number or boolean) with the routing key, or a field in it: `customer`, "
        "`order.customer`. It stays part of the event. Without it, a column `routing_key` is the key and not "
        "part of the event",
    )
    routing_key: str | None = option(None, "one routing key for all events: one order, one segment at a time")
    cloudevents_source: str | None = option(
        None, "with `envelope`: source of the events without the header `source`, such as `/shop/orders`"
    )
    cloudevents_type: str | None = option(
        None, "with `envelope`: type of the events without the header `type`, such as `order.created`"
    )
    event_time_column: str | None = option(
        None,
        "column (TIMESTAMP, TIMESTAMP_NTZ, DATE, or BIGINT in milliseconds since 1970) with the rows' event "
        "times. When a batch is visible, its latest time is noted, so that the stream gets watermarks for "
        "readers of every client. The column stays part of the event, unless the events are raw",
    )
    event_time_delay_ms: int = option(
        0,
        "with `event_time_column`: largest delay of a later batch's row after the latest row, like the delay "
        "of `withWatermark`. It is subtracted from the noted time",
        number(0, _MAX_LONG),
    )
    register_schema: bool = registry_option(
        False,
        "add the schema if the registry does not have it: the schema of the options, or a schema derived from the "
        "columns if the latest schema of the type does not match them",
        flag,
    )
    create_group: bool = registry_option(
        False,
        "create the group if it does not exist, for the format and several types. Its policy is compatibility"
        " with all earlier schemas both ways (Avro) or none (JSON, Protobuf)",
        flag,
    )
    codec: str | None = registry_option(
        None,
        "`gzip`, `snappy`, or a custom one as `package.module:name`. Without it, events are not encoded",
        _codec,
    )
    register_codec: bool = registry_option(False, "add the codec if the group does not have it", flag)
    typed_java_readers: bool = registry_option(
        True,
        "set it to false to write JSON or Protobuf with a codec, which Java's typed readers of these formats "
        "do not support",
        flag,
        operator=True,
    )
    normalize: bool = registry_option(
        False, "a Confluent or Apicurio registry normalizes schemas before it compares them", flag
    )
    max_event_size: int = option(
        MAX_EVENT_SIZE,
        "largest event in bytes. Java and Rust clients write 8 MiB at most",
        number(1, _MAX_INT),
        operator=True,
    )
    write_timeout_ms: int | None = option(
        None,
        "longest wait of a write for the servers to accept the bytes in flight (default: `failover_timeout_ms`)",
        number(100, 86_400_000),
        operator=True,
    )
    allow_create_scope: bool = option(False, "create the scope if it does not exist", flag)
    allow_create_stream: bool = option(False, "create the stream if it does not exist", flag)
    default_num_segments: int = option(
        1, "segments of a stream that is created (the least, if it scales)", number(1, _MAX_INT)
    )
    default_scale_factor: int = option(
        2, "parts that a hot segment of a created stream is split into", number(1, _MAX_INT)
    )
    default_segment_target_rate_bytes_per_sec: int | None = option(
        None, "created streams scale by this rate of one segment", number(1, _MAX_LONG)
    )
    default_segment_target_rate_events_per_sec: int | None = option(
        None, "created streams scale by this rate of one segment", number(1, _MAX_INT)
    )
    default_retention_duration_milliseconds: int | None = option(
        None, "created streams keep events for this time", number(1, _MAX_LONG)
    )
    default_retention_size_bytes: int | None = option(
        None, "created streams keep this many bytes", number(1, _MAX_LONG)
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for a framing without its id."""
        super().__post_init__()
        self.check_framing(writing=True)

    _NO_STREAM: ClassVar[str] = (
        "no stream is set: set option 'stream', or save('scope/stream'), or add a column 'target_stream' with the "
        "stream of each row"
    )

    def stream_named(self, text: str | None) -> StreamName:
        """Return the stream that a row's text names; None selects the options' stream.

        Raises InvalidNameError, ConfigError.
        """
        if text is None:
            return self.stream_name()
        if not text.strip("/ "):
            raise InvalidNameError(
                "the name of a stream is empty: write 'scope/stream', or 'stream' with option 'scope'"
            )
        return self._named(text)

    @property
    def commit_timeout(self) -> float:
        """Maximum duration of the commit of a batch, in seconds."""
        return (self.commit_timeout_ms or self.failover_timeout_ms) / 1000

    def check_lease(self) -> None:
        """Raise LeaseRangeError if the lease of a transaction is not longer than the maximum duration of a commit."""
        lease, commit = self.transaction_timeout_ms, round(self.commit_timeout * 1000)
        if lease <= commit:
            source = "" if self.commit_timeout_ms else ", which is failover_timeout_ms unless it is set"
            raise LeaseRangeError(
                f"transaction_timeout_ms {lease} is not longer than commit_timeout_ms {commit}{source}: transactions "
                "could end during the commit of their batch, and part of the batch could be lost. Raise "
                f"transaction_timeout_ms, or set commit_timeout_ms below {lease}"
            )

    @property
    def write_timeout(self) -> float:
        """Maximum duration of a write, in seconds."""
        return (self.write_timeout_ms or self.failover_timeout_ms) / 1000

    def mode(self, *, streaming: bool) -> str:
        """Return the delivery guarantee of a write. Raises ConfigError for a conflict or a missing id."""
        mode = self.writer_mode
        if self.exactly_once is not None:
            asked = "exactly_once" if self.exactly_once else "at_least_once"
            if mode is not None and (mode == "exactly_once") is not self.exactly_once:
                raise ConfigError(f"exactly_once={self.exactly_once} contradicts writer_mode={mode}: set only one")
            mode = mode or asked
        ids = (self.txn_app_id is not None) + (self.txn_version is not None)
        if ids == 1:
            raise ConfigError(
                "txn_app_id and txn_version must be set together: the id of the application, and the "
                "number of its write"
            )
        if streaming and ids:
            raise ConfigError(
                "txn_app_id and txn_version are for batch writes and foreachBatch: remove them, because a streaming "
                "query has its own ids"
            )
        if mode == "exactly_once" and not (streaming or ids):
            raise ConfigError(
                "writer_mode exactly_once requires txn_app_id and txn_version in a batch write: only they "
                "distinguish a repeated write from a new write"
            )
        if mode is None:
            return "exactly_once" if streaming or ids else "at_least_once"
        return mode

    def scaling(self) -> ScalingPolicy:
        """Scaling policy of a stream that the sink creates."""
        by_bytes, by_events = (
            self.default_segment_target_rate_bytes_per_sec,
            self.default_segment_target_rate_events_per_sec,
        )
        if by_bytes and by_events:
            raise ConfigError(
                "a created stream scales by bytes or by events: set only one default_segment_target_rate_…"
            )
        least, factor = self.default_num_segments, self.default_scale_factor
        if by_bytes:
            return ScalingPolicy.by_kbytes(max(1, by_bytes // 1024), factor, least)
        return ScalingPolicy.by_events(by_events, factor, least) if by_events else ScalingPolicy.fixed(least)

    def retention(self) -> RetentionPolicy | None:
        """Retention policy of a stream that the sink creates; None keeps everything."""
        time, size = self.default_retention_duration_milliseconds, self.default_retention_size_bytes
        if time and size:
            raise ConfigError("a created stream has retention by time or by size: set only one default_retention_…")
        if time:
            return RetentionPolicy.by_time(time)
        return RetentionPolicy.by_size(size) if size else None
