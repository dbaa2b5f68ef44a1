"""File with the results of the Spark benchmark, row by row, and their table and plot."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final
from xml.sax.saxutils import escape

from benchmarks._spark_rows import FAR, JVM, MARGINAL_AIM, NEAR, NOTHING, PLAIN, PLAIN_AIM, ROWS, Row
from benchmarks._stats import Result, Runs

__all__ = ["Measured", "Results", "document", "plot"]

_RESULTS: Final = Path(__file__).parent / "results"
_PAGE: Final = _RESULTS / "spark-performance.md"
_PLOT: Final = _RESULTS / "spark-benchmark.svg"
_GUIDE: Final = _RESULTS.parents[1] / "docs/operate/tuning.md"
_GUIDE_PLOT: Final = _RESULTS / "spark-throughput.svg"
#: Rows of the guide.
_OF_GUIDE: Final = (
    *("read 100 B, only event", "read 100 B, five columns", "read 100 B, count"),
    *("read 1 KiB, only event", "read 1 KiB, five columns"),
    *("AvailableNow 3,000, only event", FAR),
    *("micro-batch, 1 segment, at least once", "micro-batch, 1 segment, exactly once"),
    *("batch write, at least once", "batch write, exactly once"),
    *("stream write, at least once", "stream write, exactly once"),
    *("decode flat Avro", "decode flat JSON"),
)
_GUIDE_HEAD: Final = "| Spark | without `configure` | with it, in Python | with it, in the JVM |"
_MARGINAL: Final = "AvailableNow, 16 M less 4 M"
_BEGIN: Final = "<!-- generated spark: by ./run bench spark --document -->\n"
_IN_JVM: Final = ", in the JVM"
_PLAIN: Final = ", plain"
_END: Final = "<!-- end of generated -->"
_COLUMNS: Final = (
    *("row", "compared with", "ours", "ratio (range)", "aim"),
    *("does nothing", "and a server", "CPU: compared with, ours, does nothing"),
)
_BOUND_SAYS: Final = (
    "“Does nothing” is a Python source without a server, which returns prepared batches with as many rows of the "
    "same columns, or a sink that drops its rows. Its ratio is an upper bound for any Python source or sink. “And "
    "a server” is the same bound in CPU time, with the CPU time of our server added: both cores are then always "
    "busy. An aim above one of the two bounds is out of reach. CPU time is per event, or per micro-batch, and "
    "includes the server's."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Result of a row, and the conditions under which it was measured."""

    events: int
    rounds: int
    when: str
    took: float
    """Seconds, including the writing of the stream and the warm-ups."""
    load: float
    """Load of the last minute at the start."""
    cores: int
    machine: str
    versions: Mapping[str, str]
    checked: Mapping[str, Any]
    """Rows and the sum of their hashes, which were equal on both sides."""
    result: Result

    @classmethod
    def now(
        cls,
        row: Row,
        result: Result,
        rounds: int,
        versions: Mapping[str, str],
        checked: Mapping[str, Any],
        took: float,
        load: float,
    ) -> Measured:
        """Return a result that was measured now."""
        return cls(
            events=row.events,
            rounds=rounds,
            when=time.strftime("%Y-%m-%d %H:%M", time.gmtime()),
            took=round(took, 1),
            load=round(load, 1),
            cores=os.cpu_count() or 0,
            machine=platform.machine(),
            versions=dict(versions),
            checked=dict(checked),
            result=result,
        )

    @classmethod
    def of_json(cls, found: dict[str, Any]) -> Measured:
        """Parse the output of :meth:`as_json`."""
        result = dict(found["result"])
        runs = {name: Runs(**each) for name, each in result.pop("runs").items()}
        remarks = tuple(result.pop("remarks"))
        return cls(**{**found, "result": Result(**result, runs=runs, remarks=remarks)})

    def as_json(self) -> dict[str, Any]:
        """Return the result with every single rate."""
        return asdict(self)


class Results:
    """JSON file that is rewritten after each row.

    After an interrupted run, the next run continues after the last row.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        found = json.loads(file.read_text()) if file.exists() else {}
        self._rows = {name: Measured.of_json(each) for name, each in found.items()}

    def get(self, row: Row, rounds: int, peers: Set[str]) -> Measured | None:
        """Return the row's result if it was measured with these events, as many rounds and all of these sides."""
        known = self._rows.get(row.name)
        if known is None or known.events != row.events or known.rounds < rounds:
            return None
        return known if row.is_own or peers <= known.result.runs.keys() else None

    def any_of(self, row: Row) -> Measured | None:
        """Return the row's result, measured under any conditions."""
        return self._rows.get(row.name)

    def keep(self, row: Row, measured: Measured) -> None:
        """Save a row's result in the file, in place of the earlier one."""
        self._rows[row.name] = measured
        text = json.dumps({name: each.as_json() for name, each in self._rows.items()}, indent=1)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_name(self._file.name + ".part")
        part.write_text(text + "\n")
        os.replace(part, self._file)


@dataclass(frozen=True, slots=True)
class _Line:
    """Content of the table and the plot for a row."""

    name: str
    baseline: str
    ours: str
    ratio: tuple[float, float, float]
    aim: float | None
    bound: float | None = None
    """Ratio of the source or sink that does nothing, if it was measured."""
    served: float | None = None
    """Ratio of its CPU time with our server's, if the rate is in events."""
    cpu: tuple[str, ...] = ()
    """CPU time of each side, if it was measured."""

    @property
    def is_out_of_reach(self) -> bool:
        """True if the aim is above the ratio of the side that does nothing."""
        bounds = [bound for bound in (self.bound, self.served) if bound is not None]
        return self.aim is not None and bool(bounds) and min(bounds) < self.aim


def document(results: Results) -> None:
    """Write the table into the page of results, the plot next to it, and both shorter for the guide.

    Raises ValueError if there are no results.
    """
    lines = list(_lines(results))
    if not lines:
        raise ValueError("nothing is measured yet")
    _write(_PAGE, _table(results, lines))
    _PLOT.write_text(plot(lines))
    shown = [line for line in lines if line.name.removesuffix(_IN_JVM).removesuffix(_PLAIN) in _OF_GUIDE]
    _write(_GUIDE, _guide(shown))
    _GUIDE_PLOT.write_text(plot([replace(line, aim=None, bound=None) for line in shown]))


def _write(page: Path, generated: str) -> None:
    text = page.read_text()
    start = text.index(_BEGIN) + len(_BEGIN)
    page.write_text(f"{text[:start]}\n{generated}\n\n{text[text.index(_END, start) :]}")


def _guide(lines: Sequence[_Line]) -> str:
    """Return the short table of the guide: the ratio of a plain session, and of each reader of a configured one."""
    ratios = {line.name: f"{line.ratio[0]:.2f}" for line in lines}
    rows = [
        f"| {name} | {ratios.get(name + _PLAIN, '')} | {ratios[name]} | {ratios.get(name + _IN_JVM, '')} |"
        for name in _OF_GUIDE
        if name in ratios
    ]
    head = [f"![Ratios to the Scala connector](../../benchmarks/results/{_GUIDE_PLOT.name})", ""]
    return "\n".join((*head, _GUIDE_HEAD, "|---|--:|--:|--:|", *rows))


def _lines(results: Results) -> Iterator[_Line]:
    for row in ROWS:
        measured = results.any_of(row)
        if measured is None:
            continue
        result = measured.result
        bound = result.ratio(NOTHING) if NOTHING in result.runs else None
        cpu = {name: _cpu(runs, row.in_batches) for name, runs in result.runs.items()}
        for peer in result.runs:
            if peer == NOTHING or (ratio := result.ratio(peer)) is None:
                continue
            shown = [_shown(result.runs[name].median, row.in_batches) for name in (result.baseline, peer)]
            if peer == JVM:
                # A source in Python that does nothing does not limit a reader inside the JVM.
                times = cpu[result.baseline], cpu[peer]
                yield _Line(row.name + _IN_JVM, *shown, ratio, row.jvm_aim, cpu=times)
            elif peer == PLAIN:
                yield _Line(row.name + _PLAIN, *shown, ratio, PLAIN_AIM, cpu=(cpu[result.baseline], cpu[peer]))
            else:
                served = None if row.in_batches else _served(result, peer)
                times = tuple(cpu[name] for name in (result.baseline, peer, NOTHING) if name in cpu)
                yield _Line(row.name, *shown, ratio, row.aim, None if bound is None else bound[0], served, times)
        if row.name == FAR and (line := _marginal(results)) is not None:
            yield line


def _marginal(results: Results) -> _Line | None:
    """Return the cost of an event without the cost of a query, which is the difference of two sizes.

    None if the noise is larger than the difference.
    """
    pair = {row.name: results.any_of(row) for row in ROWS if row.name in (NEAR, FAR)}
    near, far = pair[NEAR], pair[FAR]
    if near is None or far is None or near.events >= far.events:
        return None
    turns = range(_rounds(near, far))
    times = {
        name: [_seconds(far, name, turn) - _seconds(near, name, turn) for turn in turns]
        for name in far.result.runs
        if name in near.result.runs
    }
    sides = [name for name in times if name != NOTHING]
    if len(sides) < 2 or min(min(times[name]) for name in sides) <= 0:
        return None

    def ratios(name: str) -> list[float]:
        return [theirs / mine for theirs, mine in zip(times[sides[0]], times[name], strict=True)]

    rates = [(far.events - near.events) / statistics.median(times[name]) for name in sides]
    ours = ratios(sides[1])
    ratio = statistics.median(ours), min(ours), max(ours)
    bound = statistics.median(ratios(NOTHING)) if min(times.get(NOTHING, [0])) > 0 else None
    return _Line(_MARGINAL, _shown(rates[0], False), _shown(rates[1], False), ratio, MARGINAL_AIM, bound)


def _rounds(*measured: Measured) -> int:
    return min(len(runs.rates) for each in measured for runs in each.result.runs.values())


def _seconds(measured: Measured, name: str, turn: int) -> float:
    return measured.events / measured.result.runs[name].rates[turn]


def _shown(rate: float, in_batches: bool) -> str:
    if in_batches:
        return f"{1000 / rate:.0f} ms"
    return f"{rate / 1e6:.2f} M/s" if rate >= 1e6 else f"{rate / 1e3:.0f} k/s"


def _served(result: Result, ours: str) -> float | None:
    """Return the CPU time ratio of the side that does nothing, with the server's time for ours.

    None if it is not known.
    """
    theirs, least, server = result.runs[result.baseline], result.runs.get(NOTHING), result.runs[ours].server_cpu
    if least is None or not (theirs.cpu and least.cpu and server):
        return None
    return _cpu_seconds(theirs) / (_cpu_seconds(least) + statistics.median(server))


def _cpu_seconds(runs: Runs) -> float:
    """Return the median CPU time of the side and the server, for an event or a batch."""
    return statistics.median(runs.cpu) + (statistics.median(runs.server_cpu) if runs.server_cpu else 0)


def _cpu(runs: Runs, in_batches: bool) -> str:
    """Return the CPU time for the table, or an empty text if it is not known."""
    if not runs.cpu:
        return ""
    seconds = _cpu_seconds(runs)
    return f"{seconds * 1e3:.0f} ms" if in_batches else f"{seconds * 1e6:.2f} µs"


def _table(results: Results, lines: Sequence[_Line]) -> str:
    kept = [each for row in ROWS if (each := results.any_of(row)) is not None]
    versions = sorted({f"{name}: {version}" for each in kept for name, version in each.versions.items()})
    loads = [each.load for each in kept]
    whens = sorted(each.when for each in kept)
    rounds = min(each.rounds for each in kept)
    about = [f"Medians of at least {rounds} rounds", f"{kept[0].cores} cores", f"load {min(loads)} to {max(loads)}"]
    head = [
        f"{', '.join(about)}. Versions: {', '.join(versions)}. Measured from {whens[0]} to {whens[-1]} UTC.",
        "",
        f"![Ratios to the Scala connector]({_PLOT.name})",
        "",
        _BOUND_SAYS,
        "",
        f"| {' | '.join(_COLUMNS)} |",
        "|---|--:|--:|---|---|--:|--:|---|",
    ]
    rows = []
    for line in lines:
        median, least, most = line.ratio
        ratio = f"{median:.2f} ({least:.2f}–{most:.2f})"
        bounds = ["" if bound is None else f"{bound:.2f}" for bound in (line.bound, line.served)]
        figures = (line.name, line.baseline, line.ours, ratio, _aim(line), *bounds, ", ".join(filter(None, line.cpu)))
        rows.append(f"| {' | '.join(figures)} |")
    if {NEAR, FAR} <= {line.name for line in lines} and _MARGINAL not in {line.name for line in lines}:
        rows += ["", f"{_MARGINAL}: in some round the larger query took no longer, so there is no ratio to tell."]
    return "\n".join((*head, *rows))


def _aim(line: _Line) -> str:
    if line.aim is None:
        return ""
    if line.ratio[0] >= line.aim:
        return f"≥ {line.aim:g}"
    return f"≥ {line.aim:g}, missed{', out of reach' * line.is_out_of_reach}"


# ---- the plot --------------------------------------------------------------------------------------------------------

_LEFT: Final = 330  # space for names
_WIDTH: Final = 760
_STEP: Final = 20
_TOP: Final = 44
_FONT: Final = 'font-family="sans-serif" font-size="12"'
_LEGEND: Final = "times as fast: dot median, line range, bar aim, diamond does nothing"
_DARK: Final = {"#fff": "#15181e", "#333": "#e6e9ee", "#ddd": "#2b313b", "#555": "#a3adba", "#3d6ba8": "#6f9fe0"}
_DARK_STYLE: Final = "".join(f'[fill="{a}"]{{fill:{b}}}[stroke="{a}"]{{stroke:{b}}}' for a, b in _DARK.items())
_TICKS: Final = (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)


def plot(lines: Sequence[_Line]) -> str:
    """Return an SVG of the ratios, with a logarithmic scale.

    The median ratio of each row is a dot in its range. Its aim is a bar, and the side that does nothing is a diamond.
    """
    shown = [value for line in lines for value in (*line.ratio, line.aim or 1, line.bound or 1)]
    ticks = [tick for tick in _TICKS if min(shown) / 1.5 <= tick <= max(shown) * 1.5] or [1]
    low, high = math.log(min(*shown, ticks[0]) / 1.05), math.log(max(*shown, ticks[-1]) * 1.05)
    bottom = _TOP + _STEP * len(lines)

    def x(value: float) -> str:
        return f"{_LEFT + (math.log(value) - low) / (high - low) * (_WIDTH - _LEFT - 20):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 12}" role="img" {_FONT}>',
        "<title>Ratios to the Scala connector, more than 1 is faster</title>",
        f"<style>@media (prefers-color-scheme: dark){{{_DARK_STYLE}}}</style>",
        f'<rect width="{_WIDTH}" height="{bottom + 12}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="16" fill="#333">{_LEGEND}</text>',
    ]
    for tick in ticks:
        colour, width = ("#333", 1.5) if tick == 1 else ("#ddd", 1)
        parts.append(
            f'<path d="M{x(tick)} {_TOP - 8}V{bottom}" stroke="{colour}" stroke-width="{width}"/>'
            f'<text x="{x(tick)}" y="{_TOP - 13}" text-anchor="middle" fill="#333">{tick:g}</text>'
        )
    for place, line in enumerate(lines):
        y = _TOP + _STEP * place + _STEP // 2
        median, least, most = line.ratio
        colour = "#1b7f4b" if median >= (line.aim or 1) else "#b3541e"
        parts.append(f'<text x="{_LEFT - 10}" y="{y + 4}" text-anchor="end" fill="#333">{escape(line.name)}</text>')
        if line.aim is not None:
            parts.append(f'<path d="M{x(line.aim)} {y - 7}v14" stroke="#555" stroke-width="2"/>')
        if line.bound is not None:
            at = f"M{x(line.bound)} {y - 5}l5 5l-5 5l-5 -5z"
            parts.append(f'<path class="bound" d="{at}" fill="none" stroke="#3d6ba8" stroke-width="1.5"/>')
        parts.append(f'<path d="M{x(least)} {y}H{x(most)}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(median)}" cy="{y}" r="4" fill="{colour}"/>')
    return "\n".join((*parts, "</svg>", ""))
