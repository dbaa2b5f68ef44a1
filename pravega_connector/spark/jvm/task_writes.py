"""Tasks that write inside the JVM of an executor, as its Python process helps them.

Python begins the transaction of a task, keeps it open, and returns the segments. It writes large events. After a failed
connection or a refused append, it takes over the blocks that are not acknowledged, with the writer of
:mod:`pravega_connector.writer`: it reconnects, requests the last event number, and follows sealed segments.
"""

from __future__ import annotations

import base64
import functools
import logging
import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from pravega_connector.core.io import in_background
from pravega_connector.errors import ConfigError, ConnectionLostError, NullEventError
from pravega_connector.exactly_once.batch_commit import Content
from pravega_connector.spark.jvm.messages import packed, unpacked
from pravega_connector.spark.sink.kept_writers import IDLE_SECONDS, kept_writers
from pravega_connector.spark.sink.transactions import TaskTransaction, stop_keeping
from pravega_connector.spark.sink.writers import PravegaBatchWriter, PravegaStreamWriter, TaskWritten
from pravega_connector.wire import Block, SegmentRange, walk_frames
from pravega_connector.writer.routing import Destination, StreamDestination
from pravega_connector.writer.take_over import complete
from pravega_serde.routing.key_line import not_utf8

if TYPE_CHECKING:
    from pravega_connector.spark.sink.kept_writers import TaskWriter

Request = Mapping[str, Any]
_logger: Final = logging.getLogger(__name__)
_WORD: Final = 1 << 64


class TaskWrites:
    """Tasks of this JVM that write now. Thread safe: a task has one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[int, _Task] = {}
        self._ended: deque[int] = deque(maxlen=1000)  # a request of a killed task may be read after its end
        self._timer: threading.Timer | None = None

    def answer(self, request: Request) -> Any:
        """Return the answer to a request of a task. Raises the error with which the task must end."""
        with self._lock:
            if request["session"] in self._ended:
                raise ConfigError("the task has ended")
            task = self._tasks.get(request["session"])
            if task is None:
                if not _is_first(request):
                    raise ConnectionLostError(
                        "the Python process that wrote with this task has ended: Spark must run the task again"
                    )
                task = self._tasks[request["session"]] = _Task(request)
            if self._timer is not None:
                self._timer.cancel()
        return task.answer(request)

    def end(self, session: int) -> None:
        """Drop the rows of a task that has not finished. If no task is left for a minute, stop all keep-alives."""
        with self._lock:
            self._ended.append(session)
            task = self._tasks.pop(session, None)
            if task is not None and not self._tasks:
                self._timer = threading.Timer(IDLE_SECONDS, self._idle)
                self._timer.daemon = True
                self._timer.start()
        if task is not None:
            in_background(task.drop, "pravega-drop")

    def _idle(self) -> None:
        with self._lock:
            if not self._tasks:
                stop_keeping()


def _is_first(request: Request) -> bool:
    """Return True for a request that a task can begin with. A task with rows has opened its segments before."""
    return request["do"] in ("write_open", "write_refused") or (request["do"] == "write_finish" and not request["rows"])


class _Task:
    """Rows of one task, which go into its transaction or into the stream."""

    def __init__(self, request: Request) -> None:
        self._lock = threading.Lock()
        self._writer = _writer(request["options"])
        self._client, self._stream = self._writer.task_client(), self._writer.options.stream_name()
        self._stores = self._client.stores
        self._destination: Destination = StreamDestination(self._client.controller, self._stream)
        self._transaction: TaskTransaction | None = None
        self._ranges: Sequence[SegmentRange] = ()
        self._blocks: list[tuple[int, Block]] = []
        self._pieces: list[bytes] = []
        self._finished = self._dropped = False

    def answer(self, request: Request) -> Any:
        """Return the answer to a request. Raises ConfigError after :meth:`drop`."""
        with self._lock:
            if self._dropped:
                raise ConfigError("the task has ended")
            return self._answer(request)

    def _answer(self, request: Request) -> Any:
        match request["do"]:
            case "write_open":
                self._begin(request)
                return self._open()
            case "write_refused":
                raise NullEventError.at_row(request["row"]) if request["null"] else not_utf8(request["row"])
            case "write_piece":
                self._pieces.append(base64.b64decode(request["data"]))
            case "write_large":
                self._write_large(request["key"])
                return self._open()
            case "write_block":
                self._blocks.append((request["segment"], _block(request)))
            case "write_take_over":
                self._take_over(request)
                return self._open()
            case "write_finish":
                return packed(self._finish(request))
        return None

    def _begin(self, request: Request) -> None:
        if (exactly_once := self._writer.exactly_once) is not None:
            begun = exactly_once.begin(self._client, request["properties"].get, request["partition"])
            self._transaction, self._destination = begun, begun.transaction.destination

    def _open(self) -> dict[str, Any]:
        """Return the segments that take events now, with their stores."""
        self._ranges = sorted(self._destination.ranges(), key=lambda each: each.low)
        return {"segments": [self._place(each) for each in self._ranges]}

    def _place(self, segment: SegmentRange) -> dict[str, Any]:
        host, port = self._stores.endpoint(self._stream, segment.id)
        name, token = self._destination.segment_name(segment.id), self._stores.token(self._stream, write=True)
        return {"id": segment.id, "name": name, "high": segment.high, "host": host, "port": port, "token": token}

    def _take_over(self, request: Request) -> None:
        error = ConnectionLostError(f"the JVM has no connection for stream {self._stream}: {request['text']}")
        self._stores.health.count("reconnects", _logger, f"stream {self._stream}: {error.message}")
        if request["fails"]:
            raise error
        self._stores.forget(self._stream, request["segment"], error)
        blocks, self._blocks = self._blocks, []
        deadline = self._stores.deadline(self._writer.options.write_timeout)
        complete(self._stores, self._destination, self._ranges, blocks, deadline)

    def _write_large(self, key: str | None) -> None:
        event, self._pieces = b"".join(self._pieces), []
        column = pa.array([event], pa.large_binary()), pa.array([key], pa.string())
        if self._transaction is not None:
            self._transaction.transaction.write_column(*column)
            self._transaction.transaction.flush()
            return
        own: TaskWriter = self._writer.task_writer(self._stream)
        try:
            own.writer.write_column(*column)
            own.writer.flush()
        except BaseException:
            own.writer.abandon()
            raise
        kept_writers().keep(own)

    def _finish(self, request: Request) -> Any:
        task, partition = request["properties"].get, request["partition"]
        rows, size = request["rows"], request["bytes"]
        if (exactly_once := self._writer.exactly_once) is None:
            return TaskWritten(rows, size, query=task("sql.streaming.queryId") or "")
        if self._transaction is None:
            assert not rows, "rows are in a transaction"
            return exactly_once.without_rows(task, partition)
        total = (request["first"] % _WORD) << 64 | request["second"] % _WORD
        message = self._transaction.prepared(Content(rows, size, total))
        self._finished = True
        return message

    def drop(self) -> None:
        """Abort the transaction, unless the task has finished."""
        with self._lock:
            self._dropped = True
            if self._transaction is not None and not self._finished:
                self._transaction.drop()


@functools.lru_cache(maxsize=64)
def _writer(pickled: str) -> PravegaBatchWriter | PravegaStreamWriter:
    made: PravegaBatchWriter | PravegaStreamWriter = unpacked(pickled)
    return made


def _block(request: Request) -> Block:
    data = base64.b64decode(request["data"])
    positions = np.frombuffer(base64.b64decode(request["positions"]), ">f8").astype(np.float64)
    sender = uuid.UUID(request["writer"]).bytes, request["before"]
    return Block(memoryview(data), walk_frames(data)[1:], positions, sender=sender)
