"""State of the model of exactly-once batches: queries, their drivers, the ledger, and the servers of the streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit import (
    AppState,
    Ask,
    Commit,
    Content,
    Key,
    Outcome,
    Part,
    Phase,
    Prepared,
    TransactionId,
)

OTHER = "s/u#0"
OTHER_RUN = 0xFF
Placement = tuple[tuple[int, str], ...]
"""Transactions of a batch: the stream and the rows of each."""


def _of_one(*rows: str) -> Placement:
    return tuple((0, each) for each in rows)


#: Placements of a batch by streams and partitions. The first attempt is always E. Over several streams, rows have
#: equal contents: only the stream distinguishes them. M has the rows of E, with one moved to another stream: the row in
#: upper case, which has the content of the lower case. T and L have the rows of the first two streams, and of the last.
PLACEMENTS: dict[tuple[int, int], dict[str, Placement]] = {
    (1, 1): {"E": _of_one("a"), "O": _of_one("o"), "N": (), "Z": ()},
    (1, 2): {
        "E": _of_one("a", "b"),
        "P": _of_one("b", "a"),
        "X": _of_one("ab"),
        "O": _of_one("a", "o"),
        "N": (),
        "Z": (),
    },
    (1, 3): {"E": _of_one("a", "b", "c"), "X": _of_one("abc"), "Z": ()},
    (2, 2): {
        "E": ((0, "a"), (1, "a")),
        "P": ((1, "a"), (0, "a")),
        "M": ((0, "aA"),),
        "O": ((0, "a"), (1, "o")),
        "Z": (),
    },
    (2, 3): {
        "E": ((0, "a"), (1, "a"), (1, "b")),
        "P": ((1, "b"), (1, "a"), (0, "a")),
        "X": ((0, "a"), (1, "ab")),
        "M": ((0, "aA"), (1, "b")),
        "Z": (),
    },
    (3, 3): {
        "E": ((0, "a"), (1, "a"), (2, "a")),
        "T": ((0, "a"), (1, "a")),
        "L": ((2, "a"),),
        "P": ((2, "a"), (0, "a"), (1, "a")),
        "M": ((0, "a"), (1, "aA")),
        "Z": (),
    },
}
#: Outcomes that an operator must inspect. The model ends there.
REPORTED = (Outcome.TORN, Outcome.UNDECIDABLE, Outcome.LOST, Outcome.UNFINISHED)
_STATUSES = {"O": Status.OPEN, "D": Status.COMMITTING, "C": Status.COMMITTED, "A": Status.ABORTED}


@dataclass(frozen=True)
class Config:
    """Size of the world, and the number of faults in it."""

    parts: int
    batches: int
    crash: int = 0
    expiry: int = 0
    unknown: int = 0
    forget: int = 0
    zombie: int = 0
    seal: int = 0
    """Streams that are sealed. A sealed stream may then be deleted and recreated."""
    targets: int = 1
    """With 2, the application also writes its batches to another target of the ledger, and never fails there."""
    streams: int = 1
    """Streams of a query's batches."""
    queries: int = 1
    """With 2, the last stream of the first query is the first stream of the second one."""
    placements: str = "E"
    first: str = "E"
    """First placements of the batches, in turn. The E of replays means them."""
    cut: tuple[int, ...] = ()
    """Streams with a reader that requests cuts between batches."""
    cut_at_revision: bool = True
    """If False, a cut compares only the last batches in its streams."""
    slow: bool = False
    """If True, commits of the last batch become visible later too, and not only the ones that others could overtake."""
    leases: tuple[int, ...] = ()
    """Time steps until a lease expires, by stream. Without them, leases expire only as ``expiry`` says. A live driver
    takes a step before time passes again."""
    commit: type[Commit] = Commit
    invariants: bool = True
    """If False, only what users see is checked: duplicates, loss, disorder."""

    def key(self, query: int) -> Key:
        """Return the key of a query's state in the ledger."""
        return Key(f"app-{query}", "*" if self.streams > 1 else "s/t0#0")

    def stream(self, query: int, number: int) -> int:
        """Return the number of the stream that is a query's stream of this number."""
        return query * (self.streams - 1) + number

    @property
    def all_streams(self) -> int:
        """Number of the streams of all queries."""
        return self.stream(self.queries - 1, self.streams - 1) + 1

    def placed(self, placement: str) -> Placement:
        """Return the transactions of a placement."""
        return PLACEMENTS[self.streams, self.parts][placement]


class Budget(NamedTuple):
    """Faults that may still happen."""

    crash: int
    expiry: int
    unknown: int
    forget: int
    zombie: int
    seal: int


class Driver(NamedTuple):
    """A process that runs the batches of a query one after the other."""

    query: int
    run: int
    batch: int
    stage: str  # W: tasks must write, M: commit runs, A: abort() runs
    machine: Commit | None = None
    answers: tuple[tuple[TransactionId, Status], ...] = ()
    late: bool = False  # it has taken no step since time passed


class Attempt(NamedTuple):
    """Rows that one run wrote for one batch.

    The registers are O(pen), D(ecided: being committed), C(ommitted and visible), A(borted); lower case if forgotten.
    """

    query: int
    run: int
    batch: int
    placement: str
    registers: str
    creations: tuple[int, ...]


class Call(NamedTuple):
    """A call in flight to the servers."""

    ask: Ask
    transaction: TransactionId | None = None
    revision: int = -1
    entry: Any = None


class Server(NamedTuple):
    """A stream: how often it was recreated, and whether it is sealed."""

    creation: int = 0
    sealed: bool = False


class Cut(NamedTuple):
    """Progress of a reader that requests cuts: it checks the ledger, reads the tails, and checks the ledger again."""

    revision: int
    apps: tuple[AppState, ...]
    before: Any = None
    """Result of the first check."""
    tails: tuple[frozenset[TransactionId], ...] = ()
    """Visible transactions of each stream."""
    returned: bool = False


class State(NamedTuple):
    """State of the world."""

    spark: tuple[int, ...]  # by query: the first batch that Spark's log does not have
    length: int  # entries in the ledger
    apps: tuple[AppState, ...]  # by query
    streams: tuple[Server, ...]
    named: frozenset[TransactionId]  # transactions that any entry names
    attempts: tuple[Attempt, ...]
    drivers: tuple[Driver | None, ...]  # two slots for each query
    flying: tuple[Call, ...]
    budget: Budget
    runs: int
    told: frozenset[tuple[int, int, tuple[str, ...]]] = (
        frozenset()
    )  # query, batch and rows that were reported to a run as committed
    deleted: frozenset[tuple[int, int, int]] = frozenset()  # query, batch and stream: rows that are not missed
    other: int = 0  # entries of the other target: PREPARED and COMMITTED of each batch
    ages: tuple[tuple[TransactionId, int], ...] = ()  # time steps since the last ping, if there were any
    reported: Outcome | None = None
    cut: Cut | None = None


def first_state(config: Config) -> State:
    """Return the state in which everything begins."""
    budget = Budget(config.crash, config.expiry, config.unknown, config.forget, config.zombie, config.seal)
    keys = [config.key(query) for query in range(config.queries)]
    apps = tuple(AppState(key.app, target=key.target) for key in keys)
    return State(
        (0,) * config.queries,
        0,
        apps,
        (Server(),) * config.all_streams,
        frozenset(),
        (),
        (None, None) * config.queries,
        (),
        budget,
        0,
    )


# ---- transactions ----------------------------------------------------------------------------------------------------


@cache
def transaction(run: int, batch: int, part: int, stream: int = 0, creation: int = 0) -> TransactionId:
    """Return the transaction of a part that a run wrote."""
    return TransactionId(f"s/t{stream}#{creation}", UUID(int=run << 16 | batch << 8 | part))


def address(id_: TransactionId) -> tuple[int, int, int]:
    """Return run, batch and part of a transaction."""
    return id_.id.int >> 16, id_.id.int >> 8 & 0xFF, id_.id.int & 0xFF


@cache
def stream_of(id_: TransactionId) -> tuple[int, int]:
    """Return number and creation of a transaction's stream."""
    number, creation = id_.stream.removeprefix("s/t").split("#")
    return int(number), int(creation)


def transactions(config: Config, attempt: Attempt) -> tuple[TransactionId, ...]:
    """Return the transactions of an attempt."""
    return _transactions(config, attempt._replace(registers=""))


@cache
def _transactions(config: Config, attempt: Attempt) -> tuple[TransactionId, ...]:
    ids = []
    for part, (number, _) in enumerate(config.placed(attempt.placement)):
        stream = config.stream(attempt.query, number)
        ids.append(transaction(attempt.run, attempt.batch, part, stream, attempt.creations[stream]))
    return tuple(ids)


def register(state: State, id_: TransactionId) -> str:
    """Return the letter of a transaction."""
    run, batch, part = address(id_)
    for attempt in state.attempts:
        if attempt.run == run and attempt.batch == batch:
            return attempt.registers[part]
    if run == OTHER_RUN:  # the other target's, which no machine asks about
        return "C"
    raise KeyError(id_)


def is_deleted(state: State, stream: tuple[int, int]) -> bool:
    """Return True if a stream of this number and creation no longer exists."""
    number, creation = stream
    return state.streams[number].creation != creation


def status(state: State, id_: TransactionId) -> Status:
    """Return the status that the servers report."""
    return _STATUSES.get(register(state, id_), Status.UNKNOWN)


def put(state: State, id_: TransactionId, letter: str) -> State:
    """Return the state with another letter of a transaction."""
    run, batch, part = address(id_)
    attempts = tuple(
        a._replace(registers=a.registers[:part] + letter + a.registers[part + 1 :])
        if (a.run, a.batch) == (run, batch)
        else a
        for a in state.attempts
    )
    return state._replace(attempts=attempts)


@cache
def content(rows: str) -> Content:
    """Return a content that is equal for equal rows, in any order."""
    rows = rows.lower()
    return Content(len(rows), len(rows), sum(1 << 8 * (ord(row) - ord("a")) for row in rows) % 2**64)


def own_parts(config: Config, attempt: Attempt) -> tuple[Part, ...]:
    """Return the parts of an attempt."""
    placed = config.placed(attempt.placement)
    ids = transactions(config, attempt)
    return tuple(Part(id_, content(rows)) for id_, (_, rows) in zip(ids, placed, strict=True))


# ---- drivers ---------------------------------------------------------------------------------------------------------


def with_driver(state: State, slot: int, driver: Driver | None) -> State:
    """Return the state with another driver in a slot."""
    return state._replace(drivers=(*state.drivers[:slot], driver, *state.drivers[slot + 1 :]))


def with_app(state: State, query: int, app: AppState) -> State:
    """Return the state with another ledger state of a query."""
    return state._replace(apps=(*state.apps[:query], app, *state.apps[query + 1 :]))


def run_name(run: int) -> str:
    """Return the name of a run in entries."""
    return f"run-{run}"


def aborting(driver: Driver) -> Driver:
    """Return the driver after Spark called ``abort``, because ``commit`` raised."""
    assert driver.machine is not None
    machine = replace(driver.machine, phase=Phase.ABANDON_READ, outcome=None, recorded=None, proposed=None, statuses=())
    return driver._replace(stage="A", machine=machine, answers=())


def relevant(state: State) -> list[TransactionId]:
    """Return the transactions that any process can still ask about."""
    ids: set[TransactionId] = set()
    for app in state.apps:
        ids |= {part.transaction for part in app.open.parts} if app.open else set()
        ids |= set(app.last_set)
    for driver in state.drivers:
        if driver is not None and driver.machine is not None:
            machine = driver.machine
            ids |= machine.job.ids() | set(machine.settling)
            for entry in (machine.recorded, machine.proposed):
                ids |= {part.transaction for part in entry.parts} if entry else set()
    for call in state.flying:
        ids |= {call.transaction} if call.transaction else set()
        ids |= {part.transaction for part in call.entry.parts} if isinstance(call.entry, Prepared) else set()
    return sorted(ids, key=lambda id_: id_.id.int)


# ---- rows ------------------------------------------------------------------------------------------------------------


def rows_of(config: Config, state: State, query: int, batch: int, letters: str) -> Counter[str]:
    """Return the rows of a batch in transactions of these letters and existing streams, with their streams."""
    rows: Counter[str] = Counter()
    for attempt in state.attempts:
        if (attempt.query, attempt.batch) != (query, batch):
            continue
        placed = config.placed(attempt.placement)
        for letter, (number, some) in zip(attempt.registers, placed, strict=True):
            stream = config.stream(query, number)
            if letter in letters and not is_deleted(state, (stream, attempt.creations[stream])):
                rows.update(f"{stream}{row}" for row in some)
    return rows


def written(config: Config, attempt: Attempt) -> tuple[str, ...]:
    """Return the rows of an attempt with their streams."""
    return _written(config, attempt.query, attempt.placement)


@cache
def _written(config: Config, query: int, placement: str) -> tuple[str, ...]:
    placed = config.placed(placement)
    return tuple(sorted(f"{config.stream(query, number)}{row}" for number, rows in placed for row in rows))


def missed(state: State, query: int, batch: int, rows: Iterable[str]) -> tuple[str, ...]:
    """Return the rows of a batch without the ones that were deleted with their stream."""
    if not state.deleted:
        return tuple(sorted(rows))
    return tuple(sorted(row for row in rows if (query, batch, int(row[0])) not in state.deleted))
