"""``tier``: follow a stream and write its events into a table of a lake, each once.

A run collects the rows of some events in memory, and commits them with the stream cut after them. The next run reads
the cut from the table. If two runs write the same stream, the table refuses the commit of one of them.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import target_of
from pravega_connector.core.arguments import Position
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.errors import ConfigError, DataLossError, FencedError, LakeTableError
from pravega_connector.lag import StreamLag, stream_lag
from pravega_connector.operations.tier.columns import TierColumns
from pravega_connector.operations.tier.lake_table import ConflictError, LakeTable, TierPosition, check_columns, no_merge
from pravega_connector.operations.tier.merge import DELETED, MergedRows, TierMerge
from pravega_connector.reader.positions import EndCut, cuts_of, valid_cut
from pravega_connector.reader.slices import EventBatch
from pravega_connector.reader.tail import TailReader
from pravega_connector.rows.options import parse_options, texts
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.stream_cuts import compare_cuts
from pravega_connector.wire import StreamCut
from pravega_serde.errors import MissingExtraError
from pravega_serde.format_table import imported

_log: Final = logging.getLogger(__name__)
# Columns that name an event, and the order of the events of a segment.
_PLACE: Final = "segment_id,offset"
_POLL: Final = 1.0  # seconds
#: Class of each kind of table, and the package that it requires.
_TABLES: Final = {
    "delta": ("pravega_connector.operations.tier.delta:DeltaLakeTable", "deltalake"),
    "iceberg": ("pravega_connector.operations.tier.iceberg:IcebergTable", "pyiceberg"),
}
_PAUSES: Final = (0.1, 5.0)  # first and longest seconds before a commit is repeated
#: Options of the source that a run sets itself, or that have no meaning for it.
_OWN: Final = (
    "start_stream_cut",
    "end_stream_cut",
    "routing_key",
    "routing_key_field",
    "keep_other_keys",
    "fail_on_data_loss",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSettings:
    """Settings of a run. Raises ConfigError for values out of range."""

    follow: bool = False
    """If True, wait for new events. Otherwise, end at the position that was the tail at the start."""
    target_bytes: int = 128 << 20
    """Approximate bytes of the events of one commit, which are kept in memory together with their rows."""
    max_interval: float = 60.0
    """Seconds after which rows are committed, also if they are fewer."""
    partition_by: tuple[str, ...] = ()
    """Columns whose values are folders of a new table."""
    sort_by: tuple[str, ...] = ()
    """Columns by which the rows of a commit are sorted."""
    truncate_after: float | None = None
    """Seconds after which committed events are truncated in the stream. None keeps them."""
    conflict_timeout: float = 300.0
    """Seconds for which a commit is repeated while other programs change the table."""
    merge: TierMerge | None = None
    """If set, events are changes of rows, which are merged into a Delta table by their key."""

    def __post_init__(self) -> None:
        if self.target_bytes < 1 or self.max_interval <= 0 or self.conflict_timeout < 0:
            raise ConfigError("tier: the bytes and seconds of a commit must be greater than 0")
        if self.truncate_after is not None and self.truncate_after < 0:
            raise ConfigError("tier: 'truncate_after' must be 0 seconds or more")


@dataclass(slots=True)
class TierCounts:
    """Totals of one run so far, all committed."""

    events: int = 0
    rows: int = 0
    commits: int = 0
    conflicts: int = 0
    """Commits that were repeated, because another program had changed the table."""


@dataclass(frozen=True, slots=True)
class TierSummary:
    """Outcome of one run."""

    counts: TierCounts
    position: TierPosition | None
    """Position in the table; None if the stream has had no event."""


#: Called with the counts after each commit.
Progress = Callable[[TierCounts], None]


def tier(
    stream: str,
    table: str,
    *,
    start: Position | None = None,
    schema: pa.Schema | None = None,
    settings: TierSettings | None = None,
    storage: Mapping[str, str] | None = None,
    on_commit: Progress = lambda _counts: None,
    **options: Any,
) -> TierSummary:
    """Write the events of a stream that a table does not have yet into it, each once.

    ``table`` is ``delta:PATH`` or ``iceberg:CATALOG.namespace.table``, and ``storage`` has the options of its object
    store or catalog. It is created if it does not exist. ``start`` is the position of the first run, by default the
    head. ``options`` are those of the Spark source, and return the same columns. By default, ``segment_id`` and
    ``offset`` are columns in addition: they name each event, and have its order. ``schema`` has the decoded columns;
    without it, JSON and CBOR have the columns of the table, or of the events that the stream has at the first run.
    Columns that the table lacks are added to it. With ``settings.merge``, events are changes of rows: change events
    with ``unwrap="debezium"``, or rows with a key.

    On return, all rows are committed. Raises ConfigError, ColumnTypeError, LakeTableError, FencedError if another run
    writes the stream into the table, StreamNotFoundError, DataLossError, DeserializationError, RegistryErrors.
    """
    chosen, own = source_options(stream, options), settings or TierSettings()
    if own.merge is not None and table.startswith("iceberg:"):
        raise no_merge(table)
    with connected(chosen) as client:
        run = _Run(client, chosen, open_table(table, storage or {}), own, on_commit)
        return run.run(start, schema)


def tier_status(
    stream: str, table: str, *, storage: Mapping[str, str] | None = None, **options: Any
) -> tuple[TierPosition | None, StreamLag | None]:
    """Return the position of a stream in a table, and its lag; None before the first commit. Nothing is written."""
    chosen = source_options(stream, options)
    with connected(chosen) as client:
        position = open_table(table, storage or {}).position(str(chosen.stream_name()))
        return position, None if position is None else stream_lag(client, position.stream_cut())


def open_table(table: str, storage: Mapping[str, str]) -> LakeTable:
    """Return the table of a name. Raises ConfigError for a name without a kind, MissingExtraError."""
    kind, _, name = table.partition(":")
    if not ((kind == "delta" and name) or (kind == "iceberg" and name.count(".") > 1)):
        raise ConfigError(f"unknown table {table!r}: write delta:PATH or iceberg:CATALOG.namespace.table")
    place, package = _TABLES[kind]
    try:
        opened: Callable[[str, Mapping[str, str]], LakeTable] = imported(place)
    except ImportError:
        raise MissingExtraError(package, "lake", purpose=f"a table of {kind.title()}") from None
    return opened(name, storage)


def source_options(stream: str, options: Mapping[str, Any]) -> SourceOptions:
    """Return the parsed options, with the columns that tables have. Raises ConfigError."""
    for name in _OWN:
        if options.get(name) is not None:
            raise ConfigError(f"tables have no option {name!r}: they have all events up to a position")
    given = {"path": stream, "columns": _PLACE, **texts(options)}
    chosen = parse_options(SourceOptions, given)
    if chosen.format is None and not chosen.from_registry and "event" not in chosen.metadata_columns:
        chosen = parse_options(SourceOptions, {**given, "columns": f"event,{given['columns']}"})
    if chosen.has_dead_letters:
        raise ConfigError("dead-letter queues are for Spark queries: set option 'mode' for the malformed events")
    return chosen


def connected(options: SourceOptions) -> PravegaClient:
    """Return a client for the options."""
    return PravegaClient(
        options.config, timeout=options.timeout_ms / 1000, failover_timeout=options.failover_timeout_ms / 1000
    )


class _Run:
    """One run. Not thread safe."""

    def __init__(
        self,
        client: PravegaClient,
        options: SourceOptions,
        table: LakeTable,
        settings: TierSettings,
        on_commit: Progress,
    ) -> None:
        self._client, self._options = client, options
        self._table, self._name = table, str(table)
        self._settings, self._on_commit = settings, on_commit
        self._stream = options.stream_name()
        self._counts = TierCounts()
        self._position: TierPosition | None = None
        self._committed: deque[tuple[float, TierPosition]] | None = None  # with their times, until truncated
        self._checked: pa.Schema | None = None
        merge = settings.merge
        self._merged = None if merge is None else MergedRows(merge, options, self._name)

    def run(self, start: Position | None, schema: pa.Schema | None) -> TierSummary:
        client, stream = self._client, self._stream
        self._target = target_of(client.controller, stream)
        self._position = self._table.position(str(stream))
        cut = self._begin(start)
        end = None if self._settings.follow else EndCut(client.tail(stream))
        known = self._table.schema()
        self._columns = TierColumns(
            self._options, schema, known if self._merged is None else self._merged.events(known)
        )
        try:
            with TailReader(client.stores, cut) as reader:
                while not reader.at_end and not (end is not None and end.is_reached(reader.position.positions)):
                    self._round(reader, end)
        except DataLossError as error:
            if self._table.position(str(stream)) != self._position:
                raise self._fenced() from error  # which has truncated the events after its commit
            raise
        return TierSummary(self._counts, self._position)

    def _begin(self, start: Position | None) -> StreamCut:
        """Return the cut at which the run begins."""
        position = self._position
        if position is not None and position.merged != (self._merged is not None):
            has, option = ("merged rows", "with") if position.merged else ("all events", "without")
            raise ConfigError(
                f"{self._name} has {has} of stream {self._stream}: continue {option} 'merge' (--merge-by), or write "
                "into another table"
            )
        if position is not None and position.stream == self._target:
            if start is not None:
                raise ConfigError(
                    f"{self._name} has the events of stream {self._stream} up to a cut, and continues there: omit "
                    "'start', or write into another table"
                )
            return position.stream_cut()
        if position is not None and start is None:
            raise ConfigError(
                f"stream {self._stream} was deleted and created again since the last commit of {self._name}: set "
                "'start' (--start earliest) to add the events of the new one"
            )
        (cut,) = cuts_of(self._client, [self._stream], start, "start", default="earliest")
        return valid_cut(self._client, cut)

    # ---- rounds ----

    def _check(self, schema: pa.Schema) -> None:
        """Raise ColumnTypeError or ConfigError for columns that the table cannot have. Schemas are checked once."""
        if schema == self._checked:
            return
        check_columns(schema, self._name)
        for name in (*self._settings.partition_by, *self._settings.sort_by):
            if name not in schema.names:
                raise ConfigError(f"{self._name}: there is no column {name!r}; columns: {', '.join(schema.names)}")
        for name in self._settings.sort_by:
            kind = schema.field(name).type
            try:
                pa.table({name: pa.nulls(2, kind)}).sort_by(name)
            except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
                raise ConfigError(f"{self._name}: column {name!r} of type {kind} cannot sort the rows") from None
        for name in self._settings.partition_by:
            kind = schema.field(name).type
            if pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_binary(kind):
                raise ConfigError(f"{self._name}: column {name!r} of type {kind} cannot be a partition column")
        self._checked = schema

    def _round(self, reader: TailReader, end: EndCut | None) -> None:
        """Collect the next events, and commit their rows."""
        batches: list[EventBatch] = []
        size = 0
        until: float | None = None
        while size < self._settings.target_bytes and not reader.at_end:
            left = _POLL if until is None else min(_POLL, until - time.monotonic())
            if left <= 0 or (end is not None and end.is_reached(reader.position.positions)):
                break
            batch = reader.poll(left)
            if batch is None:
                self._truncate()
                continue
            until = until or time.monotonic() + self._settings.max_interval
            batches.append(batch)
            size += batch.events.nbytes
        if batches:
            rows = self._columns.rows(batches)
            count = rows.num_rows
            if self._merged is not None:
                rows = self._merged.of(rows)
            self._check(rows.schema)
            self._commit(rows, (sum(len(batch.events) for batch in batches), count), reader.position)
            self._truncate()

    def _commit(self, rows: pa.Table, counts: tuple[int, int], cut: StreamCut) -> None:
        """Commit rows, which are those of ``counts`` events and rows."""
        before, (events, count) = self._position, counts
        total = (0, 0, 0) if before is None else (before.version, before.events, before.rows)
        position = TierPosition(
            stream=self._target,
            cut=cut.to_text(),
            version=total[0] + 1,
            run=uuid.uuid4().hex,
            events=total[1] + events,
            rows=total[2] + count,
            merged=self._merged is not None,
        )
        if before is None and self._table.schema() is None:
            keeps = self._settings.merge is None or self._settings.merge.keep_deleted
            self._create(rows.schema if keeps else rows.drop_columns([DELETED]).schema)
        if self._settings.sort_by:
            rows = rows.sort_by([(name, "ascending") for name in self._settings.sort_by])
        self._add(rows, position)
        self._position = position
        if self._committed is not None:
            self._committed.append((time.time(), position))
        self._counts.events += events
        self._counts.rows += count
        self._counts.commits += 1
        self._on_commit(replace(self._counts))

    def _create(self, schema: pa.Schema) -> None:
        self._table.create(schema, self._settings.partition_by)
        if self._table.position(str(self._stream)) is not None:
            raise self._fenced()

    def _fenced(self) -> FencedError:
        return FencedError(
            f"{self._name}: another run writes stream {self._stream} into this table, and this one added nothing since "
            "its last commit: stop one of the two"
        )

    def _add(self, rows: pa.Table, position: TierPosition) -> None:
        """Commit rows and position. If the outcome is unknown, the table tells it."""
        polls = Polls(Deadline(self._settings.conflict_timeout), *_PAUSES)
        while True:
            try:
                if self._settings.merge is None:
                    self._table.commit(rows, position)
                else:
                    self._table.merge(rows, position, self._settings.merge)
                return
            except (ConflictError, LakeTableError) as error:
                failure = error
            found = self._table.position(str(self._stream))
            if found == position:
                _log.info("%s: the commit was done, though its answer was lost", self._name)
                return
            if found is None and self._position is not None:
                raise LakeTableError(
                    f"{self._name}: the table was deleted or replaced during the run, with the position of stream "
                    f"{self._stream}: run again to write it from the start, or restore the table"
                ) from failure
            if found != self._position:
                raise self._fenced() from failure
            if isinstance(failure, LakeTableError):
                raise failure
            if not polls.again():
                raise LakeTableError(
                    f"{self._name}: other programs changed the table for {self._settings.conflict_timeout:.0f} s, and "
                    "no commit was possible between their commits; try again when they have ended"
                ) from failure
            self._counts.conflicts += 1

    # ---- truncation ----

    def _truncate(self) -> None:
        """Truncate the stream at the newest cut that was committed long enough ago."""
        age = self._settings.truncate_after
        if age is None or self._position is None:
            return
        if self._committed is None:
            kept = [(at / 1000, position) for at, position in self._table.positions(str(self._stream))]
            self._committed = deque(reversed(kept))
        before, old = time.time() - age, None
        while self._committed and self._committed[0][0] <= before:
            _, old = self._committed.popleft()
        if old is None or old.stream != self._target:
            return
        cut = old.stream_cut()
        if compare_cuts(self._client.head(self._stream), cut, self._client).relation == "before":
            self._client.truncate(cut)
            _log.info("stream %s was truncated at %s, which %s has", self._stream, cut, self._name)
