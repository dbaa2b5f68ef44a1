"""Verdict on a run: events are counted against those expected, with no loss, repetition or change of order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

_WRONG: Final = ("lost", "duplicated", "out_of_order")


@dataclass
class Verdict:
    """Result of one run of one scenario."""

    scenario: str
    seed: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """``events``, ``lost``, ``duplicated`` and ``out_of_order`` of each reader."""
    measures: dict[str, Any] = field(default_factory=dict)
    """Numbers that this table measures in addition."""
    faults: dict[str, int] = field(default_factory=dict)
    """How often each fault was caused."""
    proofs: list[str] = field(default_factory=list)
    """How the faults are known to have happened."""
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def sum(self, what: str) -> int:
        """Return the sum of a count over the readers."""
        return sum(counts[what] for counts in self.counts.values())

    def check_counts(self) -> None:
        """Add a failure for each count that must be 0."""
        self.failures += [
            f"{counts[what]} {what} in {reader}"
            for reader, counts in self.counts.items()
            for what in _WRONG
            if counts[what]
        ]


class Tally:
    """Counts events that are numbered from 0 for each key, in the order in which a reader receives them."""

    def __init__(self) -> None:
        self.last: dict[str, int] = {}
        self.events = self.duplicated = self.out_of_order = 0
        self._missing: set[tuple[str, int]] = set()

    def add(self, key: str, number: int) -> None:
        self.events += 1
        last = self.last.get(key, -1)
        if number > last:
            self._missing |= {(key, between) for between in range(last + 1, number)}
            self.last[key] = number
        elif (key, number) in self._missing:
            self._missing.remove((key, number))
            self.out_of_order += 1
        else:
            self.duplicated += 1

    def behind(self, marks: Mapping[str, int]) -> int:
        """Return how many numbers are left before the last number of each key."""
        return sum(max(0, number - self.last.get(key, -1)) for key, number in marks.items())

    def take(self, marks: Mapping[str, int], unsure: Iterable[tuple[str, int]] = ()) -> dict[str, int]:
        """Return the counts since the last call. ``unsure``: events that may be lost, as an error reported."""
        behind = {(key, n) for key, mark in marks.items() for n in range(self.last.get(key, -1) + 1, mark + 1)}
        lost = (self._missing | behind) - set(map(tuple, unsure))
        counts = {
            "events": self.events,
            "lost": len(lost),
            "duplicated": self.duplicated,
            "out_of_order": self.out_of_order,
        }
        self.events = self.duplicated = self.out_of_order = 0
        self._missing.clear()
        for key, mark in marks.items():
            self.last[key] = max(mark, self.last.get(key, -1))
        return counts
