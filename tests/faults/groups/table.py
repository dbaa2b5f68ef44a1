"""Scenario of reader groups: readers in Java and Python are killed, paused, removed and added at random."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from pravega_connector.config import PravegaConfig
from tests.faults.groups.audit import audit
from tests.faults.groups.trial import GroupSettings, play
from tests.faults.harness import Scenario, Setup, Table
from tests.faults.record import Column, measured
from tests.faults.verdict import Verdict


class GroupSetup(Setup):
    """A server."""

    def open(self) -> None:
        self.config: PravegaConfig = self.server()

    def play(self, scenario: Scenario, verdict: Verdict) -> None:
        folder = self.new_folder(f"seed-{verdict.seed}")
        scenario.play(self.config, verdict.seed, folder, self.settings)
        audited = audit(folder)
        for name in ("counts", "measures", "faults", "proofs", "failures"):
            setattr(verdict, name, getattr(audited, name))


def _most(what: str) -> Callable[[Sequence[Verdict]], str]:
    return lambda verdicts: f"{max((verdict.measures.get(what, 0) for verdict in verdicts), default=0):g}"


def _texts(what: str) -> Callable[[Sequence[Verdict]], str]:
    return lambda verdicts: "; ".join(str(verdict.measures.get(what, "")) for verdict in verdicts)


def _faults(verdicts: Sequence[Verdict]) -> str:
    faults: Counter[Any] = Counter()
    for verdict in verdicts:
        faults.update(verdict.faults)
    return ", ".join(f"{count} × {name}" for name, count in sorted(faults.items()) if name != "scaled")


TABLE: Final = Table(
    (Scenario("mixed", "readers are killed, paused, removed, closed and added", play),),
    GroupSetup,
    GroupSettings(),
    (
        Column("repeats after removed readers", measured("repeats")),
        Column("most such repeats", measured("allowed")),
        Column("delivered after removal, s", _most("longest_late")),
        Column("segment without a reader, s", _most("longest_unowned")),
        Column("possessions", measured("possessions")),
        Column("checkpoints", measured("checkpoints")),
        Column("Java's", _texts("java_checkpoints")),
        Column("faults", _faults, "---"),
    ),
    "reader-groups.md groups",
    by_seed=True,
)
