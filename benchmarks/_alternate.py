"""Runs that alternate: A B A B, never A A B B.

The speed of a machine drifts, and other work starts and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks._stats import Result, Runs

__all__ = ["Case", "run_case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Same work for several peers.

    Each peer of `peers` does it once, and returns ``seconds`` and ``events``. It also returns the CPU seconds ``cpu``
    and ``server_cpu`` if they are known.
    """

    name: str
    event_size: int
    baseline: str
    peers: Mapping[str, Callable[[], Mapping[str, Any]]]
    aims: Mapping[str, float] = field(default_factory=dict)


def run_case(case: Case, *, rounds: int, warm_ups: int = 1, note: Callable[[str], None] = lambda _: None) -> Result:
    """Measure a case: `warm_ups` runs of each peer that do not count, and then `rounds` alternating rounds."""
    answers: dict[str, list[Mapping[str, Any]]] = {peer: [] for peer in case.peers}
    for turn in range(-warm_ups, rounds):
        for peer, once in case.peers.items():
            note(f"{case.name}: {peer}, {'warm-up' if turn < 0 else f'round {turn + 1} of {rounds}'}")
            answer = once()
            if turn >= 0:
                answers[peer].append(answer)
    runs = {peer: _runs(of_peer, case.event_size) for peer, of_peer in answers.items()}
    return Result(case.name, case.baseline, runs, case.aims)


def _runs(answers: Sequence[Mapping[str, Any]], event_size: int) -> Runs:
    def each(name: str) -> list[float]:
        return [answer[name] / answer["events"] for answer in answers if name in answer]

    return Runs(
        [1 / seconds for seconds in each("seconds")], event_size, cpu=each("cpu"), server_cpu=each("server_cpu")
    )
