"""Results and their display: medians, ranges, and ratios to one baseline of the same run."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table

__all__ = ["Result", "Runs", "as_json", "as_table"]


@dataclass(frozen=True, slots=True)
class Runs:
    """Rates of one peer in one case, in the order of the rounds."""

    rates: Sequence[float]
    """Events per second."""
    event_size: int
    """Payload bytes of an event."""
    cpu: Sequence[float] = ()
    """CPU seconds of the peer for each event, if known. They vary less than rates if a machine has other work."""
    server_cpu: Sequence[float] = ()
    """CPU seconds of the server for each event, if known."""

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def ratios(self, baseline: Runs) -> list[float]:
        """Return the ratios to the baseline's rates, round by round. A disturbance in a round affects both rates."""
        return [mine / theirs for mine, theirs in zip(self.rates, baseline.rates, strict=True)]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one case. All peers did the same work in turns."""

    case: str
    baseline: str
    runs: Mapping[str, Runs]
    aims: Mapping[str, float] = field(default_factory=dict)
    """Aimed smallest ratio of a peer to the baseline."""
    remarks: tuple[str, ...] = ()
    """Lines below the table with facts that rates do not show."""

    def ratio(self, peer: str) -> tuple[float, float, float] | None:
        """Return median, smallest and largest ratio to the baseline.

        None for the baseline, and for peers without runs.
        """
        if peer == self.baseline or self.baseline not in self.runs:
            return None
        ratios = self.runs[peer].ratios(self.runs[self.baseline])
        return statistics.median(ratios), min(ratios), max(ratios)


def as_table(results: Sequence[Result], title: str) -> Table:
    """Return the results as a table for a terminal."""
    table = Table(title=title, title_justify="left", caption="CPU: the peer's + the server's", caption_justify="left")
    table.add_column("case")
    table.add_column("peer")
    for name in ("events/s", "range", "MB/s", "CPU µs/event", "× baseline", "range", "aim"):
        table.add_column(name, justify="right")
    for result in results:
        for position, (peer, runs) in enumerate(result.runs.items()):
            table.add_row(result.case if position == 0 else "", peer, *_figures(result, peer, runs))
        table.add_section()
    return table


def _figures(result: Result, peer: str, runs: Runs) -> list[str]:
    rates = [_rate(runs.median), f"{_rate(min(runs.rates))}–{_rate(max(runs.rates))}"]
    rates.append(f"{runs.median * runs.event_size / 1e6:.0f}")
    rates.append(" + ".join(f"{statistics.median(cpu) * 1e6:.2f}" for cpu in (runs.cpu, runs.server_cpu) if cpu))
    ratio = result.ratio(peer)
    if ratio is None:
        return [*rates, "baseline" if peer == result.baseline else "–", "", ""]
    median, least, greatest = ratio
    return [*rates, f"{median:.2f}", f"{least:.2f}–{greatest:.2f}", _aim(median, result.aims.get(peer))]


def _rate(value: float) -> str:
    return f"{value / 1e6:.2f} M" if value >= 1e6 else f"{value / 1e3:.1f} k"


def _aim(median: float, aim: float | None) -> str:
    if aim is None:
        return ""
    return f"≥ {aim:.1f} {'yes' if median >= aim else 'NO'}"


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the results with every single rate, for other programs."""
    return [
        {
            "case": result.case,
            "baseline": result.baseline,
            "peers": {
                peer: {
                    "rates": list(runs.rates),
                    "median": runs.median,
                    "ratio": result.ratio(peer),
                    "cpu": list(runs.cpu),
                    "server_cpu": list(runs.server_cpu),
                }
                for peer, runs in result.runs.items()
            },
            "aims": dict(result.aims),
            "remarks": list(result.remarks),
        }
        for result in results
    ]
