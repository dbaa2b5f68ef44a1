"""Runs that alternate: A B A B, never A A B B, because a machine's speed drifts and other work comes and goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks._stats import Result, Runs

__all__ = ["Case", "run_case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The same work for several peers. Each of `peers` does it once and answers ``{"seconds", "events"}``."""

    name: str
    event_size: int
    baseline: str
    peers: Mapping[str, Callable[[], Mapping[str, Any]]]
    aims: Mapping[str, float] = field(default_factory=dict)


def run_case(case: Case, *, rounds: int, warm_ups: int = 1, note: Callable[[str], None] = lambda _: None) -> Result:
    """Measure a case: every peer `warm_ups` times without counting, then `rounds` rounds in turn."""
    rates: dict[str, list[float]] = {peer: [] for peer in case.peers}
    for turn in range(-warm_ups, rounds):
        for peer, once in case.peers.items():
            note(f"{case.name}: {peer}, {'warm-up' if turn < 0 else f'round {turn + 1} of {rounds}'}")
            answer = once()
            if turn >= 0:
                rates[peer].append(answer["events"] / answer["seconds"])
    runs = {peer: Runs(values, case.event_size) for peer, values in rates.items()}
    return Result(case.name, case.baseline, runs, case.aims)
