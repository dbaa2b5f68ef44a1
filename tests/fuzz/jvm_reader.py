"""Random reads with the JVM reader, compared with the Python reader.

``python -m tests.fuzz.jvm_reader [--rounds 1000] [--seed N]`` writes one stream with events of mixed sizes into an
in-process Pravega, and reads it in one Spark session. A round reads a random range, with random columns, filters and
partitions. Its answers are short, doubled, reordered, empty, cut, refused or lost. Checked: rows are equal, and
so are the errors of invalid and lost ranges, in one line. ``--only N`` repeats one round of a seed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.reader.slices import read_slices, whole_stream
from pravega_connector.spark.jvm.session import use_jvm_reader
from pravega_connector.testing import InProcessPravega
from pravega_connector.testing.requests import Request
from pravega_connector.testing.segment_store import Session
from pravega_connector.wire import ErrorMessage, ReadSegment, SegmentRead, StreamCut, StreamName, WrongHost
from tools import jvm

__all__ = ["FAULTS", "Comparison", "Finding"]

#: Faults of an answer. The first four need no further attempt of the reader.
FAULTS: Final = ("short", "doubled", "late", "tiny", "empty", "cut", "dropped", "lost", "moved")
_EASY: Final = 4
_HARD_FAULTS: Final = 4  # of one round: each makes the reader pause
_COLUMNS: Final = ("event", "scope", "stream", "segment_id", "offset")
_LATE_SECONDS: Final = 0.03
_ALWAYS: Final = 1 << 60
# Shares: reads with an error, refusals and lost data among them, reads with several partitions, cuts that
# are set, answers without a fault, and events of zeros.
_INVALID, _REFUSED, _LOST, _DIVIDED, _BOUNDED, _GOOD, _ZEROS = 0.15, 0.1, 0.3, 0.5, 0.8, 0.5, 0.2
_UNSPECIFIED: Final = -1

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Round in which the readers differ."""

    number: int
    read: str
    python: str
    jvm: str


@dataclass(slots=True)
class _Read:
    """A read of a round."""

    options: dict[str, str]
    condition: str = "true"
    columns: tuple[str, ...] = _COLUMNS
    how: str = "rows"
    """What is compared: rows, their count, the number of rows with a limit, or the rows of a streaming query."""
    faults: bool = True
    refused: bool = False
    """The segment store answers with an error that no further attempt changes."""


class _Answers:
    """Random faults in the answers of a segment store to reads."""

    def __init__(self, pravega: InProcessPravega, seen: Counter[str]) -> None:
        self._store, self._seen, self._lock = pravega.store, seen, threading.Lock()
        self._chance = random.Random()
        self._hard = 0
        self.on = self.refusing = False
        self._store.on(ReadSegment, self._serve, _ALWAYS)

    def begin(self, chance: random.Random) -> None:
        """Answer with faults, as ``chance`` selects them."""
        with self._lock:
            self._chance, self._hard, self.on = chance, _HARD_FAULTS, True

    def end(self) -> None:
        """Answer without faults."""
        self.on = False
        self._store.cut_replies_at = None

    def _serve(self, session: Session, request: Request) -> None:
        assert isinstance(request, ReadSegment)
        with self._lock:
            fault = "refused" if self.refusing else self._fault() if self.on else "none"
            size = self._chance.randrange(1, max(request.length, 2))
        self._seen[fault] += 1
        match fault:
            case "short":
                self._store.serve(session, _shorter(request, size))
            case "tiny":
                self._store.serve(session, _shorter(request, 1 + size % 9))
            case "doubled":
                session.copies = 2
                self._store.serve(session, request)
                session.copies = 1
            case "late":  # the answer to the next request is earlier
                threading.Timer(_LATE_SECONDS, self._store.serve, (session, request)).start()
            case "empty":
                nothing = memoryview(b"")
                session.reply(SegmentRead(request.segment, request.offset, False, False, nothing, request.request_id))
            case "cut":
                self._store.cut_replies_at = session.sent + size
                self._store.serve(session, request)
            case "dropped":
                session.drop()
            case "lost":
                session.copies = 0
                self._store.serve(session, request)
                session.drop()
            case "moved":
                session.reply(WrongHost(request.request_id, request.segment, "", ""))
            case "refused":
                session.reply(ErrorMessage(request.request_id, request.segment, "on purpose", _UNSPECIFIED))
            case _:
                self._store.serve(session, request)

    def _fault(self) -> str:
        if self._chance.random() < _GOOD:
            return "none"
        number = self._chance.randrange(len(FAULTS))
        if number >= _EASY:
            if not self._hard:
                return "none"
            self._hard -= 1
        return FAULTS[number]


def _shorter(request: ReadSegment, size: int) -> ReadSegment:
    return ReadSegment(request.segment, request.offset, size, request.token, request.request_id)


@dataclass(slots=True)
class Comparison:
    """Rounds of one seed in a session that has the JVM reader, on an in-process Pravega without other streams."""

    spark: SparkSession
    pravega: InProcessPravega
    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    """Answers so far, by their fault."""
    kinds: Counter[str] = field(default_factory=Counter)
    """Rounds so far, by what they compared."""
    _stream: StreamName = field(init=False)
    _lost: StreamName = field(init=False)
    _bounds: dict[int, list[int]] = field(init=False)
    _epochs: list[list[int]] = field(init=False)
    _answers: _Answers = field(init=False)

    def __post_init__(self) -> None:
        """Write the streams."""
        self._stream, self._lost = StreamName(f"fuzz{self.seed}", "mixed"), StreamName(f"fuzz{self.seed}", "truncated")
        chance = random.Random(self.seed)
        with self.pravega.client() as client:
            self._epochs = [sorted(_write(client, self._stream, chance, segments)) for segments in (2, 4, 3)]
            _write(client, self._lost, chance, 2)
            client.truncate(self._lost, client.tail(self._lost))
            _write(client, self._lost, chance, 2)
            self._bounds = _event_bounds(client, self._stream, [each for epoch in self._epochs for each in epoch])
        self._answers = _Answers(self.pravega, self.faults)

    def rounds(self, numbers: range) -> Iterator[Finding | None]:
        """Yield the finding of each round, or None if the readers agree."""
        for number in numbers:
            yield self._round(number)

    def _round(self, number: int) -> Finding | None:
        chance = random.Random(f"{self.seed} {number}")
        read = self._read(chance)
        self.kinds[read.how if read.faults else "error"] += 1
        self._answers.refusing = read.refused
        expected = self._outcome(read, "python")
        if read.faults:
            self._answers.begin(chance)
        try:
            found = self._outcome(read, "jvm")
        finally:
            self._answers.end()
            self._answers.refusing = False
        if found == expected:
            return None
        python, jvm_ = _difference(expected, found)
        return Finding(number, repr(read), python, jvm_)

    # ---- reads ----

    def _read(self, chance: random.Random) -> _Read:
        """Return a random read."""
        if chance.random() < _INVALID:
            return self._invalid(chance)
        read = _Read({"path": str(self._stream)} | self._range(chance), _condition(chance, self._bounds))
        read.columns = tuple(sorted(chance.sample(_COLUMNS, chance.randrange(1, len(_COLUMNS) + 1))))
        if chance.random() < _DIVIDED:
            read.options["min_partitions"] = str(chance.choice([1, 2, 5, 12]))
        (read.how,) = chance.choices(["rows", "count", "limit", "stream"], [15, 2, 2, 1])
        if read.how == "stream":
            read.condition = "true"
            read.options.pop("min_partitions", None)
            read.options["max_bytes_per_trigger"] = str(chance.choice([3_000_000, 9_000_000]))
            read.options.setdefault("start_stream_cut", "earliest")
        return read

    def _range(self, chance: random.Random) -> dict[str, str]:
        """Return the options of a random valid range."""
        first, last = sorted(chance.choices(range(len(self._epochs)), k=2))
        start = {each: chance.choice(self._bounds[each]) for each in self._epochs[first]}
        end = {}
        for each in self._epochs[last]:
            least = start.get(each, 0)
            end[each] = chance.choice([bound for bound in self._bounds[each] if bound >= least])
        found = {}
        if chance.random() < _BOUNDED:
            found["start_stream_cut"] = StreamCut(self._stream, start).to_text()
        if chance.random() < _BOUNDED or (found and first == last):
            found["end_stream_cut"] = StreamCut(self._stream, end).to_text()
        return found

    def _invalid(self, chance: random.Random) -> _Read:
        """Return a read that is refused, or of a range that is lost, or does not begin or end with an event."""
        if chance.random() < _REFUSED:
            # All segments are refused, and the first task that fails names its own: so only one is read.
            condition = f"segment_id = {chance.choice(self._epochs[0])}"
            return _Read({"path": str(self._stream)}, condition, faults=False, refused=True)
        if chance.random() < _LOST:
            fail = chance.choice(["true", "false"])
            head = StreamCut(self._lost, {0: 0, 1: 0}).to_text()
            return _Read({"path": str(self._lost), "start_stream_cut": head, "fail_on_data_loss": fail}, faults=False)
        epoch = self._epochs[0]
        start = {each: chance.choice(self._bounds[each][:-1]) for each in epoch}
        end = {each: self._bounds[each][-1] for each in epoch}
        wrong, segment = chance.choice((start, end)), chance.choice(epoch)
        wrong[segment] = max(0, wrong[segment] + chance.choice([-9, -3, -1, 1, 3, 8, 11, 100]))
        cuts = {"start_stream_cut": start, "end_stream_cut": end}
        options = {name: StreamCut(self._stream, cut).to_text() for name, cut in cuts.items()}
        return _Read({"path": str(self._stream)} | options, faults=False)

    # ---- outcomes ----

    def _outcome(self, read: _Read, reader: str) -> list[Row] | str:
        """Return the rows of a read, sorted, or the line of its error."""
        given = {"controller": self.pravega.uri, "raw_reader": reader} | read.options
        try:
            if read.how == "stream":
                return self._streamed(read, given)
            frame = self.spark.read.format("pravega").options(**given).load().where(read.condition)
            if read.how == "count":
                return [(frame.count(),)]
            if read.how == "limit":
                return [(frame.select(*read.columns).limit(3).count(),)]
            return _rows(frame, read)
        except PySparkException as error:
            lines = [line for line in str(error).splitlines() if "[PRAVEGA-" in line]
            return lines[-1][lines[-1].index("[PRAVEGA-") :].strip() if lines else str(error)

    def _streamed(self, read: _Read, given: dict[str, str]) -> list[Row]:
        with tempfile.TemporaryDirectory() as checkpoint:
            found: list[Row] = []
            frame = self.spark.readStream.format("pravega").options(**given).load()
            writer = frame.writeStream.foreachBatch(lambda batch, _: found.extend(_rows(batch, read)))
            query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
            query.awaitTermination()
            return sorted(found, key=repr)


def _rows(frame: DataFrame, read: _Read) -> list[Row]:
    columns = ["sha1(event) AS event" if each == "event" else each for each in read.columns]
    return sorted((tuple(row) for row in frame.selectExpr(*columns).collect()), key=repr)


def _condition(chance: random.Random, bounds: dict[int, list[int]]) -> str:
    """Return a random filter on metadata columns."""
    segment = chance.choice(sorted(bounds))
    offset = chance.choice(bounds[segment]) + chance.choice([-1, 0, 0, 1])
    terms = [
        "true",
        f"segment_id {chance.choice(['=', '<>', '<', '>='])} {segment}",
        f"offset {chance.choice(['=', '<', '<=', '>', '>='])} {offset}",
        f"segment_id IN ({segment}, {chance.choice(sorted(bounds))})",
        "stream = 'mixed'",
    ]
    return f" {chance.choice(['AND', 'OR'])} ".join(chance.sample(terms, chance.randrange(1, 3)))


def _write(client: PravegaClient, stream: StreamName, chance: random.Random, segments: int) -> list[int]:
    """Write events of mixed sizes to a stream with this number of segments; return the segments."""
    if client.stream_exists(stream):
        client.scale_stream(stream, segments)
    else:
        client.create_stream(stream, segments)
    sizes = [
        *chance.choices(range(40), k=300),
        *chance.choices(range(3000), k=300),
        *chance.choices(range(99_999), k=12),
    ]
    sizes += [chance.randrange(1_000_000, 2_500_000), (1 << 20) - 8, 1 << 20]
    chance.shuffle(sizes)
    # Zeros look like empty events to a reader that begins inside an event.
    events = [bytes(size) if chance.random() < _ZEROS else chance.randbytes(size) for size in sizes]
    with client.writer(stream) as writer:
        writer.write_column(pa.array(events, pa.binary()), pa.array([str(chance.randrange(99)) for _ in events]))
    return list(client.tail(stream).positions)


def _event_bounds(client: PravegaClient, stream: StreamName, segments: list[int]) -> dict[int, list[int]]:
    """Return the offsets of the events of each segment, and its end."""
    starts: dict[int, list[int]] = {each: [] for each in segments}
    ends = dict.fromkeys(segments, 0)
    for batch in read_slices(client.stores, whole_stream(client.stores, stream).slices):
        starts[batch.segment_id] += batch.offsets.tolist()
        ends[batch.segment_id] = batch.end
    return {each: [*starts[each], ends[each]] for each in segments}


def _difference(python: list[Row] | str, jvm_: list[Row] | str) -> tuple[str, str]:
    """Return what only one of two outcomes has, as short texts."""
    if isinstance(python, str) or isinstance(jvm_, str):
        return _text(python), _text(jvm_)
    ours, theirs = Counter(jvm_), Counter(python)
    return _text(python, theirs - ours), _text(jvm_, ours - theirs)


def _text(outcome: list[Row] | str, only: Counter[Row] | None = None) -> str:
    if isinstance(outcome, str):
        return outcome
    return f"{len(outcome)} rows" + (f", only here {list(only)[:3]}" if only else "")


def main() -> int:
    """Run the rounds; 1 if the readers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="N", help="only this round")
    options = parser.parse_args()
    if jvm.main():
        return 1
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.warehouse.dir", str(Path(tempfile.gettempdir(), "warehouse")))
    # On a busy machine, a Python worker may need longer than Spark's 15 s to connect.
    builder = builder.config("spark.python.authenticate.socketTimeout", "2m").config("spark.log.level", "OFF")
    # The JVM reader always prunes the segments that a filter excludes; the Python reader only with this setting.
    builder = builder.config("spark.sql.python.filterPushdown.enabled", "true")
    spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    numbers = range(options.rounds) if options.only is None else range(options.only, options.only + 1)
    findings, start = 0, time.monotonic()
    with InProcessPravega() as pravega:
        assert use_jvm_reader(spark)
        comparison = Comparison(spark, pravega, options.seed)
        for done, finding in enumerate(comparison.rounds(numbers), 1):
            if finding is not None:
                findings += 1
                print(f"round {finding.number}: {finding.read}\n  Python: {finding.python}\n  JVM: {finding.jvm}")
            if done % 50 == 0 or done == len(numbers):
                print(f"{done} rounds, {findings} findings, {time.monotonic() - start:.0f} s", flush=True)
    print(f"rounds: {dict(comparison.kinds)}; answers: {dict(comparison.faults)}")
    spark.stop()
    return int(findings > 0)


if __name__ == "__main__":
    sys.exit(main())
