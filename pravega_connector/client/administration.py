"""Administration of scopes, streams and tables: create, list, describe, change, delete. Part of PravegaClient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from pravega_connector.config import PravegaConfig
from pravega_connector.core import arguments
from pravega_connector.core.arguments import IfExists, NamedTable, Stream
from pravega_connector.core.connection import ProcessBound
from pravega_connector.core.values import (
    AGGREGATION_TIMEOUT_MS,
    RetentionPolicy,
    ScalingPolicy,
    StreamConfig,
    TableConfig,
)
from pravega_connector.error_hints import HintedNames
from pravega_connector.errors import (
    ConfigError,
    ScopeExistsError,
    ScopeNotFoundError,
    StreamExistsError,
    StreamNotFoundError,
    TableExistsError,
    TableNotFoundError,
)
from pravega_connector.notebook import table
from pravega_connector.reader.slices import slices_between
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.stores.segments import tail_cut
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, TableName, segment_epoch, segment_number
from pravega_connector.wire.names import group_of

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

#: A list of more segments does not fit into an answer of the controller.
_MOST_SEGMENTS: Final = 700_000


@dataclass(frozen=True, slots=True)
class StreamDescription:
    """Settings, segments and size of a stream at one moment."""

    stream: StreamName
    """Its full name."""
    config: StreamConfig
    """Its scaling, retention and tags."""
    segments: tuple[SegmentRange, ...]
    """The segments that take events now, by id; none if it is sealed."""
    head: StreamCut
    """Cut before the first event that it still holds."""
    tail: StreamCut
    """Cut after its last event."""
    size: int
    """Bytes between the two, with 8 for each event."""

    @property
    def sealed(self) -> bool:
        """True if the stream is sealed and accepts no more events."""
        return not self.segments

    def _repr_html_(self) -> str:
        rows = [
            (
                f"{segment_number(each.id)}.#epoch.{segment_epoch(each.id)}",
                f"{each.low:.4g} to {each.high:.4g}",
                self.tail.positions.get(each.id, ""),
            )
            for each in self.segments
        ]
        caption = f"stream {self.stream}: {self.size:,} bytes{', sealed' if self.sealed else ''}"
        return table(caption, ("segment", "routing keys", "tail"), rows, len(rows))


class StreamChanges(TypedDict, total=False):
    """Settings that :meth:`Administration.update_stream` changes; the others stay."""

    segments: ScalingPolicy | int
    """Scaling policy, or a fixed number of segments: then the stream is scaled at once."""
    retention: RetentionPolicy | None
    """Retention policy; None keeps everything."""
    tags: Iterable[str]
    """Words to find the stream by: see :meth:`Administration.streams`."""
    timestamp_aggregation_timeout_ms: int
    """See :class:`StreamConfig`."""
    rollover_size_bytes: int
    """See :class:`StreamConfig`."""


@arguments.hinted
class Administration(HintedNames, ProcessBound):
    """Scopes, streams and tables of a cluster; base class of :class:`PravegaClient`."""

    config: PravegaConfig
    stores: SegmentStores

    @property
    def controller(self) -> ControllerClient:
        """Client for all calls to the controller."""
        return self.stores.controller

    def name(self, stream: Stream) -> StreamName:
        """Return the full name of a stream: ``scope/stream``, or ``stream`` in the configured scope."""
        return arguments.stream_name(stream, self.config.scope)

    # ---------------------------------------------------------------- scopes

    def scopes(self) -> list[str]:
        """Return the names of all scopes, sorted, with Pravega's internal ones, which begin with ``_``."""
        return self.controller.list_scopes()

    def scope_exists(self, scope: str) -> bool:
        """Return True if the scope exists."""
        return self.controller.scope_exists(scope)

    def create_scope(self, scope: str, *, if_exists: IfExists = "ignore") -> bool:
        """Create a scope. Return False if it exists. With ``if_exists="error"``, raise ScopeExistsError."""
        must = arguments.is_error("if_exists", if_exists)
        created = self.controller.create_scope(scope)
        if must and not created:
            raise ScopeExistsError.of(scope)
        return created

    def delete_scope(self, scope: str, *, recursive: bool = False, if_missing: IfExists = "ignore") -> bool:
        """Delete an empty scope, or with ``recursive`` a scope with all its streams, tables and reader groups.

        Return False if it is missing. With ``if_missing="error"``, raise ScopeNotFoundError. Java's counterpart is
        ``StreamManager.deleteScope(scope, true)``. If an error interrupts a recursive deletion, a part was deleted:
        call it again.
        """
        must = arguments.is_error("if_missing", if_missing)
        if recursive:
            self._empty_scope(scope)
        deleted = self.controller.delete_scope(scope)
        if must and not deleted:
            raise ScopeNotFoundError.of(scope)
        return deleted

    def _empty_scope(self, scope: str) -> None:
        """Delete the contents of a scope. Reader groups first, because they may be subscribers of the streams."""
        try:
            found = self.controller.list_streams(scope, internal=True)
            for group in filter(None, map(group_of, found)):
                if (config := self.controller.group_config(scope, group)) is not None:
                    self.controller.delete_group(scope, group, config)
            for stream in found:
                if not stream.is_internal:
                    self.delete_stream(stream)
            for table in list(self.controller.iterate_tables(scope)):
                self.controller.delete_table(table)
        except ScopeNotFoundError:
            pass  # another client was first

    # ---------------------------------------------------------------- streams

    def streams(
        self, scope: str | None = None, *, tag: str | None = None, internal: bool = False
    ) -> Iterator[StreamName]:
        """Yield the streams of a scope, by default the configured one, page by page.

        ``tag`` yields only the streams that have this tag, as Java's ``StreamManager.listStreams(scope, tag)`` does.
        ``internal`` includes Pravega's internal streams, such as ``_MARK…``. Raises ScopeNotFoundError on the first
        step.
        """
        arguments.instance("tag", tag, str, "'sales'")
        scope = scope if scope is not None else self.config.scope
        if scope is None:
            raise ConfigError("no scope is set: write streams(scope); scopes() lists the scopes")
        return self.controller.iterate_streams(scope, internal=internal, tag=tag)

    def stream_exists(self, stream: Stream) -> bool:
        """Return True if the stream exists."""
        return self.controller.stream_exists(self.name(stream))

    def create_stream(
        self,
        stream: Stream,
        segments: ScalingPolicy | int = 1,
        retention: RetentionPolicy | None = None,
        *,
        tags: Iterable[str] = (),
        timestamp_aggregation_timeout_ms: int = AGGREGATION_TIMEOUT_MS,
        rollover_size_bytes: int = 0,
        if_exists: IfExists = "ignore",
    ) -> bool:
        """Create a stream, and its scope if it is missing. Return False if the stream exists, with any settings.

        ``segments`` is a fixed number or a policy. See :class:`StreamConfig` for the other settings. With
        ``if_exists="error"``, raise StreamExistsError instead. If an answer is lost, the client asks again and treats
        its own earlier call as success: see ControllerClient.
        """
        name = self.name(stream)
        must = arguments.is_error("if_exists", if_exists)
        settings = {
            "segments": segments,
            "retention": retention,
            "tags": tags,
            "timestamp_aggregation_timeout_ms": timestamp_aggregation_timeout_ms,
            "rollover_size_bytes": rollover_size_bytes,
        }
        config = _changed(StreamConfig(), settings)
        self.controller.create_scope(name.scope)
        created = self.controller.create_stream_with(name, config)
        if must and not created:
            raise StreamExistsError.of(name)
        return created

    def update_stream(self, stream: Stream, **changes: Unpack[StreamChanges]) -> None:
        """Change settings of a stream: ``segments=``, ``retention=``, ``tags=`` (:class:`StreamChanges`).

        Other settings stay. Raises StreamNotFoundError, ConfigError.
        """
        name = self.name(stream)
        known = StreamChanges.__annotations__
        arguments.only("update_stream", changes, known)
        _changed(StreamConfig(), changes)
        self.controller.update_stream(name, _changed(self.controller.stream_config(name), changes))

    def scale_stream(self, stream: Stream, segments: int, *, timeout: float | None = None) -> list[SegmentRange]:
        """Scale a stream to ``segments`` segments with equal key ranges, and return the new segments.

        A scaling policy by load may scale the stream again. ``timeout`` is in seconds. Raises StreamSealedError,
        StreamNotFoundError, or DeadlineExceededError after the timeout, in which case the server continues. To split
        and merge single segments, use :meth:`ControllerClient.scale_stream`.
        """
        name = self.name(stream)
        arguments.count("segments", segments, 1, _MOST_SEGMENTS, optional=False)
        arguments.seconds("timeout", timeout)
        current = self.controller.current_segments(name)
        wanted = [(i / segments, (i + 1) / segments) for i in range(segments)]
        if [(each.low, each.high) for each in current] == wanted:
            return current
        return self.controller.scale_stream(name, [each.id for each in current], wanted, timeout=timeout)

    def seal_stream(self, stream: Stream) -> None:
        """Seal a stream, so that nothing more can be written.

        Sealing it again has no effect. Raises StreamNotFoundError.
        """
        self.controller.seal_stream(self.name(stream))

    def delete_stream(self, stream: Stream, *, if_missing: IfExists = "ignore") -> bool:
        """Seal and delete a stream with all its events. Return False if it is missing.

        With ``if_missing="error"``, raise StreamNotFoundError instead.
        """
        name = self.name(stream)
        must = arguments.is_error("if_missing", if_missing)
        try:
            self.controller.seal_stream(name)
            deleted = self.controller.delete_stream(name)
        except (StreamNotFoundError, ScopeNotFoundError):
            deleted = False
        if must and not deleted:
            raise StreamNotFoundError.of(name)
        return deleted

    def describe(self, stream: Stream) -> StreamDescription:
        """Return settings, segments, head, tail and size of a stream. Raises StreamNotFoundError."""
        name = self.name(stream)
        config = self.controller.stream_config(name)
        head = self.controller.head_cut(name)
        segments = tuple(self.controller.current_segments(name))
        tail = tail_cut(self.stores, name)
        slices = slices_between(self.stores, head, tail, skip_lost=True)  # retention continues
        return StreamDescription(name, config, segments, head, tail, sum(each.end - each.start for each in slices))

    def require_stream(self, stream: Stream) -> StreamName:
        """Return the full name of an existing stream. Raises StreamNotFoundError."""
        name = self.name(stream)
        if not self.controller.stream_exists(name):
            raise StreamNotFoundError.of(name)
        return name

    # ---------------------------------------------------------------- key-value tables

    def table_name(self, table: NamedTable) -> TableName:
        """Return the full name of a key-value table: ``scope/table``, or ``table`` in the configured scope."""
        return arguments.table_name(table, self.config.scope)

    def tables(self, scope: str | None = None) -> Iterator[TableName]:
        """Yield the key-value tables of a scope, by default the configured one, page by page.

        Raises ScopeNotFoundError on the first step.
        """
        scope = scope if scope is not None else self.config.scope
        if scope is None:
            raise ConfigError("no scope is set: write tables(scope); scopes() lists the scopes")
        return self.controller.iterate_tables(scope)

    def table_exists(self, table: NamedTable) -> bool:
        """Return True if the key-value table exists."""
        try:
            self.table_config(table)
        except TableNotFoundError:
            return False
        return True

    def table_config(self, table: NamedTable) -> TableConfig:
        """Return the key lengths and the partitions of a key-value table. Raises TableNotFoundError."""
        return self.controller.table_config(self.table_name(table))

    def create_table(
        self,
        table: NamedTable,
        primary_key: int,
        secondary_key: int = 0,
        *,
        partitions: int = 1,
        rollover_size_bytes: int = 0,
        if_exists: IfExists = "ignore",
    ) -> bool:
        """Create a key-value table, and its scope if it is missing. Return False if it exists, with any settings.

        ``primary_key`` and ``secondary_key`` are the lengths of all keys in bytes, at most 256 together. With 0, there
        are no secondary keys. ``partitions`` is the number of segments. No setting can be changed later. With
        ``if_exists="error"``, raise TableExistsError instead. Raises ConfigError.
        """
        name = self.table_name(table)
        must = arguments.is_error("if_exists", if_exists)
        config = TableConfig(
            primary_key=primary_key,
            secondary_key=secondary_key,
            partitions=partitions,
            rollover_size_bytes=rollover_size_bytes,
        )
        self.controller.create_scope(name.scope)
        created = self.controller.create_table(name, config)
        if must and not created:
            raise TableExistsError.of(name)
        return created

    def delete_table(self, table: NamedTable, *, if_missing: IfExists = "ignore") -> bool:
        """Delete a key-value table with all its entries. Return False if it is missing.

        With ``if_missing="error"``, raise TableNotFoundError instead.
        """
        name = self.table_name(table)
        must = arguments.is_error("if_missing", if_missing)
        deleted = self.controller.delete_table(name)
        if must and not deleted:
            raise TableNotFoundError.of(name)
        return deleted


def _changed(config: StreamConfig, changes: Any) -> StreamConfig:
    """Return the configuration with changes. Raises ConfigError for a value of another type."""
    made: dict[str, Any] = dict(changes)
    if "segments" in made:
        made["scaling"] = arguments.scaling(made.pop("segments"))
    arguments.instance("retention", made.get("retention"), RetentionPolicy, "RetentionPolicy.by_time(ms)")
    for name in ("timestamp_aggregation_timeout_ms", "rollover_size_bytes"):
        arguments.count(name, made.get(name))
    if "tags" in made:
        tags = made["tags"]
        made["tags"] = tuple(tags) if isinstance(tags, Iterable) and not isinstance(tags, str) else (tags,)
        if not all(isinstance(tag, str) for tag in made["tags"]):
            raise ConfigError(f"argument 'tags' must be a list of words, not {tags!r}")
    return replace(config, **made)
