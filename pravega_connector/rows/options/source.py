"""Options of the source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.rows.options import (
    CommonOptions,
    choice,
    flag,
    number,
    option,
    provider_name,
    registry_option,
    secret_option,
)
from pravega_connector.stores.segments import Lineage
from pravega_connector.wire import StreamName
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.routing import segment_key
from pravega_serde.suggestions import did_you_mean

if TYPE_CHECKING:
    from pravega_connector.stores.segment_stores import SegmentStores

# The Scala connector's columns, in its order.
METADATA_COLUMNS: Final = ("event", "scope", "stream", "segment_id", "offset")
# In addition: the encoding id at the start of a registry's events.
_ENCODING_ID: Final = "encoding_id"
# In addition: event times from the watermarks of the streams.
EVENT_TIME_COLUMNS: Final = ("event_time_low", "event_time_high")
#: Spark's default name of the column for corrupt records.
CORRUPT_RECORD: Final = "_corrupt_record"
_MAX_LONG: Final = 2**63 - 1
_ALSO_CREDENTIALS: Final = (
    *("also_registry_username", "also_registry_password"),
    *("also_registry_token", "also_registry_credential_provider"),
)
# Allowed names: part of a reader group name, followed by the name of a stream.
_SUBSCRIBER: Final = re.compile(r"[A-Za-z0-9.\-]{1,100}")
_POSITIONS: Final = (
    "a stream cut as text, `timestamp:2026-11-21T10:00:00Z` or milliseconds since 1970, `checkpoint:/path` of another "
    "query, or JSON with one of these for each stream, or its segments' offsets: "
    '`{"a/b": "earliest", "a/c": {"0.#epoch.0": 120}, "*": "latest"}`'
)


def _schema_version(name: str, value: str) -> dict[str, str]:
    """Parse ``latest``, or ``property=value`` pairs separated by commas."""
    if value.strip().lower() == "latest":
        return {}
    pairs = [[part.strip() for part in pair.split("=", 1)] for pair in value.split(",")]
    if not all(len(pair) == 2 and pair[0] for pair in pairs) or len({pair[0] for pair in pairs}) < len(pairs):
        raise ConfigError(
            f"option {name!r} must be latest, or different properties such as major=2,team=sales, not {value!r}"
        )
    return dict(pairs)


def _columns(name: str, value: str) -> tuple[str, ...]:
    columns = tuple(column.strip().lower() for column in value.split(","))
    known = (*METADATA_COLUMNS, _ENCODING_ID, *EVENT_TIME_COLUMNS)
    for column in columns:
        if column not in known:
            hint = did_you_mean(column, known)
            raise ConfigError(f"option {name!r} has no column {column!r}{hint}; known columns: {', '.join(known)}")
    if len(set(columns)) < len(columns):
        raise ConfigError(f"option {name!r} lists a column twice: {value!r}")
    return columns


def _items(text: str) -> tuple[str, ...]:
    """Return the items of a list that is separated by commas, or written as Python or JSON."""
    items = (item.strip().strip("'\"") for item in text.strip().removeprefix("[").removesuffix("]").split(","))
    return tuple(item for item in items if item)


def _subscriber_name(name: str, value: str) -> str:
    if not _SUBSCRIBER.fullmatch(value):
        raise ConfigError(f"option {name!r} must be ASCII letters, digits, '.' and '-', not {value!r}")
    return value


@dataclass(frozen=True, kw_only=True)
class SourceOptions(CommonOptions):
    """Options of ``spark.read`` and ``spark.readStream``."""

    paths: str | None = option(None, "several streams, set by `load([…])`")
    stream_pattern: str | None = option(
        None,
        "streams by globs (`orders-*`, `scope/orders-*`, `*/orders-*` for all scopes, separated by commas), "
        "`regex:` and a regular expression for the whole `scope/stream`, or `tag:` and a tag of the streams. "
        "Without a scope, they apply to the scopes of option `scope`, which may be several: `a,b`. Streams with "
        "the tag `pravega-serde.state` match only this tag, and a glob without a wildcard",
    )
    discovery_interval_ms: int = option(
        10_000,
        "with `stream_pattern`: interval in which a streaming query checks for new streams; it reads them "
        "from their head",
        number(100, 86_400_000),
        operator=True,
    )
    start_stream_cut: str | None = option(
        None,
        f"start position: `earliest`, `latest`, {_POSITIONS} (default: batch earliest, streaming latest)",
    )
    end_stream_cut: str | None = option(
        None,
        f"end position: `latest`, `unbounded`, {_POSITIONS} (default: batch latest, streaming unbounded)",
    )
    routing_key: str | None = option(
        None,
        "read the events of one routing key: only the segments that own it, through every scaling. An event does not "
        "carry its key, so also set `routing_key_field` or `keep_other_keys`",
    )
    routing_key_field: str | None = option(
        None,
        "with `routing_key`: decoded column with the routing key of an event, or a field in it, as in the sink. "
        "Events with other keys have no rows. A key that belongs to another segment raises an error",
    )
    keep_other_keys: bool = option(
        False,
        "with `routing_key`: read all events of the segments that own the key, also those with other keys",
        flag,
    )
    fail_on_data_loss: bool = option(
        True,
        "raise an error if unread events were truncated or deleted. If false, the query continues with the "
        "remaining events and logs the loss. The progress reports losses that the driver finds, but not losses "
        "in a task",
        flag,
    )
    publish_position: str | None = option(
        None,
        "streaming: name under which the query publishes its committed position, so that retention can "
        "truncate before it and keeps unread events. Use a separate name for each query. See "
        "docs/operate/monitoring.md",
        _subscriber_name,
        operator=True,
    )
    min_partitions: int | None = option(
        None,
        "minimum number of tasks for a batch that is large enough: segments are divided between events. "
        "Within a batch, the events of a segment are then ordered only by segment and offset",
        number(1, 100_000),
    )
    columns: tuple[str, ...] | None = option(
        None,
        "columns to read, of `event,scope,stream,segment_id,offset`. Without `format` the default is all "
        "five, with `format` none in addition to the decoded ones. Only `event` is the fastest. Also "
        "`encoding_id` of a registry event (null without one), and `event_time_low`, `event_time_high`: event"
        " time at the event by the stream's watermarks, null without one. `event_time_low` is a lower bound "
        "for streams that wait for slow writers (their `timestampAggregationTimeout`), see docs/spark/event-time.md",
        _columns,
    )
    unwrap: str | None = option(
        None,
        "`debezium`: the events are changes of a database, as Debezium writes them in `format` or with a registry. The "
        "columns are `op`, `before`, `after`, `ts`, `position` and `source`, see docs/serialization/change-events.md",
        choice("debezium"),
    )
    infer_schema: bool = option(
        False,
        "with `format` `json` or `cbor`: derive the columns from the first events of each stream, up to 1000,"
        " instead of `.schema(…)`. A field that is always null is a STRING. Other formats and registries "
        "define their columns. Also `inferSchema`, as in Spark",
        flag,
        alias="inferSchema",
    )
    raw_reader: str = option(
        "auto",
        "`jvm` reads and decodes inside Spark's JVM, and needs `configure(spark)`. `python` does so in Python. `auto` "
        "uses the JVM if it can",
        choice("auto", "jvm", "python"),
    )
    metadata: str | None = option(
        None,
        "batch: read metadata instead of events. `StreamInfo` is one row with the stream's `head_stream_cut` "
        "and `tail_stream_cut` as text. `Streams` is a row per stream of the scopes, with `scope_name` and "
        "`stream_name`",
        choice("StreamInfo", "Streams"),
    )
    mode: str = option(
        "FAILFAST",
        "handling of malformed records: `FAILFAST` stops with their position, `PERMISSIVE` returns nulls, the"
        " event in `_corrupt_record` and its error in `_corrupt_record_error`, `DROPMALFORMED` drops them",
        choice("FAILFAST", "PERMISSIVE", "DROPMALFORMED"),
    )
    dead_letter_stream: str | None = option(
        None,
        "dead-letter queue: stream, of the same scope or `scope/stream`, that gets each malformed record "
        "once, as JSON text with its position, the error and its bytes. The query continues as with "
        "DROPMALFORMED, unless `mode` is PERMISSIVE",
    )
    dead_letter_path: str | None = option(
        None, "dead-letter queue as files of JSON lines, in a folder that driver and executors share"
    )
    column_name_of_corrupt_record: str = option(
        CORRUPT_RECORD,
        "name of the column of malformed records, and with `_error` after it of the column of their errors. "
        "Also `columnNameOfCorruptRecord`, as in Spark",
        alias="columnNameOfCorruptRecord",
    )
    schema_version: Mapping[str, str] | None = registry_option(
        None,
        "version of the registry's schemas to read as: `latest`, which is the default, or the latest one with these "
        "properties in its metadata, such as `major=2,team=sales`, in a Confluent registry",
        _schema_version,
    )
    schema_evolution: str = registry_option(
        "resolve",
        "handling of events with an earlier or later version of the schema than the query's: `resolve` them to the "
        "query's schema, or treat them as `corrupt` (see `mode`)",
        choice("resolve", "corrupt"),
    )
    unknown_encoding_ids: str = registry_option(
        "fail",
        "handling of events with an encoding id that the registry does not have: `fail`, or treat them as `corrupt`",
        choice("fail", "corrupt"),
    )
    fail_on_codec_mismatch: bool = registry_option(
        True,
        "raise an error for a group with codecs other than gzip and snappy, even if no event has them",
        flag,
        operator=True,
    )
    also_registry: str | None = registry_option(
        None,
        "second registry, whose events are in the same streams and have another header, such as "
        "`confluent+http://localhost:8081`. The columns are those of `registry`",
    )
    also_group: str | None = registry_option(None, "group in `also_registry`. Both options are set together")
    also_registry_username: str | None = registry_option(None, "user name for `also_registry`")
    also_registry_password: str | None = secret_option(
        "with a registry: password that goes with `also_registry_username`"
    )
    also_registry_token: str | None = secret_option("with a registry: bearer token for `also_registry`")
    also_registry_credential_provider: str | None = registry_option(
        None, "`package.module:name` of a credential provider for `also_registry`", provider_name
    )
    max_bytes_per_trigger: int | None = option(
        None,
        "most bytes of one micro-batch of all streams, including 8 for each event. A larger event is read in a "
        "separate batch. Also `approx_bytes_per_trigger`, as in the Scala connector",
        number(1, _MAX_LONG),
        alias="approx_bytes_per_trigger",
    )
    max_rows_per_trigger: int | None = option(
        None, "most events of one micro-batch of all streams", number(1, _MAX_LONG)
    )

    def __post_init__(self) -> None:
        """Raise ConfigError for options that conflict about the streams to read, or the second registry."""
        super().__post_init__()
        if (self.also_registry is None) != (self.also_group is None):
            raise ConfigError("options 'also_registry' and 'also_group' belong together: set both, or none")
        if self.also_registry is None:
            for name in _ALSO_CREDENTIALS:
                if getattr(self, name) is not None:
                    raise ConfigError(f"option {name!r} requires option 'also_registry'")
        if self.stream_pattern is not None:
            for name in ("stream", "path", "paths"):
                if getattr(self, name) is not None:
                    raise ConfigError(f"options 'stream_pattern' and {name!r} both select the streams: set only one")
        self._check_routing_key()
        self._check_unwrap()
        if self.infer_schema and self.format is None and not self.from_registry:
            raise ConfigError(
                "option 'infer_schema' requires option 'format' or 'registry': raw events have one column"
            )
        if self.dead_letter_stream is not None and self.dead_letter_path is not None:
            raise ConfigError(
                "options 'dead_letter_stream' and 'dead_letter_path' both set the dead-letter queue: set only one"
            )
        if self.has_dead_letters and self.format is None and not self.from_registry:
            raise ConfigError(
                "a dead-letter queue gets events that cannot be decoded: set option 'format' or 'registry'"
            )

    def _check_routing_key(self) -> None:
        # A table has the options of its sink, too: there, 'routing_key_field' alone is valid.
        if self.routing_key is None:
            if self.keep_other_keys:
                raise ConfigError("option 'keep_other_keys' requires option 'routing_key'")
            return
        if (self.routing_key_field is None) == (not self.keep_other_keys):
            raise ConfigError(
                "option 'routing_key' requires one of 'routing_key_field' and 'keep_other_keys', because an event does "
                "not carry its routing key: set 'routing_key_field' to the column with the key. Or set "
                "keep_other_keys=true to read all events of the segments that own the key"
            )
        if self.routing_key_field is not None and self.format is None and not self.from_registry:
            raise ConfigError(
                "option 'routing_key_field' requires option 'format' or 'registry': raw events have no fields. Or set "
                "keep_other_keys=true, and filter the rows"
            )

    def _check_unwrap(self) -> None:
        if self.unwrap is None:
            return
        if self.envelope is not None:
            raise ConfigError("options 'unwrap' and 'envelope' both define what is around the data: set only one")
        if self.format is None and not self.from_registry:
            raise ConfigError("option 'unwrap' requires option 'format' or 'registry': the form of the events")

    def lineage(self, stores: SegmentStores, stream: StreamName) -> Lineage:
        """Return the segments of a stream that the options select, by their routing key."""
        return Lineage(stores, stream, self.key_position)

    @property
    def key_position(self) -> float | None:
        """Position of the routing key to read on the key line, or None for all keys."""
        if self.routing_key is None:
            return None
        return segment_key(self.routing_key)

    @property
    def has_dead_letters(self) -> bool:
        """True if malformed events go to a dead-letter queue."""
        return self.dead_letter_stream is not None or self.dead_letter_path is not None

    @property
    def decode_mode(self) -> str:
        """Mode of decoding: with a dead-letter queue, malformed events do not stop the query."""
        return "DROPMALFORMED" if self.has_dead_letters and self.mode == "FAILFAST" else self.mode

    def dead_letter_stream_name(self) -> StreamName:
        """Return the stream for dead letters. Raises ConfigError without a scope."""
        assert self.dead_letter_stream is not None
        if "/" in self.dead_letter_stream:
            return StreamName.parse(self.dead_letter_stream)
        scopes = {name.scope for name in self.stream_names()} if self.stream_pattern is None else set(self.scopes())
        if len(scopes) != 1:
            raise ConfigError(f"option 'dead_letter_stream' has no scope: write 'scope/{self.dead_letter_stream}'")
        return StreamName(scopes.pop(), self.dead_letter_stream)

    def scopes(self) -> tuple[str, ...]:
        """Return the scopes that the option ``scope`` or the environment names."""
        if self.scope is not None:
            return _items(self.scope)
        scope = self.config.scope
        return () if scope is None else (scope,)

    def _resolve(self, scope: str | None) -> PravegaConfig:
        """Resolve without a scope if the options name several."""
        return super()._resolve(None if scope is not None and len(_items(scope)) > 1 else scope)

    def scopes_to_list(self) -> tuple[str, ...]:
        """Return the scopes for ``metadata=Streams``: ``scope``, or the scope in the path or ``stream``.

        Raises ConfigError if there is none.
        """
        given = self.path or self.stream or ""
        scopes = self.scopes() or tuple(dict.fromkeys(each.strip("/").split("/")[0] for each in _items(given)))
        if not scopes:
            raise ConfigError("metadata=Streams requires a scope: set option 'scope', or load('scope')")
        return scopes

    def stream_names(self) -> tuple[StreamName, ...]:
        """Return the named streams, sorted.

        Raises ConfigError if no stream is named, or if two options name different ones.
        """
        given = {name: getattr(self, name) for name in ("path", "paths", "stream") if getattr(self, name) is not None}
        if all(_items(value) == (value.strip(),) for value in given.values()):
            return (super().stream_name(),)
        named = {name: tuple(sorted(set(map(self._named, _items(value))))) for name, value in given.items()}
        if len(set(named.values())) > 1:
            raise ConfigError(f"options {' and '.join(map(repr, named))} name different streams: set only one")
        return next(iter(named.values()))

    def stream_name(self) -> StreamName:
        """Return the only stream. Raises ConfigError if there are, or may be, several."""
        names = () if self.stream_pattern is not None else self.stream_names()
        if len(names) != 1:
            raise ConfigError("the query reads several streams: with a schema registry, set option 'group'")
        return names[0]

    def _single_stream(self) -> str | None:
        named = self.stream_pattern is None and (self.stream or self.path or self.paths)
        names = self.stream_names() if named else ()
        return str(names[0]) if len(names) == 1 else None

    def also_registries(self, timeout: float) -> dict[RegistryConfig, str]:
        """Return the second registry with its group, if there is one. Its settings come only from the options."""
        if self.also_registry is None or self.also_group is None:
            return {}
        config = RegistryConfig(
            uri=self.also_registry,
            username=self.also_registry_username,
            password=self.also_registry_password,
            token=self.also_registry_token,
            credential_provider=self.also_registry_credential_provider,
            ca_file=self.registry_ca_file,
            ca_password=self.registry_ca_password,
            timeout=timeout,
        )
        return {config: self.also_group}

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        """Columns that are not decoded, in the order in which they are delivered."""
        if self.columns is not None:
            return self.columns
        return METADATA_COLUMNS if self.format is None and not self.from_registry else ()
