"""Plays many points, several of them side by side, and keeps what came out of them in a file."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import fields
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from pravega_connector.local import LocalPravega
from tools.faults.exactly_once._points import Point
from tools.faults.exactly_once._pravega import RestartablePravega
from tools.faults.exactly_once._run import Stage, repeated
from tools.faults.exactly_once._verdict import Verdict

__all__ = ["Record", "play"]

_HEAD: Final = (
    f"{'point':24} {'rows':>5} {'read':>5} {'lost':>4} {'dup':>4} {'order':>5} {'aborted':>7} {'txns':>5} {'s':>6}"
)
_FIELDS: Final = frozenset(field.name for field in fields(Verdict))

_Queue = SimpleQueue[Point]


class Record:
    """Verdicts, in a file that is whole at any time if there is one. Threads may share it."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._lock = file, threading.Lock()
        self.verdicts: list[Verdict] = []
        if file is not None and file.exists():
            self.verdicts = [_verdict(known) for known in json.loads(file.read_text())]

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict, and show it."""
        with self._lock:
            self.verdicts.append(verdict)
            self._save()
            _show(verdict)

    def missing(self, points: Sequence[Point], repeat: int) -> list[Point]:
        """What is still to be played so that each point has passed ``repeat`` times: every point before any again."""
        passed = Counter(verdict.point for verdict in self.verdicts if not verdict.failures)
        seen: Counter[str] = Counter()
        missing = []
        for point in repeated(points, repeat):
            seen[point.name] += 1
            if seen[point.name] > passed[point.name]:
                missing.append(point)
        return missing

    def conclude(self, points: Sequence[Point]) -> bool:
        """Say what has failed; whether nothing has."""
        names = {point.name for point in points}
        verdicts = [verdict for verdict in self.verdicts if verdict.point in names]
        failed = [verdict for verdict in verdicts if verdict.failures]
        for verdict in failed:
            print(f"FAILED {verdict.point}: {'; '.join(verdict.failures)}")
        left = sum(verdict.left_open for verdict in verdicts)
        print(f"{len(verdicts)} runs, {len(failed)} failed; {left} transactions left open after their leases")
        return not failed

    def _save(self) -> None:
        if self._file is not None:
            new = self._file.with_suffix(".new")
            new.write_text(json.dumps([verdict.as_json() for verdict in self.verdicts], indent=1) + "\n")
            new.replace(self._file)


def _verdict(known: dict[str, Any]) -> Verdict:
    return Verdict(**{name: value for name, value in known.items() if name in _FIELDS})


def _show(v: Verdict) -> None:
    print(
        f"{v.point:24} {v.rows:5} {v.read_back:5} {v.lost:4} {v.duplicated:4} {v.out_of_order:5} {v.of_aborted:7} "
        f"{v.transactions:5} {v.seconds:6}  {v.fault}",
        flush=True,
    )
    for failure in v.failures:
        print(f"    FAILED: {failure}", flush=True)


def play(record: Record, points: Sequence[Point], repeat: int, jobs: int, keep: Path | None) -> None:
    """Play what the record misses, ``jobs`` points at a time; an interrupt lets those end that have begun."""
    ordinary: _Queue = SimpleQueue()
    restarting: _Queue = SimpleQueue()
    for point in record.missing(points, repeat):
        (restarting if point.restarts else ordinary).put(point)
    print(_HEAD, flush=True)
    with ExitStack() as stack:
        # The pool ends first: its lanes need the server.
        server = None if ordinary.empty() else stack.enter_context(LocalPravega())
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        lanes: list[Future[None]] = []
        if not restarting.empty():
            # A server that is killed has one user, so these are played one after the other.
            lanes.append(pool.submit(_restarting_lane, restarting, record, keep))
        if server is not None:
            stages = [Stage(server.config, _folder(keep, f"lane{number}")) for number in range(jobs)]
            lanes += [pool.submit(_lane, stage, ordinary, record) for stage in stages]
        try:
            for lane in lanes:
                lane.result()
        except BaseException:
            _drain(ordinary)
            _drain(restarting)
            raise


def _restarting_lane(todo: _Queue, record: Record, keep: Path | None) -> None:
    with RestartablePravega() as cluster:
        _lane(Stage(cluster.config, _folder(keep, "restarting"), restart=cluster.restart), todo, record)


def _lane(stage: Stage, todo: _Queue, record: Record) -> None:
    with stage:
        while (point := _next(todo)) is not None:
            stage.run(point)
            for verdict in stage.settled():
                record.add(verdict)
        for verdict in stage.settle():
            record.add(verdict)


def _next(todo: _Queue) -> Point | None:
    try:
        return todo.get_nowait()
    except Empty:
        return None


def _drain(todo: _Queue) -> None:
    while _next(todo) is not None:
        pass


def _folder(keep: Path | None, name: str) -> Path | None:
    if keep is None:
        return None
    folder = keep / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
