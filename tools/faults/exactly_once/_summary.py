"""What many runs came to: a row for each point, for the documentation."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.faults.exactly_once._points import POINTS
from tools.faults.exactly_once._verdict import Verdict

__all__ = ["summary", "write_into"]

_HEAD: Final = (
    "| point | what fails | runs | rows written | read back | lost | duplicated | out of order | left open | proof |\n"
    "|---|---|--:|--:|--:|--:|--:|--:|--:|---|"
)


def summary(verdicts: Sequence[Verdict]) -> str:
    """A Markdown table; numbers are sums over the runs of a point."""
    by_point: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        by_point[verdict.point].append(verdict)
    rows = [_row(name, point.about, by_point[name]) for name, point in POINTS.items() if name in by_point]
    total = _cells(verdicts)
    return "\n".join([_HEAD, *rows, f"| **all** | | {total} | {sum(bool(v.fault) for v in verdicts)} faults proven |"])


def _row(name: str, about: str, verdicts: Sequence[Verdict]) -> str:
    return f"| `{name}` | {about} | {_cells(verdicts)} | {_proof(verdicts)} |"


def _cells(verdicts: Sequence[Verdict]) -> str:
    failed = sum(bool(verdict.failures) for verdict in verdicts)
    reported = sum(verdict.reported for verdict in verdicts)
    lost = sum(verdict.lost for verdict in verdicts)
    cells = [f"{len(verdicts)}" + (f", **{failed} failed**" if failed else "")]
    cells += [f"{sum(verdict.rows for verdict in verdicts):,}", f"{sum(v.read_back for v in verdicts):,}"]
    cells += [f"{lost - reported}" + (f" (and {reported:,} reported)" if reported else "")]
    cells += [f"{sum(getattr(verdict, name) for verdict in verdicts)}" for name in _COUNTS]
    return " | ".join(cells)


_COUNTS: Final = ("duplicated", "out_of_order", "left_open")


def _proof(verdicts: Sequence[Verdict]) -> str:
    """How often the faults were told by those that made them, just before; who they were, and when, is no matter."""
    kinds = Counter(_kind(verdict.fault) for verdict in verdicts if verdict.fault)
    return "; ".join(f"{count} × {kind}" for kind, count in kinds.items())


def _kind(fault: str) -> str:
    known = re.fullmatch(r"at (?P<at>[^,]+), action (?P<action>[^,;]+)[^;]*(?P<more>;.*)?", fault)
    if known is None:
        return re.sub(r" \d{3,}", "", fault)
    return f"{known['action']} {known['at']}" + re.sub(r" \d{2,}", "", known["more"] or "")


def write_into(document: Path, name: str, text: str) -> None:
    """Replace what stands between ``<!-- generated NAME: … -->`` and the next ``<!-- end of generated -->``."""
    page = document.read_text()
    start = page.index("\n", page.index(f"<!-- generated {name}:")) + 1
    end = page.index("<!-- end of generated -->", start)
    document.write_text(f"{page[:start]}\n{text}\n\n{page[end:]}")
