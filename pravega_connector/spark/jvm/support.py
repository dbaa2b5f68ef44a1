"""Process that helps the JVM reader on an executor: ``python -m pravega_connector.spark.jvm.support``.

The JVM reads plain ranges. It asks this process, in lines of JSON, what to do about everything else: an answer that is
no data, a lost connection, a token that expires, data that is lost. The decisions are those of
:mod:`pravega_connector.reader.slices`, so retries, pauses, log lines and errors are the same as in the Python reader.
"""

from __future__ import annotations

import base64
import functools
import itertools
import json
import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.core.deadline import Deadline
from pravega_connector.core.io import in_background
from pravega_connector.core.retry import Attempts
from pravega_connector.errors import ConfigError, ConnectionLostError, NoSuchSegmentError, SegmentTruncatedError
from pravega_connector.reader.slices import SegmentSlice, data_loss
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.jvm.decoding import decoded, typed_rows
from pravega_connector.spark.jvm.messages import answered, place_fields, unpacked
from pravega_connector.spark.known_clusters import client_of
from pravega_connector.spark.source.data_loss import pass_over
from pravega_connector.spark.source.offset_planner import OPEN_END
from pravega_connector.stores.segment_stores import SegmentPlace, read_error_of
from pravega_connector.wire import FrameParser, RangeRead, SegmentRead, StreamName, segment_name
from pravega_connector.wire.codec import decode
from pravega_serde.errors import PravegaError

if TYPE_CHECKING:
    from pravega_connector.spark.jvm.task_letters import SliceLetters
    from pravega_connector.spark.jvm.task_writes import TaskWrites

_NOWHERE: Final = SegmentPlace(("", 0), "", 0.0)
_logger: Final = logging.getLogger("pravega_connector.reader.slices")

Request = Mapping[str, Any]


class Sessions:
    """Outages, dead letters and writes of the tasks of this JVM. Thread safe: a session has one request at a time."""

    def __init__(self) -> None:
        self._attempts: dict[int, Attempts] = {}
        self._writes: TaskWrites | None = None
        self._decoding = threading.Lock()
        self._letters: dict[int, dict[tuple[str, str, int], SliceLetters]] = {}
        self._ended: deque[int] = deque(maxlen=1000)  # a request of a killed task may be answered after its end
        self._lock = threading.Lock()

    def begin(self, request: Request) -> None:
        """Prepare the answer to a request, before the line after it is read: that line may end the session."""
        if self._writes is None and request["do"].startswith("write"):
            from pravega_connector.spark.jvm.task_writes import TaskWrites  # noqa: PLC0415 - a read does not load the sink

            self._writes = TaskWrites()

    def answer(self, request: Request) -> Any:
        """Return the answer to a request. Raises the error with which the task must end."""
        if request["do"].startswith("write"):
            assert self._writes is not None, "the request has begun"
            return self._writes.answer(request)
        if request["do"] == "decode":
            return self._decoded(request)
        if request["do"] == "complete":
            return self._complete(request)
        options = _options(request["options"])
        client = client_of(options, service=True)
        stream, segment_id = StreamName(request["scope"], request["stream"]), request["segment_id"]
        if request["do"] == "place":
            return place_fields(client.stores.place(stream, segment_id)) | {"event": request["event"]}
        # The store that the reader has asked: an answer of another one would not be believed.
        host, _, port = request["store"].rpartition(":")
        client.stores.take_place(stream, segment_id, SegmentPlace((host, int(port)), "", 0.0))
        with self._lock:
            self._check_not_ended(request["session"])
            attempts = self._attempts.get(request["session"])
            if attempts is None:
                attempts = client.stores.health.attempts(_logger, f"reading stream {stream}")
                self._attempts[request["session"]] = attempts
        if request["progressed"]:
            attempts.done()
        return _retry(client, options, attempts, request)

    def _decoded(self, request: Request) -> dict[str, Any]:
        """Return the rows of a batch, and the number of its dead letters that :meth:`_complete` makes visible."""
        letters = self._letters_of(request)
        malformed: list[Any] = []
        on_bad = None if letters is None else lambda *bad: malformed.append(bad)
        with self._decoding:  # serializers are not shared by threads elsewhere
            rows = decoded(request, on_bad)
        return {"rows": rows, "letters": 0 if letters is None else letters.write(malformed)}

    def _letters_of(self, request: Request) -> SliceLetters | None:
        """Return the dead letters of a slice; None if the read has no dead-letter queue."""
        if not typed_rows(request["rows"]).options.has_dead_letters:
            return None
        from pravega_connector.spark.jvm.task_letters import SliceLetters  # noqa: PLC0415 - few reads have a queue

        with self._lock:
            self._check_not_ended(request["session"])
            known = self._letters.setdefault(request["session"], {})
            segment = request["scope"], request["stream"], request["segment_id"]
            if segment not in known:
                known[segment] = SliceLetters(request)
            return known[segment]

    def _complete(self, request: Request) -> None:
        """Complete the files of a slice. Raises ConnectionLostError if another process has some of its letters."""
        found = list(self._letters.get(request["session"], {}).values())
        if sum(letters.in_file for letters in found) != request["letters"]:
            raise ConnectionLostError(
                "the Python process that stored the dead letters of this task has ended: Spark must run the task again"
            )
        for letters in found:
            letters.complete()

    def _check_not_ended(self, session: int) -> None:
        """Raise ConfigError if the task has ended: nothing would end what is kept for it from here on."""
        if session in self._ended:
            raise ConfigError("the task has ended")

    def end(self, session: int) -> None:
        """Forget the outage of a range that was read, or given up."""
        if self._writes is not None:
            self._writes.end(session)
        with self._lock:
            self._ended.append(session)
            attempts = self._attempts.pop(session, None)
            found = self._letters.pop(session, {})
        if attempts is not None:
            attempts.done()
        for letters in found.values():
            in_background(letters.close, "pravega-letters")


@functools.lru_cache(maxsize=64)
def _options(pickled: str) -> SourceOptions:
    made: SourceOptions = unpacked(pickled).options
    return made


def _retry(client: PravegaClient, options: SourceOptions, attempts: Attempts, request: Request) -> dict[str, Any]:
    """Wait until a failed read can continue, and return where. Raises the error if it cannot."""
    stream, segment_id = StreamName(request["scope"], request["stream"]), request["segment_id"]
    event = request["event"]
    try:
        error = _failure(client, stream, segment_id, attempts.share(), request)
        for retries in itertools.count(1):
            attempts.settle(error, lambda each: client.stores.forget(stream, segment_id, each))
            try:
                place = client.stores.place(stream, segment_id, attempts.share())
                return _resume(place, event, attempts, retries)
            except PravegaError as next_error:
                error = next_error
    except (SegmentTruncatedError, NoSuchSegmentError) as cause:
        if request["end"] == OPEN_END and isinstance(cause, NoSuchSegmentError) and not options.fail_on_data_loss:
            return _resume(_NOWHERE, OPEN_END, attempts)  # the driver reports the loss when it plans the next batch
        loss = data_loss(stream, segment_id, request["position"], cause)
        loss.__cause__ = cause
        piece = SegmentSlice(stream, segment_id, request["start"], request["end"])
        resumed = pass_over(piece, event, loss, fail=options.fail_on_data_loss)
        if resumed >= piece.end:
            return _resume(_NOWHERE, resumed, attempts)
        return _resume(client.stores.place(stream, segment_id), resumed, attempts)
    raise AssertionError("an attempt is settled, or raises its error")


def _resume(place: SegmentPlace, event: int, attempts: Attempts, retries: int = 0) -> dict[str, Any]:
    """Return the answer about a failed read that continues: store, next event, patience in seconds, and retries."""
    return place_fields(place) | {"event": event, "quiet": attempts.share().seconds, "retries": retries}


def _failure(
    client: PravegaClient, stream: StreamName, segment_id: int, deadline: Deadline, request: Request
) -> PravegaError:
    """Return the error of a failed read."""
    name, store = segment_name(stream, segment_id), f"the segment store at {request['store']}"
    try:
        match request["do"]:
            case "lost":
                return ConnectionLostError(f"the connection to {store} was lost: {request['text']}")
            case "frame":
                parser = FrameParser(request["offset"], segment=name)
                parser.feed(base64.b64decode(request["header"]))
                parser.finish()
            case "answered":
                _check_answer(name, request)
                return ConnectionLostError(f"{store} answered a read of segment {name} with no bytes")
            case "replied":
                reply = decode(request["type"], memoryview(base64.b64decode(request["reply"])))
                plan = RangeRead(name, request["position"], request["end"])
                plan.in_flight(dict(request.get("in_flight", ())))
                plan.check(reply)
                client.stores.confirm(stream, segment_id, read_error_of(reply, name), deadline)
    except PravegaError as error:
        return error
    raise AssertionError(f"{request['do']} is not a failure")


def _check_answer(name: str, request: Request) -> None:
    """Raise the error about an answer with data: of another request, too long, or after the end of a segment."""
    plan = RangeRead(name, request["position"], request["end"])
    plan.in_flight({} if request["wanted"] is None else {request["offset"]: request["wanted"]})
    data = memoryview(bytes(max(request["size"], 0)))
    plan.receive(
        SegmentRead(request["segment"], request["offset"], False, request["end_of_segment"], data, request["offset"])
    )


def main() -> None:
    """Answer the lines of standard input until it ends."""
    sessions, output = Sessions(), threading.Lock()

    def answer(request: Request) -> None:
        made = answered(lambda: sessions.answer(request))
        with output:
            sys.stdout.write(json.dumps(made | {"id": request["id"]}) + "\n")
            sys.stdout.flush()

    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "end":
            sessions.end(request["session"])
        else:
            sessions.begin(request)
            threading.Thread(target=answer, args=(request,), daemon=True).start()
    os._exit(0)  # threads that wait for servers must not delay the end


if __name__ == "__main__":
    main()
