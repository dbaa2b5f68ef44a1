"""``ingest``: write files, a Kafka topic, or any source that can be read again, to a stream, exactly once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pyarrow as pa

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import SourceError, StepsStateError
from pravega_connector.exactly_once.steps import Life, StepLog
from pravega_connector.exactly_once.steps.state import is_owed
from pravega_connector.exactly_once.steps.takeover import Resolution, resolutions, this_run
from pravega_connector.operations.ingest.content import Counts, DeadLetters
from pravega_connector.operations.ingest.encode import Encoding, encoding_for, recorded_schema
from pravega_connector.operations.ingest.feed import Drafts, Feed, Progress, Sizes
from pravega_connector.operations.ingest.file_source import FileSource
from pravega_connector.operations.ingest.ingester import Ingester, Settings
from pravega_connector.operations.ingest.kafka_source import KafkaFeed, KafkaSource, is_kafka
from pravega_connector.operations.ingest.replayable import ReplayableSource
from pravega_connector.operations.ingest.targets import TargetColumn
from pravega_connector.rows.encoding import require_group
from pravega_connector.rows.options import parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.target_streams import check_target
from pravega_connector.wire import StreamName

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """Outcome of one run."""

    counts: Counts
    failed: Mapping[str, SourceError] = field(default_factory=dict)
    """Sources that were left out (``keep_going``)."""
    changed: Mapping[str, str] = field(default_factory=dict)
    """Sources that have changed; the stream has their earlier content (``on_change=skip``)."""


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """Preview of a run."""

    schema: pa.Schema
    encoding: Encoding
    pending: Sequence[str]
    """Sources with more records to ingest."""
    bytes: int
    done: int
    """Sources that are in the stream."""
    open_step: bool
    """True if a run was interrupted, or is active."""


def ingest(
    source: ReplayableSource | KafkaSource | Paths,
    stream: StreamName | str,
    *,
    client: PravegaClient | PravegaConfig | None = None,
    options: Mapping[str, str] | None = None,
    sizes: Sizes | None = None,
    settings: Settings | None = None,
    state: str | None = None,
    ordered: bool = True,
    target_column: str | None = None,
    skip_changed: bool = False,
    dead_letters: str | os.PathLike[str] | None = None,
    takeover_after: float | None = None,
    resolve: Mapping[UUID, Resolution] | Mapping[str, Resolution] | None = None,
    on_progress: Callable[[str, Counts], None] = lambda _what, _counts: None,
) -> IngestSummary:
    """Ingest the records of a source that are not in the stream yet: each record becomes one event, once.

    ``source`` is a FileSource, a KafkaSource or another ReplayableSource. Paths create a FileSource, and an address
    ``kafka://host:port/topic`` creates a KafkaSource. ``options`` are options of the Spark sink, such as ``format``,
    ``avro_schema``, ``registry`` and ``routing_key_field``. ``state`` names the stream of the state. Without a routing
    key, ``ordered`` uses the name of the source as the key, which keeps the events of one source in order.

    ``target_column`` is the column with the stream of each record, as ``scope/stream`` or a stream in the scope of
    ``stream``. It is not part of the event. Records without a value go to ``stream``. The records of one transaction
    are in all of their streams or in none; they become visible in one stream after the other. ``resolve`` has the
    operator's decision about each transaction that the servers have forgotten, by its id. ``on_progress`` is called
    with the current activity and the counts so far.

    On return all events are durable and committed. If the run ends earlier, the next run resumes there. Raises
    SourceErrors, StepUndecidedError, StepsStateError, ConfigErrors, and the errors of the client. For a Kafka topic,
    also DataLossError, KafkaUnavailableError, KafkaRefusedError and KafkaTopicNotFoundError.
    """
    resolution = resolutions(resolve)
    with _Parts(source, stream, client, options, state, ordered=ordered, target_column=target_column) as parts:
        parts.require_stream(parts.target)
        feed = parts.feed(sizes or Sizes(), skip_changed=skip_changed)
        with this_run() as me, open_steps(parts.client, parts.target, parts.state) as steps:
            ingester = Ingester(
                parts.client,
                parts.target,
                parts.source,
                steps=steps,
                feed=feed,
                encoding=parts.encoding,
                me=me,
                require=parts.require_stream,
                takeover_after=takeover_after,
                resolution=resolution,
                settings=settings or Settings(),
                dead_letters=None if dead_letters is None else DeadLetters(dead_letters),
                on_progress=on_progress,
            )
            ingester.run()
    return IngestSummary(ingester.counts, feed.failed, feed.changed)


def plan(
    source: ReplayableSource | KafkaSource | Paths,
    stream: StreamName | str,
    *,
    client: PravegaClient | PravegaConfig | None = None,
    options: Mapping[str, str] | None = None,
    state: str | None = None,
    ordered: bool = True,
    target_column: str | None = None,
) -> IngestPlan:
    """Return a preview of :func:`ingest`. Nothing is created or written; raises the errors that precede a write."""
    with _Parts(source, stream, client, options, state, ordered=ordered, target_column=target_column) as parts:
        known: Mapping[str, Sequence[Any]] = {}
        schema, open_step = None, False
        if parts.client.controller.stream_exists(parts.state):
            with open_steps(parts.client, parts.target, parts.state) as steps:
                now = steps.read()
                schema, open_step = now.note.get("schema"), bool(now.steps or now.owed)
                known = {item: at for item, at in now.positions.items() if not is_owed(item)}
        if schema is not None:
            parts.source.fix(recorded_schema(schema))
        feed = parts.feed(Sizes(), skip_changed=True)
        feed.begin(known)
        pending = feed.pending
        columns = parts.source.schema
        encoding = parts.encoding(columns)
        size = sum(parts.source.size(id_) for id_ in pending)
        done = sum(Progress.from_json(position).finished for position in known.values())
        return IngestPlan(columns, encoding, pending, size, done, open_step)


def state_name(target: StreamName, name: str | None = None) -> StreamName:
    """Return the stream of an ingestion's log: next to the target, by default with ``-ingest`` after its name."""
    return StreamName(target.scope, name or f"{target.stream}-ingest")


def open_steps(client: PravegaClient, target: StreamName, name: StreamName) -> StepLog:
    """Open the log of an ingestion. Raises StepsStateError if it belongs to another target."""
    steps = StepLog(client.stores, name, Life(str(target)))
    if steps.life.id != str(target):
        steps.close()
        raise StepsStateError(
            f"stream {name} keeps the state of {steps.life.id}, not of {target}: set another stream for the state"
        )
    return steps


class _Parts:
    """Client, source, target and options of a run. Context manager: it closes what it created."""

    def __init__(
        self,
        source: ReplayableSource | KafkaSource | Paths,
        stream: StreamName | str,
        client: PravegaClient | PravegaConfig | None,
        options: Mapping[str, str] | None,
        state: str | None,
        *,
        ordered: bool,
        target_column: str | None,
    ) -> None:
        self._closing = ExitStack()
        with ExitStack() as stack:
            self.client = client if isinstance(client, PravegaClient) else stack.enter_context(PravegaClient(client))
            self.source = _source(source)
            if isinstance(self.source, KafkaSource) and self.source is not source:
                stack.callback(self.source.close)
            self.target = self.client.name(stream)
            self.options = parse_options(SinkOptions, {**(options or {}), "stream": str(self.target)})
            self.state = state_name(self.target, state)
            self.encoding = self._encoding(ordered=ordered)
            if target_column is not None:
                self.encoding = self._by_stream(TargetColumn(target_column, self.target, self._check), self.encoding)
            self._closing = stack.pop_all()

    def __enter__(self) -> _Parts:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._closing.close()

    def _encoding(self, *, ordered: bool) -> Callable[[pa.Schema], Encoding]:
        if isinstance(self.source, KafkaSource):
            return self.source.prepare(self.options, ordered=ordered)
        return lambda schema: encoding_for(schema, self.options, ordered=ordered)

    def _by_stream(
        self, target: TargetColumn, encoding: Callable[[pa.Schema], Encoding]
    ) -> Callable[[pa.Schema], Encoding]:
        require_group(target.name, self.options)
        return lambda schema: replace(encoding(target.without(schema)), target=target)

    def feed(self, sizes: Sizes, *, skip_changed: bool) -> Drafts:
        """Return the feed of the source. Raises the errors of a Kafka topic that cannot be reached now."""
        if isinstance(self.source, KafkaSource):
            self.source.connect()
            return KafkaFeed(self.source, sizes)
        return Feed(self.source, sizes, skip_changed=skip_changed)

    def _check(self, stream: StreamName) -> None:
        check_target(self.client, stream, self.state)

    def require_stream(self, stream: StreamName) -> None:
        """Create a stream if the options allow it.

        Raises StreamNotFoundError, and InvalidNameError for a stream without events.
        """
        self._check(stream)
        if self.options.allow_create_stream:
            self.client.controller.create_scope(stream.scope)
            self.client.controller.create_stream(stream, self.options.scaling(), self.options.retention())
        self.client.require_stream(stream)


def _source(source: ReplayableSource | KafkaSource | Paths) -> ReplayableSource | KafkaSource:
    if is_kafka(source):
        return KafkaSource(str(source))
    if isinstance(source, (str, os.PathLike)):
        return FileSource([source])
    return FileSource(source) if isinstance(source, Sequence) else source
