"""Planner of the JVM reader, in the driver's own process: Spark's JVM calls it back through py4j.

It answers with the methods of the Python source, so options, offsets, limits and data-loss decisions are the same. The
tasks of a plan travel as JSON, and a task gets what it needs to ask :mod:`pravega_connector.spark.jvm.support`.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkContext
from pyspark.sql.types import StructType

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.deadline import QUIET
from pravega_connector.errors import ConfigError
from pravega_connector.rows.columns import decoded_fields, row_builder
from pravega_connector.rows.options import CommonOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.jvm import write_planner
from pravega_connector.spark.jvm.decoding import NewerDecoders, decoder_plan
from pravega_connector.spark.jvm.messages import NotInJvmError, TaskOptions, answered, packed, place_fields
from pravega_connector.spark.known_clusters import client_of
from pravega_connector.spark.source.readers import PravegaFilteringReader
from pravega_connector.spark.source.real_time import RealTimeReader
from pravega_connector.spark.source.tasks import SlicesPartition
from pravega_connector.spark.versions import (
    HAS_FILTERS,
    HAS_REAL_TIME,
    DataSourceStreamReader,
    InputPartition,
    arrow_schema,
)
from pravega_connector.wire import segment_name
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pyspark.sql import datasource as spark_filters


_log: Final = logging.getLogger(__name__)
_NO_SCHEMA: Final = StructType()


@dataclass(frozen=True)
class _Python:
    """Python of Spark's workers: executable, module path, and files of the job."""

    executable: str
    path: tuple[str, ...]
    includes: tuple[str, ...]


class Planner:
    """Answers to requests of Spark's JVM. Thread safe, as far as Spark calls it."""

    class Java:
        """Interface that py4j implements with this class."""

        implements = ["pravegaserde.spark.Planner"]  # noqa: RUF012 - py4j's protocol

    def __init__(self, context: SparkContext) -> None:
        """Plan the reads of a Spark application."""
        self.context = context
        self._sources: dict[str, type[PravegaDataSource]] = {}
        self._python = _Python(
            context.pythonExec,
            tuple(context.environment.get("PYTHONPATH", "").split(":")),
            tuple(context._python_includes),
        )
        self._queries: dict[str, RealTimeReader] = {}
        self._newer: dict[str, NewerDecoders] = {}
        self._numbers = itertools.count(1)
        self._actions: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "schema": self._schema,
            "accepts": self._accepts,
            "batch": self._batch,
            "stream": self._stream,
            "initial": lambda request: json.dumps(self._query(request).initialOffset()),
            "latest": lambda request: json.dumps(self._query(request).latestOffset(json.loads(request["start"]))),
            "report": self._report,
            "available_now": lambda request: self._query(request).prepareForTriggerAvailableNow(),
            "tasks": self._tasks_between,
            "real_time": self._real_time,
            "follow": self._follow,
            "end_of_followed": self._end_of_followed,
            "commit": self._commit,
            "stop": self._stop,
            "write_accepts": self._accepts_write,
            "write_begin": self._begin_write,
            "write_commit": write_planner.commit,
            "write_abort": write_planner.abort,
        }

    def plan_for(self, session: str, source: type[PravegaDataSource]) -> None:
        """Use the default options of ``source`` in the session with this id."""
        self._sources[session] = source

    def forget(self, session: str) -> None:
        """Leave all reads of the session with this id to Python."""
        self._sources.pop(session, None)

    def call(self, request: str) -> str:
        """Return the answer to a request of the JVM, both as JSON. An error is an answer with the text of the error."""
        asked = json.loads(request)
        return json.dumps(answered(lambda: self._actions[asked["do"]](asked)))

    # ---- tables ----

    def _schema(self, request: Mapping[str, Any]) -> str | None:
        """Return the columns of a read that the JVM reader can do; None for others."""
        if request["session"] not in self._sources:
            return None
        source = self._source(request)
        if source.table_of(_NO_SCHEMA) is not None:
            return None
        options = source.source_options(_NO_SCHEMA)
        if _is_typed(options):
            return None  # Python returns the columns, or the error that names what is wrong with the schema
        return source.schema().json() if _obstacle(options) is None else None

    def _accepts(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the streams that the JVM reader can read with these columns, and the plan of its decoder, if any.

        Return None, and log the reason, if Python reads them.
        """
        if request["session"] not in self._sources:
            _note_python("this session was not set up: call configure(spark) with it")
            return None
        source, schema = self._source(request), _schema_of(request)
        if (table := source.table_of(schema)) is not None:
            _note_python(f"{table} is a key-value table")
            return None
        options = source.source_options(schema)
        if _is_typed(options):
            return _typed(source, options, schema)
        obstacle = _obstacle(options) or _other_column(options, schema)
        if obstacle is None:
            return {"streams": _streams(options), "decoder": None}
        if options.metadata is None:
            _note_python(f"{_streams(options)} is read with {obstacle}")
        return None

    def _source(self, request: Mapping[str, Any]) -> PravegaDataSource:
        return self._sources[request["session"]](dict(request["options"]))

    # ---- batch ----

    def _batch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        source, schema = self._source(request), _schema_of(request)
        reader = PravegaFilteringReader(*source.reader_arguments(schema))
        if HAS_FILTERS:  # the JVM evaluates all of them, too
            list(reader.pushFilters([_filter(each) for each in request["filters"]]))
        tasks = _tasks(client_of(reader.options), reader.partitions())
        return {"tasks": tasks, "support": self._support(reader.options)}

    # ---- stream ----

    def _stream(self, request: Mapping[str, Any]) -> dict[str, Any]:
        source, schema = self._source(request), _schema_of(request)
        options, columns, serializer = source.reader_arguments(schema)
        reader = RealTimeReader(options, columns, serializer)
        query = str(next(self._numbers))
        self._queries[query] = reader
        if options.from_registry:
            self._newer[query] = NewerDecoders(lambda: decoder_plan(options, schema, columns, serializer))
        return {"query": query, "support": self._support(reader.options), "real_time": HAS_REAL_TIME}

    def _query(self, request: Mapping[str, Any]) -> RealTimeReader:
        return self._queries[request["query"]]

    def _report(self, request: Mapping[str, Any]) -> str | None:
        found = self._query(request).reportLatestOffset()
        return None if found is None else json.dumps(found)

    def _tasks_between(self, request: Mapping[str, Any]) -> dict[str, Any]:
        reader = self._query(request)
        return self._planned(request, reader.partitions(json.loads(request["start"]), json.loads(request["end"])))

    def _planned(self, request: Mapping[str, Any], partitions: Iterable[InputPartition]) -> dict[str, Any]:
        """Return the tasks of a batch, with the decoders if they have changed."""
        newer = self._newer.get(request["query"])
        tasks = _tasks(client_of(self._query(request).options, service=True), partitions)
        return {"tasks": tasks, "decoder": None if newer is None else newer.take()}

    def _real_time(self, request: Mapping[str, Any]) -> None:
        """Raise an error for a query that real-time mode does not have."""
        self._query(request).prepare_for_real_time()

    def _follow(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tasks of a batch in real-time mode: all run at once, so at most as many as there are slots."""
        slots = self.context.defaultParallelism // int(self.context.getConf().get("spark.task.cpus", "1"))
        return self._planned(request, self._query(request).follow(json.loads(request["start"]), max(slots, 1)))

    def _end_of_followed(self, request: Mapping[str, Any]) -> str:
        return json.dumps(self._query(request).end_of_followed(map(json.loads, request["positions"])))

    def _commit(self, request: Mapping[str, Any]) -> None:
        """Commit the end of a batch. In real-time mode, Spark does so again after it has stopped the source."""
        if request["query"] in self._queries:
            self._query(request).commit(json.loads(request["end"]))

    def _stop(self, request: Mapping[str, Any]) -> None:
        self._newer.pop(request["query"], None)
        reader: DataSourceStreamReader | None = self._queries.pop(request["query"], None)
        if reader is not None:
            reader.stop()

    # ---- writes ----

    def _written(self, request: Mapping[str, Any]) -> PravegaDataSource | None:
        """Return the source of a write; None if its session was not set up.

        It is the active session, or the session that it copies. If that is unknown, the session of the table counts.
        """
        session = request["active"] if request["active"] in self._sources else request["session"]
        return None if session not in self._sources else self._source({**request, "session": session})

    def _accepts_write(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        source = self._written(request)
        if source is None:
            return None
        kinds: dict[str, Any] | None = write_planner.accepted(source, _schema_of(request))
        return kinds

    def _begin_write(self, request: Mapping[str, Any]) -> dict[str, Any]:
        source = self._written(request)
        assert source is not None, "it was accepted"
        begun: dict[str, Any] = write_planner.begin(source, _schema_of(request), request["streaming"], self._support)
        return begun

    # ---- tasks ----

    def _support(self, options: CommonOptions, pickled: str | None = None, quiet: float = QUIET) -> str:
        """Return the settings of the Python process of an executor; ``pickled`` replaces the pickled options.

        ``quiet`` is the number of seconds after which a segment store without an answer has failed.
        """
        config = options.config
        tls = None
        if config.uses_tls_to_stores:
            tls = {
                "authorities": config.authorities(),
                "server_name": config.tls_server_name,
                "checks_host": config.tls_validate_hostname,
            }
        return json.dumps(
            {
                "python": self._python.executable,
                "path": self._python.path,
                "includes": self._python.includes,
                "options": pickled or packed(TaskOptions(options)),
                "tls": tls,
                "quiet": quiet,
            }
        )


def _schema_of(request: Mapping[str, Any]) -> StructType:
    return StructType.fromJson(json.loads(request["schema"]))


def _note_python(reason: str) -> None:
    _log.info("events are read by Python, not inside the JVM: %s", reason)


def _streams(options: SourceOptions) -> str:
    """Return the streams of a read as a short text."""
    if options.stream_pattern is not None:
        return f"streams {options.stream_pattern}"
    first, *others = options.stream_names()
    return f"{first} and {len(others)} more" if others else str(first)


def _is_typed(options: SourceOptions) -> bool:
    return options.metadata is None and (options.format is not None or options.from_registry)


def _typed(source: PravegaDataSource, options: SourceOptions, schema: StructType) -> dict[str, Any] | None:
    """Return the answer about a typed read. Python raises the errors of options and columns that are invalid."""
    try:
        if options.raw_reader == "python":
            raise NotInJvmError("option 'raw_reader'")
        _, arrow, serializer = source.reader_arguments(schema)
        row_builder(arrow, options, serializer)
        return {"streams": _streams(options), "decoder": decoder_plan(options, schema, arrow, serializer)}
    except PravegaError:
        return None
    except NotInJvmError as reason:
        if options.raw_reader == "jvm":
            raise ConfigError(
                f"raw_reader=jvm: the JVM reader cannot read with {reason}: leave it out, or set 'raw_reader' to 'auto'"
            ) from None
        _note_python(f"{_streams(options)} is read with {reason}")
        return None


def _obstacle(options: SourceOptions) -> str | None:
    """Return the option for which Python must read raw events, or None.

    Raises ConfigError if the options demand the JVM reader for another read.
    """
    if options.raw_reader == "python":
        return "option 'raw_reader'"
    obstacle = _other_than_raw(options)
    if obstacle is not None and options.raw_reader == "jvm":
        raise ConfigError(f"raw_reader=jvm reads raw events only: leave out {obstacle}, or set 'raw_reader' to 'auto'")
    return obstacle


def _other_column(options: SourceOptions, schema: StructType) -> str | None:
    """Return a column that is not one of a raw event with its type, or None."""
    known = {field.name: field.type for field in decoded_fields(options, None)}
    others = (each for each in arrow_schema(schema) if known.get(each.name) != each.type)
    return next((f"column {each.name!r} of type {each.type}" for each in others), None)


def _other_than_raw(options: SourceOptions) -> str | None:
    if options.metadata is not None:
        return "option 'metadata'"
    return "column 'encoding_id'" if "encoding_id" in options.metadata_columns else None


def _filter(each: Mapping[str, Any]) -> spark_filters.Filter:
    from pyspark.sql import datasource as spark_filters  # noqa: PLC0415 - not every Spark has it

    if each["kind"] == "Not":
        return spark_filters.Not(_filter(each["child"]))
    value = tuple(each["value"]) if each["kind"] == "In" else each["value"]
    return getattr(spark_filters, each["kind"])((each["attribute"],), value)


def _tasks(client: PravegaClient, partitions: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the tasks of partitions, with the segment store and the token of each segment."""
    return [
        {"stop": part.stop, "slices": list(map(_slice, itertools.repeat(client), part.slices, part.times))}
        for part in partitions
        if isinstance(part, SlicesPartition)
    ]


def _slice(client: PravegaClient, piece: Any, times: Any) -> dict[str, Any]:
    stream = piece.stream
    return place_fields(client.stores.place(stream, piece.segment_id)) | {
        "scope": stream.scope,
        "stream": stream.stream,
        "segment_id": piece.segment_id,
        "segment": segment_name(stream, piece.segment_id),
        "start": piece.start,
        "end": piece.end,
        "places": times.places.tolist(),
        "lows": times.lows.tolist(),
        "highs": times.highs.tolist(),
    }
