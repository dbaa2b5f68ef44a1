"""The ledger of readers that process exactly once: what a run may write, and that nothing is lost or repeated."""

import random
import uuid

import pytest

from connector.errors import GroupStateError, ReaderOfflineError
from connector.groups.ledger import Ledger, LedgerJson, LedgerUpdate, Life, Step, claim, prepare, undecided
from connector.wire import StreamName
from pravega_serde import DeserializationError
from tests.unit.groups._group import segment

LIFE = Life(uuid.UUID(int=7), 0)
TARGET = StreamName("a", "out")
A, B = segment(0), segment(1)
# As the first version wrote them.
UPDATE = (
    b'{"run":"r1/x","group":"00000000-0000-0000-0000-000000000007","generation":2,'
    b'"decided":{"00000000-0000-0000-0000-000000000001":true},"claim":{"a/b/0.#epoch.0":5},"forget":["a/b/1.#epoch.0"],'
    b'"step":{"segments":{"a/b/0.#epoch.0":[5,-1]},"transaction":"00000000-0000-0000-0000-000000000002",'
    b'"target":"a/out"}}'
)
STATE = (
    b'{"version":1,"group":"00000000-0000-0000-0000-000000000007","generation":2,'
    b'"former":["00000000-0000-0000-0000-000000000003"],"segments":{"a/b/0.#epoch.0":[5,"r1/x"],"a/b/1.#epoch.0":[-1,""]},'
    b'"steps":{"r1/x":{"segments":{"a/b/0.#epoch.0":[5,-1]},"transaction":"00000000-0000-0000-0000-000000000002",'
    b'"target":"a/out"}}}'
)


def update(run="r1", life=LIFE, **parts):
    return LedgerUpdate(run=run, life=life, **parts)


def step(number, **ends):
    segments = {{"a": A, "b": B}[name]: at for name, at in ends.items()}
    return Step(segments, None if number is None else uuid.UUID(int=number), None if number is None else TARGET)


def written(ledger, found):
    for each in found:
        ledger = ledger.apply(each)
    return ledger


def claimed(run="r1", ledger=None, **parts):
    return written(ledger or Ledger(life=LIFE), claim(ledger or Ledger(life=LIFE), update(run, claim={A: 5}, **parts)))


@pytest.mark.parametrize(("kind", "sample"), [(LedgerUpdate, UPDATE), (Ledger, STATE)])
def test_what_was_written_is_read_and_written_again(kind, sample):
    json = LedgerJson(kind)
    assert json.serialize(json.deserialize(sample)) == sample


def test_what_is_no_ledger_is_refused():
    with pytest.raises(DeserializationError):
        LedgerJson(LedgerUpdate).deserialize(b'{"run":"r"}')
    with pytest.raises(GroupStateError, match="version 2"):
        LedgerJson(Ledger).deserialize(STATE.replace(b'"version":1', b'"version":2'))


def test_the_ledgers_offset_wins():
    ledger = claimed()
    ledger = written(ledger, prepare(ledger, update(step=step(None, a=(5, 9)))))
    assert claimed("r2", ledger).offsets == {A: 9}


def test_a_step_counts_when_it_is_decided():
    ledger = claimed()
    prepared = written(ledger, prepare(ledger, update(step=step(1, a=(5, 9)))))
    assert prepared.offsets == {A: 5}
    assert claim(prepared, update("r2", claim={A: 0})) == []
    assert claim(prepared, update("r2", claim={B: 0})) != []
    for committed, offset in ((True, 9), (False, 5)):
        taken = claimed("r2", prepared, decided={uuid.UUID(int=1): committed})
        assert (taken.offsets, taken.steps, taken.owners) == ({A: offset}, {}, {A: "r2"})


def test_a_step_is_refused_where_it_is_not_the_runs():
    ledger = claimed()
    for wrong, reason in (
        (update("r2", step=step(1, a=(5, 9))), "another reader has claimed"),
        (update(step=step(1, b=(0, 9))), "another reader has claimed"),
        (update(step=step(1, a=(4, 9))), "is at 5 in the ledger, not at 4"),
        (update(life=replace_generation(1), step=step(1, a=(5, 9))), "reset or made anew"),
    ):
        with pytest.raises(ReaderOfflineError, match=reason):
            prepare(ledger, wrong)


def test_a_step_whose_answer_was_lost_is_not_written_twice():
    ledger = claimed()
    for one in (step(1, a=(5, 9)), step(None, a=(5, 9))):
        asked = update(step=one)
        assert prepare(written(ledger, prepare(ledger, asked)), asked) == []


def replace_generation(number):
    return LIFE._replace(generation=number)


def test_a_new_life_begins_anew_and_an_old_one_is_over():
    ledger = claimed()
    ledger = written(ledger, prepare(ledger, update(step=step(1, a=(5, 9)))))
    reset = replace_generation(1)
    assert [one.transaction for one in undecided(ledger, reset, [B])] == [uuid.UUID(int=1)]
    again = written(ledger, claim(ledger, update("r2", reset, claim={A: 0}, decided={uuid.UUID(int=1): True})))
    assert (again.offsets, again.steps) == ({A: 0}, {})
    with pytest.raises(ReaderOfflineError):
        claim(again, update(claim={A: 5}))
    remade = Life(uuid.UUID(int=8), 0)
    other = written(again, claim(again, update("r3", remade, claim={A: 0})))
    with pytest.raises(ReaderOfflineError):
        claim(other, update("r2", reset, claim={A: 0}))


class World:
    """Runs that take each other for dead at any time, more wildly than a group lets them; one step is one call."""

    LAST = 12

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.ledger = Ledger(life=LIFE)
        self.status, self.events = {}, {}
        self.output = []
        self.runs = {}
        self.happened = set()

    @staticmethod
    def new():
        return {"at": {}, "step": None, "prepared": False, "decided": {}, "claiming": None}

    def decide(self, transaction):
        """Commit a transaction that is prepared, as anybody may; False if its lease has ended."""
        if self.status[transaction] == "open":
            self.status[transaction] = "committed"
            self.output += self.events[transaction]
        return self.status[transaction] == "committed"

    def acquire(self, run, one):
        """A part of a claim: what is prepared is decided, or the segment is claimed, if nothing new is prepared."""
        mine = self.runs[run]
        if mine["claiming"] is None:
            decided = {each.transaction: self.decide(each.transaction) for each in undecided(self.ledger, LIFE, [one])}
            if not all(decided.values()):
                self.happened.add("a prepared step was lost")
            elif decided and run not in self.ledger.steps:
                self.happened.add("a step was finished by another")
            mine["claiming"] = one, decided
            return
        (one, decided), mine["claiming"] = mine["claiming"], None
        found = claim(self.ledger, update(run, claim={one: 0}, decided=decided))
        if not found:
            self.happened.add("a step was prepared before the claim")
            return
        self.ledger = written(self.ledger, found)
        mine["at"][one] = self.ledger.offsets[one]

    def process(self, run):
        """A part of a step: its transaction is begun, or written to, or prepared, or committed."""
        mine = self.runs[run]
        if mine["step"] is None:
            moved = {s: (at, min(at + self.chance.randint(0, 3), self.LAST)) for s, at in mine["at"].items()}
            moved = {s: ends for s, ends in moved.items() if ends[0] != ends[1]}
            if moved:
                transaction = uuid.UUID(int=len(self.status) + 1)
                self.status[transaction] = "open"
                self.events[transaction] = [(s, at) for s, (begin, end) in moved.items() for at in range(begin, end)]
                mine["step"] = Step(moved, transaction, TARGET)
        elif not mine["prepared"]:
            try:
                found = prepare(self.ledger, update(run, decided=mine["decided"], step=mine["step"]))
            except ReaderOfflineError:
                self.happened.add("a step was refused")
                del self.runs[run]
                return
            self.ledger, mine["prepared"] = written(self.ledger, found), True
        elif self.decide(mine["step"].transaction):
            mine["at"] |= {s: end for s, (_, end) in mine["step"].segments.items()}
            mine["decided"] = {mine["step"].transaction: True}
            mine["step"], mine["prepared"] = None, False
        else:
            self.happened.add("a lease ended before the commit")
            del self.runs[run]

    def play(self):
        for number in range(60):
            run = f"r{number}" if len(self.runs) < 2 else self.chance.choice(list(self.runs))
            self.runs.setdefault(run, self.new())
            match self.chance.randint(0, 9):
                case 0 if len(self.runs) > 1:
                    del self.runs[run]
                case 1:
                    if open_ := [t for t, status in self.status.items() if status == "open"]:
                        self.status[self.chance.choice(open_)] = "aborted"
                case 2 | 3 if self.runs[run]["step"] is None:
                    self.acquire(run, self.chance.choice([A, B]))
                case _:
                    self.process(run)
        self.runs = {"last": self.new()}
        for one in (A, B):
            while one not in self.runs["last"]["at"]:
                self.acquire("last", one)
        while self.runs["last"]["step"] or any(at < self.LAST for at in self.runs["last"]["at"].values()):
            self.process("last")


def test_no_event_is_lost_or_repeated_whoever_is_taken_for_dead():
    happened = set()
    for seed in range(1500):
        world = World(seed)
        world.play()
        for one in (A, B):
            assert [at for s, at in world.output if s == one] == list(range(World.LAST)), seed
        happened |= world.happened
    assert happened == {
        "a prepared step was lost",
        "a step was finished by another",
        "a step was refused",
        "a step was prepared before the claim",
        "a lease ended before the commit",
    }
