"""CPU time of processes, from ``/proc``."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from typing import Final

__all__ = ["cpu_seconds", "tree_cpu_seconds"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process until now, including its ended children."""
    return _cpu_time(_stat(pid))


def tree_cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process and of all its descendants."""
    children = defaultdict(list)
    times = {pid: cpu_seconds(pid)}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = _stat(int(folder.name))
        except OSError:
            continue  # it has ended, and its parent has its time
        times[int(folder.name)] = _cpu_time(stat)
        children[int(stat[1])].append(int(folder.name))
    total, pending = 0.0, [pid]
    while pending:
        process = pending.pop()
        pending += children[process]
        total += times[process]
    return total


def _cpu_time(stat: list[str]) -> float:
    return sum(map(int, stat[11:15])) / _TICKS


def _stat(pid: int) -> list[str]:
    """Return the fields of proc_pid_stat(5) after the command. The first one is the state."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
