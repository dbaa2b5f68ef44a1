"""Steps of an ingestion, as left by a run that has ended."""

from __future__ import annotations

import uuid

from pravega_connector.exactly_once.steps import ALL, Named, Outcome, Step, StepLog, Turn, Update
from pravega_connector.exactly_once.steps.takeover import Owner, _host
from pravega_connector.operations.ingest import FileSource

#: A run on this machine with a process id that Linux never uses, and a run on an unknown machine.
ENDED = Owner("gone", _host(), 2**22 + 1, 0)
ELSEWHERE = Owner("elsewhere", "another machine", 1, 0)


def record(
    steps: StepLog,
    source: FileSource,
    transaction: uuid.UUID,
    owner: Owner = ENDED,
    *,
    lease: float = 30.0,
    previous: Step | None = None,
) -> Step:
    """Record a step with the whole first source. ``previous`` is the committed step before it."""
    id_ = source.ids()[0]
    moves = {id_: (None, [source.mark(id_), -1, True])}
    after = () if previous is None else (Named(previous.stream, previous.transaction),)
    step = Step(transaction, steps.life.id, moves, after, note=owner.to_json() | {"lease": lease})
    decided = {} if previous is None else {previous.transaction: True}
    steps.read()
    update = Update(run=owner.run, life=steps.life, decided=decided, claim={ALL: None}, step=step)
    assert steps.carry_out(Turn(update, deciding=frozenset())).outcome is Outcome.WRITTEN
    return step
