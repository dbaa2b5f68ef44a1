"""Verdicts of many runs: kept in a file, and summed up in a table."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults.verdict import Verdict


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    head: str
    of: Callable[[Sequence[Verdict]], str]
    align: str = "--:"


class Record:
    """Verdicts, in a file that is always complete if one is given. Threads may share it."""

    def __init__(self, file: Path | None = None) -> None:
        self._file, self._lock = file, threading.Lock()
        known = json.loads(file.read_text()) if file is not None and file.exists() else []
        self.verdicts = [Verdict(**verdict) for verdict in known]

    def add(self, verdict: Verdict) -> None:
        """Keep a verdict, and print it."""
        with self._lock:
            self.verdicts.append(verdict)
            if self._file is not None:
                new = self._file.with_suffix(".new")
                new.write_text("[\n" + ",\n".join(json.dumps(vars(one)) for one in self.verdicts) + "\n]\n")
                new.replace(self._file)
            _show(verdict)

    def missing(self, scenarios: Iterable[str], seed: int, runs: int) -> list[tuple[str, int]]:
        """Return scenario and seed of each run that has not passed yet; each scenario once before any again."""
        names = list(scenarios)
        passed = {(verdict.scenario, verdict.seed) for verdict in self.verdicts if not verdict.failures}
        return [(name, n) for n in range(seed, seed + runs) for name in names if (name, n) not in passed]

    def conclude(self, scenarios: Iterable[str]) -> bool:
        """Print the failures; return True if there are none."""
        names = set(scenarios)
        verdicts = [verdict for verdict in self.verdicts if verdict.scenario in names]
        failed = [verdict for verdict in verdicts if verdict.failures]
        for verdict in failed:
            print(f"FAILED {verdict.scenario} {verdict.seed}: {'; '.join(verdict.failures)}")
        print(f"{len(verdicts)} runs, {len(failed)} failed")
        return not failed

    def table(self, abouts: Mapping[str, str], columns: Sequence[Column], *, by_seed: bool = False) -> str:
        """Return a Markdown table with a row for each scenario, or for each seed."""
        rows: dict[Any, list[Verdict]] = {}
        for name in abouts:
            for verdict in self.verdicts:
                if verdict.scenario == name:
                    rows.setdefault((name, verdict.seed if by_seed else None), []).append(verdict)
        label = "| seed |" if by_seed else "| scenario | fault |"
        lines = [label + "".join(f" {column.head} |" for column in (*_COUNTS, *columns))]
        lines.append(f"|{'--:|' if by_seed else '---|---|'}" + "".join(f"{c.align}|" for c in (*_COUNTS, *columns)))
        for (name, seed), verdicts in rows.items():
            start = f"| {seed} |" if by_seed else f"| `{name}` | {abouts[name]} |"
            lines.append(start + "".join(f" {column.of(verdicts)} |" for column in (*_COUNTS, *columns)))
        return "\n".join(lines)


def _show(v: Verdict) -> None:
    wrong = f"lost {v.sum('lost')}, repeated {v.sum('duplicated')}, out of order {v.sum('out_of_order')}"
    more = json.dumps(v.measures | v.faults) if v.measures or v.faults else ""
    print(
        f"{v.scenario:24} seed {v.seed}: {v.seconds:6.1f} s, {v.sum('events')} events, {wrong} {more} "
        f"{'; '.join(v.proofs)[:300]}",
        flush=True,
    )
    for failure in v.failures:
        print(f"    FAILED: {failure}", flush=True)


def total(what: str) -> Callable[[Sequence[Verdict]], str]:
    """Return the cell with the sum of a count over runs and readers."""
    return lambda verdicts: f"{sum(verdict.sum(what) for verdict in verdicts):,}"


def measured(what: str) -> Callable[[Sequence[Verdict]], str]:
    """Return the cell with the sum of a measure over runs."""
    return lambda verdicts: f"{sum(verdict.measures.get(what, 0) for verdict in verdicts):,}"


def _runs(verdicts: Sequence[Verdict]) -> str:
    failed = sum(bool(verdict.failures) for verdict in verdicts)
    return f"{len(verdicts)}" + (f", **{failed} failed**" if failed else "")


def _proofs(verdicts: Sequence[Verdict]) -> str:
    kinds = Counter("; ".join(verdict.proofs) for verdict in verdicts if verdict.proofs)
    shown = [f"{count} × {kind}" for kind, count in kinds.most_common(3)]
    return "; ".join(shown) + (f"; {len(kinds) - 3} other proofs" if len(kinds) > 3 else "")


_COUNTS: Final = (
    Column("runs", _runs),
    Column("events read", total("events")),
    Column("lost", total("lost")),
    Column("repeated", total("duplicated")),
    Column("out of order", total("out_of_order")),
)
PROOFS: Final = Column("proof", _proofs, "---")


def write_into(document: Path, name: str, text: str) -> None:
    """Replace the text between ``<!-- generated NAME: … -->`` and the next ``<!-- end of generated -->``."""
    page = document.read_text()
    start = page.index("\n", page.index(f"<!-- generated {name}:")) + 1
    end = page.index("<!-- end of generated -->", start)
    document.write_text(f"{page[:start]}\n{text}\n\n{page[end:]}")
