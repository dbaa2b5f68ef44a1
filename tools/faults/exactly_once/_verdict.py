"""What came out of a run: counted by two readers, one of which is not ours."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from typing import Any

from pravega_connector.client import StreamName, TransactionStatus
from pravega_connector.exactly_once.batches import Ledger, ledger_name
from tools.faults.exactly_once._scene import KEYS, Scene, await_that

__all__ = ["Verdict", "judge"]


@dataclass
class Verdict:
    """One run of one point."""

    point: str
    rows: int = 0
    read_back: int = 0
    lost: int = 0
    duplicated: int = 0
    reported: int = 0
    """Rows that an error named as lost; 0 but for a torn batch."""
    out_of_order: int = 0
    """Events that come after a later one of their routing key."""
    follower: int = 0
    follower_duplicated: int = 0
    of_aborted: int = 0
    """Events of transactions that were never committed, in either reader's hands."""
    transactions: int = 0
    left_open: int = -1
    """Transactions that are OPEN when every lease, and something more, has passed; -1: not looked at yet."""
    replayed: list[int] = field(default_factory=list)
    fault: str = ""
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Note what is not as it should be."""
        wrong = {
            "rows lost": self.lost - self.reported,
            "rows duplicated": self.duplicated,
            "events out of order": self.out_of_order,
            "events seen twice by the follower": self.follower_duplicated,
            "events of aborted transactions seen": self.of_aborted,
            "events that only one of the readers has": self.follower - self.read_back,
        }
        self.failures += [f"{count} {what}" for what, count in wrong.items() if count]
        if not self.fault:
            self.failures.append("the fault did not fire")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(verdict: Verdict, scene: Scene, java: Any) -> None:
    """Read back what the target holds, and compare."""
    await_that("commits are through", lambda: TransactionStatus.COMMITTING not in scene.statuses().values())
    found = [bytes(event.payload) for event in java.read(scene.target)]
    followed = scene.follower.seen(len(found))
    numbers = Counter(_number(event) for event in found)
    verdict.rows, verdict.read_back = len(scene.expected), len(found)
    verdict.lost = len(scene.expected - numbers.keys())
    verdict.duplicated = sum(count - 1 for count in numbers.values())
    verdict.follower = len(followed)
    verdict.follower_duplicated = len(followed) - len({_number(event) for event in followed})
    verdict.out_of_order = _out_of_order(followed, len(scene.source.numbers))
    verdict.reported, verdict.replayed = scene.reported, scene.replayed()
    statuses = scene.statuses()
    verdict.transactions = len(statuses)
    verdict.of_aborted = sum(not statuses[_transaction(event)].is_committed for event in found + followed)
    verdict.failures += _ledger_failures(scene, scene.target)


def _number(event: bytes) -> int:
    return int(event.partition(b"|")[0])


def _transaction(event: bytes) -> uuid.UUID:
    return uuid.UUID(event.partition(b"|")[2].decode())


def _out_of_order(events: list[bytes], rows: int) -> int:
    """``rows``: of one source; queries that write to one stream have no order among each other."""
    last: dict[tuple[int, int], int] = defaultdict(lambda: -1)
    wrong = 0
    for number in map(_number, events):
        key = number // rows, number % KEYS
        wrong += number < last[key]
        last[key] = max(number, last[key])
    return wrong


def _ledger_failures(scene: Scene, target: StreamName) -> list[str]:
    with Ledger(scene.client, ledger_name(target)) as ledger:
        _, state = ledger.read()
    return [f"{app.app} has an open batch {app.open.batch}" for app in state.values() if app.open is not None]
