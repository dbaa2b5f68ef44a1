"""Writes inside Spark's JVM, as the driver's Python prepares and commits them.

The rules of a write are those of the Python sink: its writers check the target, and commit a batch with the ledger. A
task of the JVM asks :mod:`pravega_connector.spark.jvm.task_writes` for its transaction and its segments.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.core.events import MAX_EVENT_SIZE
from pravega_connector.errors import ConfigError
from pravega_connector.rows.encoding import EventEncoder, is_bytes
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.jvm.messages import packed, unpacked
from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter
from pravega_connector.spark.versions import HAS_JVM_WRITER, arrow_schema
from pravega_connector.writer.append_loop import SILENCE_SECONDS
from pravega_serde.errors import PravegaError
from pravega_serde.routing import ByColumn, ByConstant, Unrouted

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_log: Final = logging.getLogger(__name__)


def begin(
    source: PravegaDataSource, schema: StructType, streaming: bool, support: Callable[[SinkOptions, str, float], str]
) -> dict[str, Any]:
    """Return what tasks need for a write, after the checks of the Python writer. Raises its errors.

    ``support`` has the writer, and comes back with a commit: a query with a continuous trigger has many of them.
    """
    options, encoder = source.writer_arguments(schema, streaming=streaming)
    writer, router = (PravegaStreamWriter if streaming else PravegaBatchWriter)(options, encoder), encoder.router
    return {
        "support": support(options, packed(writer), SILENCE_SECONDS),
        "event": schema.names.index(encoder.columns[0]),
        "key": schema.names.index(router.name) if isinstance(router, ByColumn) else -1,
        "constant": router.routing_key if isinstance(router, ByConstant) else None,
        "largest": min(options.max_event_size, MAX_EVENT_SIZE),
    }


def commit(request: Mapping[str, Any]) -> None:
    """Commit a write, or an epoch of it. Spark aborts it after an error."""
    writer, ended = _ended(request)
    writer.commit(*ended)


def abort(request: Mapping[str, Any]) -> None:
    """Abort a write that was not committed."""
    writer, ended = _ended(request)
    writer.abort(*ended)


def _ended(request: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the writer of a request, as Spark's processes get a Python writer, and the arguments of its end.

    They are the messages of the tasks, None for a task that has failed, and the batch of a streaming query.
    """
    writer: PravegaBatchWriter | PravegaStreamWriter = unpacked(json.loads(request["support"])["options"])
    messages = [None if each is None else unpacked(each) for each in request.get("messages", ())]
    return writer, (messages, request["batch"]) if isinstance(writer, PravegaStreamWriter) else (messages,)


def accepted(source: PravegaDataSource, schema: StructType) -> dict[str, Any] | None:
    """Return the kinds of queries that the JVM can write with these columns; None, and log the reason, if none.

    Python raises the errors of options and columns. Raises ConfigError if the options demand the JVM for another write.
    """
    try:
        options = source.sink_options(schema)
    except PravegaError:
        return None
    if options is None:
        return None  # a key-value table
    stream = options.stream or options.path
    obstacle, kinds = _other_than_raw(options), {"batch": False, "stream": False}
    for kind in kinds if obstacle is None else ():
        try:
            arguments = source.writer_arguments(schema, streaming=kind == "stream")
        except PravegaError:
            continue
        obstacle = _obstacle(*arguments, schema, streaming=kind == "stream")
        kinds[kind] = obstacle is None
    if obstacle is not None and options.raw_writer == "jvm":
        raise ConfigError(
            f"raw_writer=jvm: the JVM writer cannot write with {obstacle}: leave it out, or set 'raw_writer' to 'auto'"
        )
    if obstacle is not None:
        _log.info("events are written by Python, not inside the JVM: %s is written with %s", stream, obstacle)
    return kinds | {"streams": stream} if any(kinds.values()) else None


def _other_than_raw(options: SinkOptions) -> str | None:
    """Return the option for which Python must write, or None."""
    if not HAS_JVM_WRITER:
        return "a Spark before 4.2"
    if options.raw_writer == "python":
        return "option 'raw_writer'"
    others = {
        "format": options.format is not None,
        "schema_registry_uri": options.from_registry,
        "envelope": options.envelope is not None,
        "event_time_column": options.event_time_column is not None,
    }
    return next((f"option {name!r}" for name, is_set in others.items() if is_set), None)


def _obstacle(options: SinkOptions, encoder: EventEncoder, schema: StructType, *, streaming: bool) -> str | None:
    """Return what the JVM does not write of raw events, or None."""
    mode, router, columns = options.mode(streaming=streaming), encoder.router, arrow_schema(schema)
    if mode == "best_effort":
        return f"writer_mode={mode}"
    if encoder.target is not None:
        return f"column {encoder.target!r}"
    if encoder.serializer is not None or not encoder.single or not is_bytes(columns.field(encoder.columns[0]).type):
        return "a serializer"
    if isinstance(router, ByColumn):
        kind = columns.field(router.name).type
        return None if str(kind) == "string" else f"routing keys of type {kind}"
    return None if isinstance(router, ByConstant | Unrouted) else "a field as routing key"
