"""Memory, threads and descriptors of clients over time; a verdict reports those that grow."""

from __future__ import annotations

import csv
import os
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

from tests.faults.verdict import Verdict
from tests.support.processes import session_of, stat_of

_SAMPLE_SECONDS: Final = 5.0
_UNITS: Final = ("rss_mib", "threads", "descriptors")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Sampler:
    """Samples the sessions of some processes, in a thread. Context manager."""

    def __init__(self, leaders: Mapping[str, int]) -> None:
        self._leaders = dict(leaders)
        self._rows: list[dict[str, float | str]] = []
        self._begin, self._stop = time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            for name, leader in self._leaders.items():
                at = round(time.monotonic() - self._begin, 1)
                self._rows.append({"seconds": at, "process": name, **_sample(session_of(leader))})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop.set()
        self._thread.join()

    def verdict(self, folder: Path) -> Verdict:
        """Write the samples to ``resources.csv``; return the growth, which is a failure."""
        rows = list(self._rows)
        with (folder / "resources.csv").open("w", newline="") as out:
            writer = csv.DictWriter(out, ["seconds", "process", *_UNITS])
            writer.writeheader()
            writer.writerows(rows)
        return Verdict("resources", measures=growth(rows), failures=grown(rows))


def _sample(pids: Iterable[int]) -> dict[str, float]:
    """Return the sums over processes; some of them may end in the meantime."""
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
    """Return the medians of the second and of the last quarter of the time, for each process and unit."""
    end = max((row["seconds"] for row in rows), default=0.0)
    quarters = [(0.25 * end, 0.5 * end), (0.75 * end, end)]

    def value(process: str, unit: str, begin: float, end: float) -> float:
        return median(row[unit] for row in rows if row["process"] == process and begin <= row["seconds"] <= end)

    return {
        process: {unit: (value(process, unit, *quarters[0]), value(process, unit, *quarters[1])) for unit in _UNITS}
        for process in dict.fromkeys(row["process"] for row in rows)
    }


def grown(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what has grown: by more than a fifth from the second to the last quarter, and by more than 16 units."""
    return [
        f"{unit} of {process} grew from {before:g} to {after:g}"
        for process, units in growth(rows).items()
        for unit, (before, after) in units.items()
        if after > 1.2 * before and after - before > 16
    ]
