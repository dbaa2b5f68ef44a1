"""Faults at random, several at a time, over chained exactly-once jobs and an ingester, for long; what that takes."""

from __future__ import annotations

import csv
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from pravega_connector.local import ClusterProcess
from tests.interop._java import JavaPeer
from tools.faults.cluster._faults import Run, Servers, session
from tools.faults.cluster._stage import Record, Stage, Verdict, complaints
from tools.processes import stat_of

__all__ = ["Sampler", "draw", "growth", "micro_batches", "soak"]

_SAMPLE_SECONDS: Final = 5.0
_UNITS: Final = ("rss_mib", "threads", "descriptors")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


# ---- memory, threads, descriptors ------------------------------------------------------------------------------------


class Sampler:
    """Notes what the clients' processes take, in a thread. Context manager."""

    def __init__(self, leaders: Mapping[str, int]) -> None:
        self.leaders = dict(leaders)
        self.rows: list[dict[str, float | str]] = []
        self._begin, self._stop = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            for name, leader in self.leaders.items():
                at = round(time.monotonic() - self._begin, 1)
                self.rows.append({"seconds": at, "process": name, **_taken(session(leader))})

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()

    def write(self, file: Path) -> None:
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, ["seconds", "process", *_UNITS])
            writer.writeheader()
            writer.writerows(self.rows)


def _taken(pids: Iterable[int]) -> dict[str, float]:
    """What processes take together; those of a session come and go with its tasks."""
    taken = dict.fromkeys(_UNITS, 0.0)
    for pid in pids:
        stat = stat_of(pid)
        if stat:
            taken["threads"] += int(stat[17])
            taken["rss_mib"] += int(stat[21]) * _PAGE / (1 << 20)
        try:
            taken["descriptors"] += len(os.listdir(f"/proc/{pid}/fd"))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return {unit: round(value, 1) for unit, value in taken.items()}


def growth(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, tuple[float, float]]]:
    """Of each process and unit: the medians of the second and of the last quarter of the time."""
    end = max(row["seconds"] for row in rows)
    quarters = [(0.25 * end, 0.5 * end), (0.75 * end, end)]

    def value(process: str, unit: str, begin: float, end: float) -> float:
        return median(row[unit] for row in rows if row["process"] == process and begin <= row["seconds"] <= end)

    return {
        process: {unit: (value(process, unit, *quarters[0]), value(process, unit, *quarters[1])) for unit in _UNITS}
        for process in dict.fromkeys(row["process"] for row in rows)
    }


def grown(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is not flat: a fifth more in the last quarter than in the second, and more than 16 of its unit."""
    return [
        f"{unit} of {process} grew from {before:g} to {after:g}"
        for process, units in growth(rows).items()
        for unit, (before, after) in units.items()
        if after > 1.2 * before and after - before > 16
    ]


def draw(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """A picture of the samples: one panel for each unit, a line for each process."""
    width, height, colours = 900, 220, ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")
    processes = list(dict.fromkeys(row["process"] for row in rows))
    end = max(row["seconds"] for row in rows)
    parts = []
    for panel, unit in enumerate(_UNITS):
        most = max(row[unit] for row in rows) or 1
        top = panel * (height + 40) + 30
        parts.append(f'<text x="10" y="{top - 8}">{unit}, up to {most:g}; {end:.0f} s</text>')
        parts.append(f'<rect x="10" y="{top}" width="{width}" height="{height}" fill="none" stroke="#999"/>')
        for colour, process in zip(colours, processes, strict=False):
            points = " ".join(
                f"{10 + width * row['seconds'] / end:.1f},{top + height - height * row[unit] / most:.1f}"
                for row in rows
                if row["process"] == process
            )
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
            y = top + 16 * (1 + processes.index(process))
            parts.append(f'<text x="20" y="{y}" fill="{colour}">{process}</text>')
    total = len(_UNITS) * (height + 40) + 10
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 20}" height="{total}" font-family="sans-serif">'
    file.write_text("\n".join([head, *parts, "</svg>\n"]))


# ---- faults at random ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Harm:
    """Something done to one process for a while."""

    process: ClusterProcess
    kill: bool
    after: float
    seconds: float

    def __str__(self) -> str:
        return f"{'kill' if self.kill else 'freeze'} {self.process.name} at {self.after:.0f} s for {self.seconds:.0f} s"


def _harms(run: Run) -> list[_Harm]:
    """One to three processes of different names, and when and for how long each is away."""
    assert run.cluster is not None
    names = run.random.sample(sorted(run.cluster.processes), run.random.choice((1, 1, 2, 3)))
    return [
        _Harm(run.process(name), run.random.random() < 0.6, run.random.uniform(0, 15), run.random.uniform(1, 45))
        for name in names
    ]


def _combine(run: Run) -> str:
    """Make several faults in their time, undo them, and wait until all clients go on."""
    harms, begin = _harms(run), time.monotonic()
    steps = [(harm.after, harm, True) for harm in harms]
    steps += [(harm.after + harm.seconds, harm, False) for harm in harms]
    for at, harm, begins in sorted(steps, key=lambda step: step[0]):
        time.sleep(max(0.0, begin + at - time.monotonic()))
        _do(harm) if begins else _undo(harm)
    assert run.cluster is not None
    run.now()
    for process in run.cluster.processes.values():
        # One that has lost its session may have ended itself; whoever runs it starts it again.
        process.start()
    run.go_on()
    return "; ".join(map(str, harms))


def _do(harm: _Harm) -> None:
    if not harm.process.running:
        harm.process.start()
    pid = harm.process.pid
    (harm.process.kill if harm.kill else harm.process.pause)()
    assert stat_of(pid)[:1] in ([[], ["Z"]] if harm.kill else [["T"]]), f"{harm} was not done: {stat_of(pid)[:1]}"


def _undo(harm: _Harm) -> None:
    if harm.kill:
        harm.process.start()
    elif harm.process.running:
        harm.process.resume()


@contextmanager
def _sampled(stage: Stage, folder: Path) -> Iterator[Sampler]:
    names = ("workload", "query", "ingester")
    leaders = {name: stage.scene.processes[name].pid for name in names if name in stage.scene.processes}
    with Sampler(leaders) as sampler:
        yield sampler
    sampler.write(folder / "resources.csv")
    draw(sampler.rows, folder / "resources.svg")


def soak(record: Record, minutes: float, seed: str, folder: Path) -> list[str]:
    """Round after round until the time is over; complaints, among them what has grown."""
    end = time.monotonic() + 60.0 * minutes
    with (
        Stage(Servers.ONE, folder, queries=2) as stage,
        JavaPeer(stage.scene.config.controller, folder) as java,
        _sampled(stage, folder) as sampler,
    ):
        number = 0
        while time.monotonic() < end and not (number and record.verdicts[-1].failures):
            record.add(stage.play("soak", f"{seed}.{number}", fault=_combine, java=java))
            number += 1
    return [failure for verdict in record.verdicts for failure in verdict.failures] + grown(sampler.rows)


def micro_batches(batches: int, folder: Path) -> list[str]:
    """One query for so many micro-batches, without faults; complaints."""
    with Stage(Servers.ONE, folder, queries=1) as stage, _sampled(stage, folder) as sampler:
        timeline, begin = stage.scene.timeline(), time.monotonic()
        while len(timeline.refresh().done["query1"]) < batches:
            time.sleep(5.0)
            assert time.monotonic() - begin < 30.0 * batches, "the query does not go on"
        audit = stage.scene.audit()
    print(f"{batches} micro-batches in {time.monotonic() - begin:.0f} s: {audit}")
    for process, units in growth(sampler.rows).items():
        print(process, {unit: f"{before:g} → {after:g}" for unit, (before, after) in units.items()})
    return complaints(audit) + grown(sampler.rows)


def sums(verdicts: Sequence[Verdict]) -> str:
    """One line about many rounds."""
    counts = {
        what: sum(verdict.sum(what) for verdict in verdicts)
        for what in ("events", "lost", "duplicated", "out_of_order")
    }
    harms = sum(verdict.proof.count(" for ") for verdict in verdicts)
    return f"{len(verdicts)} rounds, {harms} faults, {counts}"
