"""A world in which everything that can go wrong with a batch goes wrong: the model of the exactly-once sink.

Drivers run the implementation's own machine (``pravega_connector.exactly_once.batch_commit.Commit``); the model is the
rest of the world: Spark, the transactions, the ledger's compare-and-set, crashes, calls that land late or never, leases
that end, statuses that are forgotten, a second driver. One step is one call. A batch is replayed until Spark's log has
it; a replay may place the rows as before (E), in exchanged partitions (P), in one partition (X), or have none and no
task either (Z); or it has other rows (O), or tasks without rows (N). A commit that is decided becomes visible some time
later, and of several that are under way any may be the first. Time passes, in which pings grow old, and leases end that
nobody has prolonged.

Checked in every state: no row is there twice; no run that was told that its rows are committed is wrong; no batch that
Spark's log has is incomplete; no batch is visible before its predecessor is complete. At every call: the invariants of
the protocol. From every state an end can be reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit import (
    AppState,
    Ask,
    Barrier,
    Commit,
    Committed,
    Content,
    Job,
    Key,
    LedgerState,
    Outcome,
    Part,
    Phase,
    Prepared,
    Role,
    fold,
)

#: Label of the step in which nothing happens but that time passes: to wait for it is no progress.
WAITING = "time passes"
APP, TARGET, OTHER = "app", "s/t#0", "s/u#0"
OTHER_RUN = 0xFF
KEY = Key(APP, TARGET)
#: Partitions of a batch by placement: the rows in each.
PLACEMENTS: dict[int, dict[str, tuple[str, ...]]] = {
    1: {"E": ("a",), "O": ("o",), "N": (), "Z": ()},
    2: {"E": ("a", "b"), "P": ("b", "a"), "X": ("ab",), "O": ("a", "o"), "N": (), "Z": ()},
    3: {"E": ("a", "b", "c"), "X": ("abc",), "Z": ()},
}
#: Outcomes that an operator must look at: the model ends there.
REPORTED = (Outcome.TORN, Outcome.UNDECIDABLE, Outcome.LOST, Outcome.UNFINISHED)
_STATUSES = {"O": Status.OPEN, "D": Status.COMMITTING, "C": Status.COMMITTED, "A": Status.ABORTED}


@dataclass(frozen=True)
class Config:
    """How large the world is, and how much may go wrong in it."""

    parts: int
    batches: int
    crash: int = 0
    expiry: int = 0
    unknown: int = 0
    forget: int = 0
    zombie: int = 0
    targets: int = 1
    """With 2 the application writes the same batches to another target of the ledger, by a driver that never fails."""
    placements: str = "E"
    lease: int = 0
    """How often time passes before a lease ends; with 0 leases only end as ``expiry`` says. A driver that lives takes
    a step before time passes again."""
    commit: type[Commit] = Commit
    invariants: bool = True
    """Whether calls are checked too; without them only what users see: duplicates, loss, disorder."""


class Budget(NamedTuple):
    crash: int
    expiry: int
    unknown: int
    forget: int
    zombie: int


class Driver(NamedTuple):
    """A process that runs batches one after the other."""

    run: int
    batch: int
    stage: str  # W: tasks are to write; M: commit runs; A: abort() runs
    machine: Commit | None = None
    answers: tuple[tuple[UUID, Status], ...] = ()
    late: bool = False  # it has taken no step since time passed


class Attempt(NamedTuple):
    """What one run wrote for one batch.

    The registers say O(pen), D(ecided: being committed), C(ommitted, which is visible), A(borted); small if forgotten.
    """

    run: int
    batch: int
    placement: str
    registers: str


class Call(NamedTuple):
    """A call on its way to the servers."""

    ask: Ask
    transaction: UUID | None = None
    revision: int = -1
    entry: Any = None


class State(NamedTuple):
    spark: int  # the first batch that Spark's log does not have
    length: int  # entries in the ledger
    app: AppState
    named: frozenset[UUID]  # transactions that any entry names
    attempts: tuple[Attempt, ...]
    drivers: tuple[Driver | None, Driver | None]
    flying: tuple[Call, ...]
    budget: Budget
    runs: int
    told: frozenset[tuple[int, str]] = frozenset()  # batch and rows of which a run was told that they are committed
    other: int = 0  # entries of the other target: PREPARED and COMMITTED of each batch
    ages: tuple[tuple[UUID, int], ...] = ()  # how often time has passed since the last ping, where it has
    reported: Outcome | None = None


class ViolationError(AssertionError):
    """An invariant of the protocol does not hold at a call."""


@cache
def transaction(run: int, batch: int, part: int) -> UUID:
    return UUID(int=run << 16 | batch << 8 | part)


def address(id_: UUID) -> tuple[int, int, int]:
    return id_.int >> 16, id_.int >> 8 & 0xFF, id_.int & 0xFF


def run_name(run: int) -> str:
    return f"run-{run}"


def first_state(config: Config) -> State:
    budget = Budget(config.crash, config.expiry, config.unknown, config.forget, config.zombie)
    return State(0, 0, AppState(APP, target=TARGET), frozenset(), (), (None, None), (), budget, 0)


# ---- transactions ----------------------------------------------------------------------------------------------------


def register(state: State, id_: UUID) -> str:
    run, batch, part = address(id_)
    for attempt in state.attempts:
        if attempt.run == run and attempt.batch == batch:
            return attempt.registers[part]
    if run == OTHER_RUN:  # the other target's, which no machine is to ask about
        return "C"
    raise KeyError(id_)


def status(state: State, id_: UUID) -> Status:
    return _STATUSES.get(register(state, id_), Status.UNKNOWN)


def put(state: State, id_: UUID, letter: str) -> State:
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
    """Equal for equal rows, whatever their order."""
    return Content(len(rows), len(rows), sum(1 << 8 * (ord(row) - ord("a")) for row in rows) % 2**64)


def own_parts(config: Config, attempt: Attempt) -> tuple[Part, ...]:
    placed = PLACEMENTS[config.parts][attempt.placement]
    return tuple(Part(transaction(attempt.run, attempt.batch, i), content(rows)) for i, rows in enumerate(placed))


def effect(config: Config, state: State, call: Call) -> tuple[State, Any]:
    """What a call does on the servers, and what is answered."""
    if call.ask is Ask.APPEND:
        if state.length != call.revision:
            return state, None
        return appended(config, state, call.entry), state.length + 1
    assert call.transaction is not None
    if register(state, call.transaction) != "O":
        return state, status(state, call.transaction)
    if config.invariants:
        check_call(state, call)
    # Of the last batch at once, where time is no matter: nothing follows that could overtake it.
    committed = "D" if config.lease or address(call.transaction)[1] + 1 < config.batches else "C"
    state = put(state, call.transaction, committed if call.ask is Ask.COMMIT else "A")
    return state, status(state, call.transaction)


@cache
def other_target(config: Config, entries: int) -> LedgerState:
    """What the ledger has of the other target: the same application and batches, with the same rows."""
    parts = own_parts(config, Attempt(OTHER_RUN, 0, "E", ""))
    rows = sum((part.content for part in parts), Content())
    written: list[Prepared | Committed] = []
    for batch in range(config.batches):
        nonce = f"other/{batch}"
        written.append(Prepared(APP, "query", "other", nonce, batch, 0, parts, OTHER))
        written.append(Committed(APP, "query", "other", nonce, batch, rows, OTHER))
    return fold(written[:entries])


def appended(config: Config, state: State, entry: Prepared | Committed | Barrier) -> State:
    if isinstance(entry, Barrier):
        return state._replace(length=state.length + 1)
    if config.invariants:
        check_append(state, entry)
    named = state.named
    if isinstance(entry, Prepared):
        named |= {part.transaction for part in entry.parts}
    return state._replace(length=state.length + 1, app=fold([entry], {KEY: state.app})[KEY], named=named)


# ---- the invariants of the protocol ----------------------------------------------------------------------------------


def check_call(state: State, call: Call) -> None:
    """1: committed only if named. 2: others only after the pilot has decided."""
    id_, prepared = call.transaction, state.app.open
    if call.ask is Ask.COMMIT and id_ not in state.named:
        raise ViolationError(f"{id_} is committed and in no entry")
    if prepared is None or id_ not in [part.transaction for part in prepared.parts[1:]]:
        return
    pilot = register(state, prepared.parts[0].transaction).upper()
    if pilot not in ("DC" if call.ask is Ask.COMMIT else "A"):
        raise ViolationError(f"{call.ask.value} of {id_} while its pilot is {pilot}")


def check_append(state: State, entry: Prepared | Committed) -> None:
    """3 and 4: what may follow what."""
    app, before = state.app, state.app.open
    if entry.batch <= app.last or (before is not None and entry.batch != before.batch):
        raise ViolationError(f"{entry} after {app}")
    if before is None:
        earlier = [a for a in state.attempts if a.batch < entry.batch and "D" in a.registers]
        if earlier and isinstance(entry, Prepared):
            raise ViolationError(f"{entry} while an earlier batch is not visible: {earlier}")
        return
    pilot = register(state, before.parts[0].transaction).upper()
    if isinstance(entry, Committed):
        if pilot == "A":
            return  # the set is lost and the batch has become empty
        if any(register(state, part.transaction).upper() not in "DC" for part in before.parts):
            raise ViolationError(f"COMMITTED of a set that is not: {before}")
        return
    if any(register(state, p.transaction).upper() == "A" for p in set(before.parts) & set(entry.parts)):
        raise ViolationError(f"{entry} names what is lost of {before}")
    if pilot != "A":
        kept = {part.transaction for part in entry.parts}
        if any(
            register(state, p.transaction).upper() != "A" and p.transaction not in kept for p in before.parts
        ) or len(entry.parts) != len(before.parts):
            raise ViolationError(f"{entry} replaces what is not lost of {before}")


# ---- drivers ---------------------------------------------------------------------------------------------------------


Step = tuple[str, State]


def with_driver(state: State, slot: int, driver: Driver | None) -> State:
    drivers = (driver, state.drivers[1]) if slot == 0 else (state.drivers[0], driver)
    return state._replace(drivers=drivers)


def calls_of(driver: Driver) -> list[Call]:
    """The calls of the driver's request that have not been answered; they may go out in any order."""
    if driver.machine is None:
        return []
    request = driver.machine.request()
    if request.ask is Ask.APPEND:
        return [Call(Ask.APPEND, None, request.revision, request.entry)]
    if request.ask in (Ask.COMMIT, Ask.ABORT):
        answered = {id_ for id_, _ in driver.answers}
        return [Call(request.ask, id_) for id_ in request.transactions if id_ not in answered]
    return []


def step(config: Config, state: State, slot: int) -> Iterator[Step]:
    """What a driver can do next, faults excluded."""
    driver = state.drivers[slot]
    assert driver is not None
    name = f"D{driver.run} batch {driver.batch}: "
    if driver.stage == "W":
        for label, after in write(config, state, slot, driver):
            yield name + label, after
        return
    assert driver.machine is not None
    request = driver.machine.request()
    label = name + f"{driver.machine.phase.name} "
    if request.ask is Ask.READ:
        found = {KEY: state.app, **other_target(config, state.other)}
        yield label, answer(config, state, slot, driver, (state.length, found))
    elif request.ask is Ask.PING:
        # At once: what happens between two pings is a lease that ends, and that may happen before or after as well.
        seen = {id_: status(state, id_) for id_ in request.transactions}
        yield label, answer(config, pinged(state, request.transactions), slot, driver, seen)
    elif request.ask is Ask.SETTLE:
        seen = {id_: status(state, id_) for id_ in request.transactions}
        yield label, answer(config, state, slot, driver, seen)
        if Status.COMMITTING in seen.values():
            done = dict.fromkeys(seen, Status.COMMITTED)
            yield label + "(no need to wait)", answer(config, state, slot, driver, done)
    elif request.ask is Ask.STATUS:
        id_ = request.transactions[len(driver.answers)]
        yield label + f"{address(id_)}", gather(config, state, slot, driver, id_, status(state, id_))
    elif request.ask is Ask.APPEND:
        after, revision = effect(config, state, calls_of(driver)[0])
        yield label + ("accepted" if revision else "refused"), answer(config, after, slot, driver, revision)
    else:
        yield from transact(config, state, slot, driver, label)


def transact(config: Config, state: State, slot: int, driver: Driver, label: str) -> Iterator[Step]:
    assert driver.machine is not None
    calls = calls_of(driver)
    if private(state, driver, calls):
        seen = {}
        for call in calls:
            state, seen[call.transaction] = effect(config, state, call)
        yield label + "(nobody else knows them)", answer(config, state, slot, driver, seen)
        return
    if calls[0].ask is Ask.COMMIT and driver.answers:
        unasked = {call.transaction: Status.OPEN for call in calls}
        yield label + "(the others wait)", answer(config, state, slot, driver, dict(driver.answers) | unasked)
    # Aborts of different transactions do not depend on each other's order, and their answers are not looked at.
    for call in calls if calls[0].ask is Ask.COMMIT else calls[:1]:
        after, found = effect(config, state, call)
        assert call.transaction is not None
        yield (
            label + f"{address(call.transaction)} {found.name}",
            gather(config, after, slot, driver, call.transaction, found),
        )


def private(state: State, driver: Driver, calls: list[Call]) -> bool:
    """Whether these are aborts of transactions that no entry names, or ever can: one step will do."""
    if calls[0].ask is not Ask.ABORT or any(call.transaction in state.named for call in calls):
        return False
    return not any(isinstance(call.entry, Prepared) and call.entry.run == run_name(driver.run) for call in state.flying)


def gather(config: Config, state: State, slot: int, driver: Driver, id_: UUID, found: Status) -> State:
    """One answer of several; the machine gets them together."""
    assert driver.machine is not None
    answers = (*driver.answers, (id_, found))
    if len(answers) < len(driver.machine.request().transactions):
        return with_driver(state, slot, driver._replace(answers=tuple(sorted(answers, key=lambda a: a[0].int))))
    return answer(config, state, slot, driver, dict(answers))


def answer(config: Config, state: State, slot: int, driver: Driver, value: Any) -> State:
    assert driver.machine is not None
    machine = driver.machine.answered(value)
    driver = driver._replace(machine=machine, answers=())
    return ended(config, state, slot, driver) if machine.ended else with_driver(state, slot, driver)


def ended(config: Config, state: State, slot: int, driver: Driver) -> State:
    assert driver.machine is not None
    outcome = driver.machine.outcome
    if outcome in (Outcome.COMMITTED, Outcome.SKIPPED):
        if config.invariants and driver.machine.job.role is Role.WRITER and state.app.last < driver.batch:
            raise ViolationError(f"success of batch {driver.batch} and the ledger says {state.app}")
        if driver.machine.job.role is Role.WRITER:
            rows = "".join(sorted("".join(PLACEMENTS[config.parts][placement_of(state, driver)])))
            state = state._replace(told=state.told | {(driver.batch, rows)})
        return succeeded(config, state, slot, driver)
    if outcome in REPORTED:
        return state._replace(reported=outcome, drivers=(None, None), flying=())
    if outcome is Outcome.ABANDONED:
        return with_driver(state, slot, None)
    return with_driver(state, slot, aborting(driver))


def placement_of(state: State, driver: Driver) -> str:
    """What this run wrote last for its batch."""
    return next(a.placement for a in state.attempts if (a.run, a.batch) == (driver.run, driver.batch))


def succeeded(config: Config, state: State, slot: int, driver: Driver) -> State:
    state = state._replace(spark=max(state.spark, driver.batch + 1))
    following = None if driver.batch + 1 == config.batches else Driver(driver.run, driver.batch + 1, "W")
    return with_driver(state, slot, following)


def aborting(driver: Driver) -> Driver:
    """Spark calls ``abort`` after a ``commit`` that raised."""
    assert driver.machine is not None
    machine = replace(driver.machine, phase=Phase.ABANDON_READ, outcome=None, recorded=None, proposed=None, statuses=())
    return driver._replace(stage="A", machine=machine, answers=())


def write(config: Config, state: State, slot: int, driver: Driver) -> Iterator[Step]:
    first = not any(attempt.batch == driver.batch for attempt in state.attempts)
    for placement in "E" if first else config.placements:
        attempt = Attempt(driver.run, driver.batch, placement, "O" * len(PLACEMENTS[config.parts][placement]))
        after = state._replace(attempts=(*state.attempts, attempt))
        role = Role.BYSTANDER if placement == "Z" else Role.WRITER
        own, run = own_parts(config, attempt), run_name(driver.run)
        nonce = f"{run}/{driver.batch}"
        if placement == "Z":
            run = ""
        app = "" if placement == "Z" else APP
        job = Job(app, "query", run, nonce, driver.batch, own, role, target=TARGET)
        yield (
            f"tasks write {placement}",
            with_driver(after, slot, driver._replace(stage="M", machine=config.commit(job))),
        )


# ---- everything that can happen --------------------------------------------------------------------------------------


def steps(config: Config, state: State) -> Iterator[Step]:
    if state.reported:
        return
    alive = [slot for slot in (0, 1) if state.drivers[slot] is not None]
    yield from starts(config, state, alive)
    for call in state.flying:
        after, _ = effect(config, state, call)
        flying = tuple(other for other in after.flying if other != call)
        yield f"a late {call.ask.value} arrives", after._replace(flying=flying)
    if state.other < 2 * config.batches * (config.targets - 1):
        yield "the other target: an entry", state._replace(length=state.length + 1, other=state.other + 1)
    yield from visibility(state)
    yield from server_faults(state)
    yield from time_passes(config, state)
    for slot in alive:
        for label, after in step(config, state, slot):
            driver = after.drivers[slot]
            yield label, with_driver(after, slot, driver._replace(late=False)) if driver and driver.late else after
        yield from crashes(state, slot)
        yield from unknowns(state, slot)


def starts(config: Config, state: State, alive: list[int]) -> Iterator[Step]:
    budget = state.budget
    if state.spark >= config.batches or len(alive) == 2 or (alive and not budget.zombie):
        return
    slot = 0 if state.drivers[0] is None else 1
    after = state._replace(runs=state.runs + 1, budget=budget._replace(zombie=budget.zombie - bool(alive)))
    yield f"run {state.runs} starts", with_driver(after, slot, Driver(state.runs, state.spark, "W"))


def visibility(state: State) -> Iterator[Step]:
    """What is being committed becomes visible, in any order."""
    for attempt in state.attempts:
        for part, letter in enumerate(attempt.registers):
            if letter == "D":
                id_ = transaction(attempt.run, attempt.batch, part)
                yield f"{address(id_)} becomes visible", put(state, id_, "C")


def time_passes(config: Config, state: State) -> Iterator[Step]:
    """Pings no longer count; leases that nobody has prolonged end."""
    if any(driver and driver.late for driver in state.drivers):
        return
    after = state
    for slot, driver in enumerate(state.drivers):
        if driver is not None and driver.machine is not None:
            late = bool(config.lease)
            after = with_driver(after, slot, driver._replace(machine=driver.machine.aged(), late=late))
    if config.lease:
        known, ages = dict(state.ages), []
        for id_ in relevant(state):
            if register(state, id_) == "O":
                age = known.get(id_, 0) + 1
                if age == config.lease:
                    after = put(after, id_, "A")
                else:
                    ages.append((id_, age))
        after = after._replace(ages=tuple(ages))
    if after != state:
        yield WAITING, after


def pinged(state: State, transactions: tuple[UUID, ...]) -> State:
    return state._replace(ages=tuple((id_, age) for id_, age in state.ages if id_ not in transactions))


def server_faults(state: State) -> Iterator[Step]:
    budget = state.budget
    for id_ in relevant(state):
        letter = register(state, id_)
        if letter == "O" and budget.expiry:
            after = put(state, id_, "A")
            yield f"the lease of {address(id_)} ends", after._replace(budget=budget._replace(expiry=budget.expiry - 1))
        elif letter in "CA" and budget.forget:
            after = put(state, id_, letter.lower())
            yield f"{address(id_)} is forgotten", after._replace(budget=budget._replace(forget=budget.forget - 1))


def crashes(state: State, slot: int) -> Iterator[Step]:
    driver, budget = state.drivers[slot], state.budget
    assert driver is not None
    if not budget.crash:
        return
    where = driver.machine.phase.name if driver.machine else "writing"
    dead = with_driver(state, slot, None)._replace(budget=budget._replace(crash=budget.crash - 1))
    yield f"D{driver.run} crashes at {where}", dead
    calls = calls_of(driver)
    for call in calls:
        yield f"D{driver.run} crashes at {where}, a call under way", dead._replace(flying=flight(state, call))
    if len(calls) > 1 and calls[0].ask is Ask.COMMIT:
        yield f"D{driver.run} crashes at {where}, all calls under way", dead._replace(flying=flight(state, *calls))


def unknowns(state: State, slot: int) -> Iterator[Step]:
    """An answer that never comes: the driver asks again, or gives up, and Spark calls ``abort``."""
    driver, budget = state.drivers[slot], state.budget
    assert driver is not None
    if not budget.unknown or driver.stage != "M":
        return
    for call in calls_of(driver):
        after = state._replace(budget=budget._replace(unknown=budget.unknown - 1), flying=flight(state, call))
        yield f"D{driver.run} {call.ask.value}: no answer, asks again", after
        yield f"D{driver.run} {call.ask.value}: no answer, gives up", with_driver(after, slot, aborting(driver))


def flight(state: State, *calls: Call) -> tuple[Call, ...]:
    return state.flying + tuple(call for call in calls if call not in state.flying)


def relevant(state: State) -> list[UUID]:
    """Transactions that anybody can still ask about."""
    ids = {part.transaction for part in state.app.open.parts} if state.app.open else set()
    ids |= set(state.app.last_set)
    for driver in state.drivers:
        if driver is not None and driver.machine is not None:
            machine = driver.machine
            ids |= machine.job.ids() | set(machine.settling)
            for entry in (machine.recorded, machine.proposed):
                ids |= {part.transaction for part in entry.parts} if entry else set()
    for call in state.flying:
        ids |= {call.transaction} if call.transaction else set()
        ids |= {part.transaction for part in call.entry.parts} if isinstance(call.entry, Prepared) else set()
    return sorted(ids, key=lambda id_: id_.int)


# ---- what must hold in every state -----------------------------------------------------------------------------------


def rows_of(config: Config, state: State, batch: int, letters: str) -> Counter[str]:
    """The rows of a batch in transactions of these states."""
    rows: Counter[str] = Counter()
    for attempt in state.attempts:
        if attempt.batch == batch:
            placed = PLACEMENTS[config.parts][attempt.placement]
            for letter, some in zip(attempt.registers, placed, strict=True):
                if letter in letters:
                    rows.update(some)
    return rows


def wanted(config: Config, state: State, batch: int) -> set[str]:
    """What a batch may be: its rows, or none if the query has changed so that it has none."""
    return {"".join(sorted("".join(PLACEMENTS[config.parts][a.placement]))) for a in state.attempts if a.batch == batch}


def violation(config: Config, state: State) -> str | None:
    if state.reported:
        return f"{state.reported.name}: reported though every driver lived" if is_whole(config) else None
    complete = True
    for batch in range(config.batches):
        committed, visible = rows_of(config, state, batch, "DCc"), rows_of(config, state, batch, "Cc")
        if any(count > 1 for count in committed.values()):
            return f"DUPLICATE in batch {batch}: {dict(committed)}"
        if visible and not complete:
            return f"ORDER: batch {batch} is visible before batch {batch - 1} is complete"
        rows, possible = "".join(sorted(committed)), wanted(config, state, batch)
        complete = "".join(sorted(visible)) in possible and visible == committed
        if state.spark > batch and rows not in possible:
            return f"LOSS: Spark's log has batch {batch}, committed of it is {dict(committed)}"
        if any(told != rows for told_batch, told in state.told if told_batch == batch):
            return f"LOSS: of batch {batch} {set(state.told)} were told to be committed, and it is {rows!r}"
    return None


def is_whole(config: Config) -> bool:
    """Whether nothing but time goes wrong, so that an operator never has to look."""
    return bool(config.lease) and not (config.crash or config.expiry or config.unknown or config.forget)


def is_end(config: Config, state: State, followed: bool) -> bool:
    """Whether all that Spark asked for is done, or an operator must look."""
    idle = not any(state.drivers)
    return bool(state.reported) or (state.spark == config.batches and (idle or not followed))


def outcome(state: State) -> str | None:
    """Name of what was reported to an operator."""
    return state.reported.name if state.reported else None


# ---- which states are the same ---------------------------------------------------------------------------------------


def canonical(config: Config) -> Callable[[State], Any]:
    """A key that equal situations share: runs by their order, only the transactions that matter."""

    def key(state: State) -> Any:
        ids = relevant(state)
        runs = {address(id_)[0] for id_ in ids} | {d.run for d in state.drivers if d}
        order = {run: position for position, run in enumerate(sorted(runs))}
        names = {run_name(run): position for run, position in order.items()}

        def id_key(id_: UUID) -> tuple[int, int, int]:
            run, batch, part = address(id_)
            return order[run], batch, part

        def entry_key(entry: Any) -> Any:
            if entry is None or isinstance(entry, Barrier):
                return None
            parts = (
                tuple(id_key(p.transaction) for p in entry.parts)
                if isinstance(entry, Prepared)
                else entry.content.total
            )
            return names.get(entry.run, -1), entry.run in state.app.runs, entry.batch, parts

        def driver_key(driver: Driver | None) -> Any:
            if driver is None:
                return (-1,)
            machine, run = driver.machine, run_name(driver.run)
            seen = run in state.app.runs, bool(state.app.runs) and state.app.runs[-1] == run
            last = state.app.seen_run == run, state.app.seen_nonce == f"{run}/{driver.batch}"
            head = order[driver.run], driver.batch, driver.stage, seen, last
            if machine is None:
                return head
            return (
                *head,
                machine.phase.value,
                machine.job.role.value,
                machine.revision == state.length,
                entry_key(machine.recorded),
                entry_key(machine.proposed),
                tuple(sorted(id_key(i) for i in machine.fresh if i in ids)),
                driver.late,
                # In recorded sets the machine makes no difference between what is committed and what is being so.
                tuple("committed" if s.is_committed else s.value for s in machine.statuses),
                machine.outcome and machine.outcome.value,
                tuple(map(id_key, machine.settling)),
                tuple((id_key(i), s.value) for i, s in driver.answers),
                tuple(id_key(p.transaction) for p in machine.job.own),
            )

        flying = tuple(
            sorted(
                (c.ask.value, id_key(c.transaction) if c.transaction else (), str(entry_key(c.entry)))
                for c in state.flying
                if (c.revision == state.length if c.ask is Ask.APPEND else register(state, c.transaction) == "O")  # type: ignore[arg-type]
            )
        )
        rows = tuple(
            (
                tuple(sorted(rows_of(config, state, b, "Cc").items())),
                tuple(sorted(rows_of(config, state, b, "D").items())),
                tuple(sorted(wanted(config, state, b))),
            )
            for b in range(config.batches)
        )
        known = tuple((batch, of.total) for batch, of in state.app.recent)
        placements = tuple(sorted({(order[a.run], a.batch, a.placement) for a in state.attempts if a.run in order}))
        return (
            state.spark,
            state.app.last,
            entry_key(state.app.open),
            tuple(sorted(map(driver_key, state.drivers))),
            flying,
            tuple((id_key(i), register(state, i), i in state.named) for i in ids),
            rows,
            known,
            tuple(map(id_key, state.app.last_set)),
            tuple((id_key(i), age) for i, age in state.ages if i in ids),
            tuple(sorted(state.told)),
            placements,
            tuple(state.budget),
            state.other,
            state.reported and state.reported.value,
        )

    return key
