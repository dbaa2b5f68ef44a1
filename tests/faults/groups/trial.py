"""One trial: readers in Java and Python share a group, and are killed, paused and removed while streams are scaled.

The seed decides the faults, their times and the readers. The audit needs only the files of the folder: the notes of
each reader, the history of the group's state, and ``trial.json``.
"""

from __future__ import annotations

import heapq
import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

from benchmarks._drive import PeerError
from pravega_connector.client import GroupCheckpoint, PravegaClient, ReaderGroup, StreamCut, StreamName
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ControllerError
from pravega_connector.reader_groups.protocol import Segment, administration, decode_position
from pravega_connector.wire import SegmentRange
from tests.faults.groups.history import History
from tests.faults.groups.readers import KINDS, ReaderProcess
from tests.faults.processes import await_that
from tests.interop._java_readers import JavaReaders

_KEYS: Final = 12  # of a stream
_CHUNKS: Final = 20  # a second
_DRAIN: Final = 240.0
#: First part of a segment's number in each stream: no two streams have the same, because Java's clients take them
#: for one (docs/client/reader-groups.md).
_SCALED_BEFORE: Final = ((), (9, 1), (3, 1, 3, 1))


@dataclass(frozen=True)
class GroupSettings:
    events: int = 100_000
    seconds: float = 100.0
    """Time in which the events are written and the faults happen."""
    pause: float = 30.0
    """Seconds of a pause."""
    checkpoint_ms: int = 2000
    refresh_ms: int = 1000


@dataclass
class Record:
    """Record of the trial for the audit; times in milliseconds."""

    seed: int
    settings: dict[str, Any]
    written: dict[str, int] = field(default_factory=dict)
    """Number of events of each key."""
    phases: list[dict[str, str]] = field(default_factory=list)
    """Stream cuts, as text by stream, at which the group began, and at which each reset begins."""
    readers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """``kind`` and ``phase`` of each."""
    offline: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Readers that were removed: ``done`` is the time; ``resumed``, if it was paused then."""
    checkpoints: dict[str, Any] = field(default_factory=dict)
    """Checkpoints that Java has begun: stream cuts as text by stream, or the error."""
    resets: list[str] = field(default_factory=list)
    proofs: list[str] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)


def play(config: PravegaConfig, seed: int, folder: Path, settings: GroupSettings) -> None:
    """Play a trial. Raises AssertionError for a fault that did not happen, or events that are not read in time."""
    with Trial(config, seed, folder, settings) as trial:
        trial.run()
        trial.reset(by="java")
        trial.reset(by="python")
        trial.end()
    (folder / "trial.json").write_text(json.dumps(asdict(trial.record), indent=1) + "\n")


class Trial:
    """The group, its streams, readers and writers. Context manager."""

    def __init__(self, config: PravegaConfig, seed: int, folder: Path, settings: GroupSettings) -> None:
        self.random, self.settings, self.folder = random.Random(seed), settings, folder
        self._compactions = random.Random(f"{seed} compactions")
        self.record = Record(seed, asdict(settings))
        self._config = config
        self.scope, self.name = f"groups{time.time_ns()}", "group"
        self.streams = [StreamName(self.scope, name) for name in "abc"]
        self._processes: list[ReaderProcess] = []
        self._spare: dict[str, ReaderProcess] = {}
        self._returning: list[ReaderProcess] = []  # that join again after they have left
        self._numbers = itertools.count(1)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._tasks: list[Future[None]] = []
        self._completed: dict[str, GroupCheckpoint] = {}
        self._begun: str | None = None
        self._next_poll = 0.0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for kind in KINDS:
                for _ in range(3):  # one to spare
                    self._processes.append(self._process(kind, stack))
            self.client = stack.enter_context(PravegaClient(self._config, timeout=120.0))
            self.java = stack.enter_context(JavaReaders(self._config.controller, self.scope, self.name))
            starts = self._make_streams()
            self.record.phases.append(_texts(starts))
            self.group = stack.enter_context(self._make_group(starts))
            name = StreamName(self.scope, self.name)
            self._history = stack.enter_context(History(self.client, name, self.folder / "history.jsonl"))
            self._pool = stack.enter_context(ThreadPoolExecutor(4))
            self._stop = threading.Event()
            stack.callback(self._stop.set)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def _process(self, kind: str, stack: ExitStack | None = None) -> ReaderProcess:
        process = ReaderProcess(kind, self._config.controller, self.folder, next(self._numbers))
        (stack or self._stack).callback(process.close)
        return process

    def _make_streams(self) -> dict[StreamName, StreamCut]:
        self.client.create_scope(self.scope)
        for stream, before in zip(self.streams, _SCALED_BEFORE, strict=True):
            self.client.create_stream(stream)
            for segments in before:
                self.client.scale_stream(stream, segments)
        return {stream: self.client.tail(stream) for stream in self.streams}

    def _make_group(self, starts: dict[StreamName, StreamCut]) -> ReaderGroup:
        """Create the group with Java for odd seeds, else with Python."""
        if self.record.seed % 2:
            self.java.create({stream: (cut, None) for stream, cut in starts.items()}, **self._times)
            return self.client.reader_group(f"{self.scope}/{self.name}")
        return self.client.reader_group(
            f"{self.scope}/{self.name}",
            self.streams,
            start=list(starts.values()),
            checkpoint_interval=self.settings.checkpoint_ms / 1000,
            refresh=self.settings.refresh_ms / 1000,
        )

    @property
    def _times(self) -> dict[str, int]:
        return {"checkpoint_ms": self.settings.checkpoint_ms, "refresh_ms": self.settings.refresh_ms}

    # ---- the run

    def run(self) -> None:
        """Cause all faults, and wait until all events are read."""
        first, self._processes = self._processes, []
        for kind in KINDS:
            own = [process for process in first if process.kind == kind]
            self._spare[kind] = own.pop()
            self._processes += own
        for process in self._processes:
            self._join(process)
        self._await("all readers have joined", lambda: all(process.is_reading for process in self._processes))
        self._began = time.monotonic()
        writing = self._do(self._write)
        for second, action in self._plan():
            self._at(second, action)
        self._checkpoint_later()
        while self._agenda or self._returning or not writing.done():
            self._step()
        for task in self._tasks:
            task.result(_DRAIN)
        self._checkpoint_of_all()
        self._await_end()

    def _plan(self) -> Iterator[tuple[float, Callable[[], None]]]:
        chosen, length = self.random, self.settings.seconds
        with_removal = [True, False]  # the paused reader of one kind is removed
        chosen.shuffle(with_removal)
        for kind, removed in zip(KINDS, with_removal, strict=True):
            yield chosen.uniform(0.05, 0.9) * length, partial(self._kill, kind)
            yield chosen.uniform(0.05, 0.6) * length, partial(self._pause, kind, removed)
            yield chosen.uniform(0.05, 0.9) * length, partial(self._take_live_offline, kind)
            yield chosen.uniform(0.05, 0.9) * length, partial(self._leave, kind)
        for kind in chosen.choices(KINDS, k=chosen.randrange(1, 4)):
            more = [partial(self._kill, kind), partial(self._add, kind), partial(self._take_live_offline, kind)]
            yield chosen.uniform(0.05, 0.9) * length, chosen.choice(more)
        yield chosen.uniform(0.05, 0.9) * length, partial(self._add, chosen.choice(KINDS))
        for _ in range(3):
            yield self._compactions.uniform(0.1, 0.9) * length, self._compact
        for stream in self.streams:
            yield chosen.uniform(0.05, 0.4) * length, partial(self._scale, stream, 6)
            yield chosen.uniform(0.55, 0.9) * length, partial(self._scale, stream, 2)

    def _step(self) -> None:
        """Do the actions that are due, and check the returning readers and the checkpoint."""
        assert self._history.error is None, f"the state of the group cannot be read: {self._history.error!r}"
        while self._agenda and self._agenda[0][0] <= time.monotonic() - self._began:
            heapq.heappop(self._agenda)[2]()
        for process in [one for one in self._returning if one.has_noted("out", "left")]:
            self._returning.remove(process)
            self._later(self.random.uniform(0.5, 3.0), partial(self._join, process))
        self._poll_checkpoint()
        time.sleep(0.05)

    def _at(self, second: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (second, next(self._order), action))

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        self._at(time.monotonic() - self._began + seconds, action)

    def _do(self, work: Callable[[], None]) -> Future[None]:
        task = self._pool.submit(work)
        self._tasks.append(task)
        return task

    def _await(self, what: str, condition: Callable[[], object], seconds: float = _DRAIN) -> None:
        def holds() -> object:
            assert self._history.error is None, f"the state of the group cannot be read: {self._history.error!r}"
            return condition()

        try:
            await_that(what, holds, seconds, poll=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; {self._status()}") from None

    def _status(self) -> str:
        state = self._history.state
        assigned = {} if state is None else {reader: len(owned) for reader, owned in state.assigned.items()}
        silent = [f"{one.reader}: {one.text()}" for one in self._processes if not one.is_reading]
        free = state and (len(state.unassigned), len(state.future), list(state.checkpoints.waiting.items()))
        return f"segments {assigned}, others {free}; {silent}"

    # ---- writing

    def _write(self) -> None:
        settings, numbers = self.settings, Counter[str]()
        chunk = max(1, round(settings.events / settings.seconds / _CHUNKS))
        with ExitStack() as stack:
            writers = [stack.enter_context(self.client.writer(stream, "string")) for stream in self.streams]
            for begin in range(0, settings.events, chunk):
                for number in range(begin, min(settings.events, begin + chunk)):
                    writer = number % len(writers)
                    key = f"{self.streams[writer].stream}{number // len(writers) % _KEYS}"
                    writers[writer].write(f"{key}:{numbers[key]}", key)
                    numbers[key] += 1
                if self._stop.wait(
                    max(0.0, self._began + begin / settings.events * settings.seconds - time.monotonic())
                ):
                    return
        self.record.written = dict(numbers)

    def _scale(self, stream: StreamName, segments: int) -> None:
        def scaled() -> list[SegmentRange]:
            with suppress(ControllerError):  # the controller may still finish the scaling before
                return self.client.scale_stream(stream, segments)
            return []

        def scale() -> None:
            now = await_that(f"{stream} is scaled", scaled, _DRAIN, poll=0.5)
            assert len(now) == segments
            numbers = ", ".join(str(one.id & 0xFFFFFFFF) for one in now)
            self._happened("scaled", f"{stream.stream} has segments {numbers}")

        self._do(scale)

    def _compact(self) -> None:
        """Compact the state, which readers seldom do in a short trial; readers that join begin there."""
        if self.group._log.compact(lambda state: state):
            self._happened("compacted", f"the state is compacted at {self.group._log.revision}")

    # ---- faults of readers

    def _happened(self, kind: str, proof: str) -> None:
        self.record.faults[kind] = self.record.faults.get(kind, 0) + 1
        self.record.proofs.append(f"{time.time_ns() // 1_000_000} {proof}")

    def _join(self, process: ReaderProcess) -> None:
        reader = f"{process.kind}-{len(self.record.readers) + 1}"
        self.record.readers[reader] = {"kind": process.kind, "phase": len(self.record.phases) - 1}
        process.join(self.scope, self.name, reader)

    def _choose(self, kind: str, again: Callable[[], None]) -> ReaderProcess | None:
        """Return a reader for a fault if another one reads as well; else try again later."""
        well = [process for process in self._processes if process.is_reading and process not in self._returning]
        own = [process for process in well if process.kind == kind and process.position is not None]
        if not own or len(well) < 2:
            self._later(1.0, again)
            return None
        return self.random.choice(own)

    def _kill(self, kind: str) -> None:
        process = self._choose(kind, partial(self._kill, kind))
        if process is not None:
            self._happened(f"{kind} killed", f"{process.reader} {process.kill()}")
            self._processes.remove(process)
            wait = self.random.uniform(1.0, 6.0)
            self._later(wait, partial(self._take_offline, process.reader, process))
            self._later(wait + self.random.uniform(0.0, 3.0), partial(self._add_reader, kind))

    def _add_reader(self, kind: str) -> None:
        process = self._spare.pop(kind, None) or self._process(kind)
        self._processes.append(process)
        self._join(process)
        self._spare[kind] = self._process(kind)

    def _add(self, kind: str) -> None:
        self._add_reader(kind)
        self._happened(f"{kind} added", f"{self._processes[-1].reader} comes in addition")

    def _leave(self, kind: str) -> None:
        process = self._choose(kind, partial(self._leave, kind))
        if process is not None:
            process.leave()
            self._returning.append(process)
            self._happened(f"{kind} left", f"{process.reader} leaves")

    def _take_live_offline(self, kind: str) -> None:
        process = self._choose(kind, partial(self._take_live_offline, kind))
        if process is not None:
            self._take_offline(process.reader, process)
            self._returning.append(process)
            self._happened(f"{kind} taken offline", f"{process.reader} was taken offline while it was reading")

    def _pause(self, kind: str, removed: bool) -> None:
        process = self._choose(kind, partial(self._pause, kind, removed))
        if process is None:
            return
        process.pause()
        self._later(self.settings.pause, partial(self._resume, process, removed))
        if removed:
            wait = self.random.uniform(0.1, 0.8) * self.settings.pause
            self._later(wait, partial(self._take_offline, process.reader, process))
            self._returning.append(process)

    def _resume(self, process: ReaderProcess, removed: bool) -> None:
        if removed:
            self.record.offline[process.reader]["resumed"] = time.time_ns() // 1_000_000
        kind = f"{process.kind} paused" + (" and taken offline" if removed else "")
        self._happened(kind, f"{process.reader} {process.resume()} for {self.settings.pause:g} s")

    def _take_offline(self, reader: str, process: ReaderProcess) -> None:
        """Remove a reader with Java or Python, at the position that it noted last, or at its last checkpoint."""
        position = process.position if self.random.random() < 0.4 else None
        by = self.random.choice(KINDS)
        if by == "java":
            self.java.offline(reader, position)
        else:
            there = self.group.reader_offline(reader, None if position is None else decode_position(position))
            assert there, f"{reader} was offline already"
        self.record.offline[reader] = {"done": time.time_ns() // 1_000_000, "by": by, "position": position is not None}

    # ---- checkpoints

    def _checkpoint_later(self) -> None:
        if time.monotonic() - self._began < self.settings.seconds:
            self._later(self.random.uniform(1.0, 5.0), self._begin_checkpoint)

    def _begin_checkpoint(self) -> None:
        if self._begun is None:
            self._begin()
        self._checkpoint_later()

    def _begin(self) -> None:
        name = f"checkpoint-{len(self.record.checkpoints) + 1}"
        self.record.checkpoints[name] = None
        self.java.begin(name)
        self._begun = name

    def _poll_checkpoint(self) -> None:
        if self._begun is None or time.monotonic() < self._next_poll:
            return
        name, self._next_poll = self._begun, time.monotonic() + 0.5
        try:
            found = self.java.completed(name, 0.001)
        except PeerError as error:  # Java looks for it twice a second: a later one may have cleared it
            self.record.checkpoints[name] = {"error": str(error).partition("\n")[0]}
            self._begun = None
            return
        if found is not None:
            cuts, data = found
            self.record.checkpoints[name] = {"cuts": _texts(cuts)}
            self._completed[name] = GroupCheckpoint.from_bytes(data)
            assert self._completed[name].cuts == cuts, f"{name} has other cuts in its bytes"
            self._begun = None

    def _checkpoint_of_all(self) -> None:
        """Have Java begin checkpoints until one is complete in which all readers took part."""
        self._await("all readers read", lambda: all(process.is_reading for process in self._processes))
        self._await("the checkpoint before is complete", self._has_no_checkpoint)
        before = len(self._completed)

        def is_complete() -> bool:
            if self._begun is None:
                self._begin()
            self._poll_checkpoint()
            return len(self._completed) > before

        self._await("a checkpoint of all readers is complete", is_complete)

    def _has_no_checkpoint(self) -> bool:
        self._poll_checkpoint()
        return self._begun is None

    def _await_end(self) -> None:
        """Wait until a checkpoint of all readers is at the tails of the streams."""
        tails = {
            Segment(stream, number): offset
            for stream in self.streams
            for number, offset in self.client.tail(stream).positions.items()
        }

        def is_read() -> bool:
            state = self._history.state
            return state is not None and dict(state.checkpoints.last) == tails

        self._await("everything is read", is_read)

    # ---- resets

    def reset(self, by: str) -> None:
        """Reset the group to a checkpoint that Java has begun, and read to the end."""
        at = self._to_reset_to(whole=by == "java")
        out = list(self._processes)
        if by == "java":
            self.java.reset_to(at.to_bytes(), self.streams, **self._times)
        else:
            self.group.reset(at)
        self.record.phases.append(_texts(at.cuts))
        self.record.resets.append(f"by {by} to {at.name}")
        self._await("all readers are out", lambda: all(process.has_noted("out") for process in out))
        for process in self._processes:
            self._join(process)
        self._await_end()

    def _to_reset_to(self, *, whole: bool) -> GroupCheckpoint:
        """Return one from the middle; ``whole``: without the gap for which Java's own reset waits forever."""
        complete = list(self._completed.values())
        assert complete, f"no checkpoint is complete: {self.record.checkpoints}"
        middle = complete[len(complete) // 4 : 3 * len(complete) // 4 + 1]
        self.random.shuffle(middle)
        found = next((one for one in [*middle, *complete] if not whole or not self._missing(one)), None)
        assert found is not None, "each checkpoint lies between a segment and what it is merged with"
        return found

    def _missing(self, checkpoint: GroupCheckpoint) -> dict[Segment, int]:
        positions = {
            Segment(stream, number): at
            for stream, cut in checkpoint.cuts.items()
            for number, at in cut.positions.items()
        }
        predecessors = {
            Segment(segment.stream, one.range.id): tuple(one.predecessors)
            for segment in positions
            for one in self.client.controller.successors(segment.stream, segment.id)
        }
        return administration.missing_from(positions, predecessors)

    def end(self) -> None:
        """Close all readers."""
        for process in self._processes:
            process.leave()
        self._await("all have left", lambda: all(process.has_noted("left") for process in self._processes))


def _texts(cuts: Any) -> dict[str, str]:
    return {str(stream): cut.to_text() for stream, cut in cuts.items()}
