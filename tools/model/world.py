"""World in which everything that can go wrong with a batch goes wrong: the model of exactly-once batches.

Drivers run the implementation's own machine (``pravega_connector.exactly_once.batch_commit.Commit``). The model is the
rest of the world: Spark, the transactions, the ledger's compare-and-set, crashes, calls that arrive late or never,
expired leases, forgotten statuses, a second driver, and streams that are sealed, deleted and recreated. One step is one
call. A batch is replayed until Spark's log has it. A replay may place the rows as before (E), in exchanged partitions
(P), in one partition (X), or have none and no task either (Z). Or it has other rows (O), tasks without rows (N), or a
row in another stream (M). A decided commit becomes visible some time later, and of several concurrent ones any may be
the first. Time passes: pings become old, and leases expire without pings.

Checked in every state: no row is visible twice. No run with a reported commit is wrong. No batch of
Spark's log is incomplete, in any of its streams. No batch is visible before its predecessor is complete. At every call:
the invariants of the protocol. From every state an end can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.batch_commit import (
    Ask,
    Barrier,
    Committed,
    Job,
    LedgerState,
    Outcome,
    Prepared,
    Role,
    TransactionId,
    content_of,
    fold,
)
from pravega_connector.exactly_once.batch_commit.decided_cut import deciding, divided
from tools.model.world_checks import ViolationError, check_append, check_call, violation, wanted
from tools.model.world_state import (
    OTHER,
    OTHER_RUN,
    REPORTED,
    Attempt,
    Call,
    Config,
    Cut,
    Driver,
    Server,
    State,
    aborting,
    address,
    first_state,
    is_deleted,
    own_parts,
    put,
    register,
    relevant,
    rows_of,
    run_name,
    status,
    stream_of,
    transactions,
    with_app,
    with_driver,
    written,
)

__all__ = ["Config", "ViolationError", "canonical", "first_state", "is_end", "outcome", "steps", "violation"]

#: Label of the step in which only time passes: waiting for it does not count as progress.
WAITING = "time passes"
_NO_ID = UUID(int=0)


# ---- servers ---------------------------------------------------------------------------------------------------------


def effect(config: Config, state: State, call: Call) -> tuple[State, Any]:
    """Effect of a call on the servers, and its answer."""
    if call.ask is Ask.APPEND:
        if state.length != call.revision:
            return state, None
        return appended(config, state, call.entry), state.length + 1
    assert call.transaction is not None
    if register(state, call.transaction) != "O":
        return state, status(state, call.transaction)
    if config.invariants:
        check_call(state, call)
    # The last batch is visible at once unless time matters: nothing follows that could overtake it.
    slow = config.slow or config.leases or address(call.transaction)[1] + 1 < config.batches
    committed = "D" if slow else "C"
    state = put(state, call.transaction, committed if call.ask is Ask.COMMIT else "A")
    return state, status(state, call.transaction)


@cache
def other_target(config: Config, entries: int) -> LedgerState:
    """Return the ledger's state of the other target: the same application and batches, with the same rows."""
    creations = (0,) * config.all_streams
    app = config.key(0).app
    made: list[Prepared | Committed] = []
    for batch in range(config.batches):
        parts = own_parts(config, Attempt(0, OTHER_RUN, batch, "E", "", creations))
        nonce = f"other/{batch}"
        made.append(Prepared(app, "query", "other", nonce, batch, 0, parts, OTHER))
        made.append(Committed(app, "query", "other", nonce, batch, content_of(parts), OTHER))
    return fold(made[:entries])


def appended(config: Config, state: State, entry: Prepared | Committed | Barrier) -> State:
    if isinstance(entry, Barrier):
        return state._replace(length=state.length + 1)
    query = query_of(config, entry.app)
    if config.invariants:
        check_append(state, query, entry)
    named = state.named
    if isinstance(entry, Prepared):
        named |= {part.transaction for part in entry.parts}
    key = config.key(query)
    after = with_app(state, query, fold([entry], {key: state.apps[query]})[key])
    return after._replace(length=state.length + 1, named=named)


def query_of(config: Config, app: str) -> int:
    """Return the number of the query with this application id."""
    return next(query for query in range(config.queries) if config.key(query).app == app)


# ---- drivers ---------------------------------------------------------------------------------------------------------


Step = tuple[str, State]


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
    """Next actions of a driver, without faults."""
    driver = state.drivers[slot]
    assert driver is not None
    name = (
        f"D{driver.run} batch {driver.batch}: "
        if config.queries == 1
        else f"Q{driver.query} {driver.run} batch {driver.batch}: "
    )
    if driver.stage == "W":
        for label, after in write(config, state, slot, driver):
            yield name + label, after
        return
    assert driver.machine is not None
    request = driver.machine.request()
    label = name + f"{driver.machine.phase.name} "
    if request.ask is Ask.READ:
        found = {config.key(query): app for query, app in enumerate(state.apps)}
        found |= other_target(config, state.other)
        yield label, answer(config, state, slot, driver, (state.length, found))
    elif request.ask is Ask.EXIST:
        gone = frozenset(name for name in request.streams if is_deleted(state, stream_of(TransactionId(name, _NO_ID))))
        yield label + f"{set(gone) or 'all'}", answer(config, state, slot, driver, gone)
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
    # The order of aborts makes a difference only if their answers do: if the pilot's stream is deleted.
    for call in calls if calls[0].ask is Ask.COMMIT or config.seal else calls[:1]:
        after, found = effect(config, state, call)
        assert call.transaction is not None
        yield (
            label + f"{address(call.transaction)} {found.name}",
            gather(config, after, slot, driver, call.transaction, found),
        )


def private(state: State, driver: Driver, calls: list[Call]) -> bool:
    """Return True if these are aborts of transactions that no entry names, or ever can: one step will do."""
    if calls[0].ask is not Ask.ABORT or any(call.transaction in state.named for call in calls):
        return False
    return not any(isinstance(call.entry, Prepared) and call.entry.run == run_name(driver.run) for call in state.flying)


def gather(config: Config, state: State, slot: int, driver: Driver, id_: TransactionId, found: Status) -> State:
    """One answer of several; the machine gets them together."""
    assert driver.machine is not None
    answers = (*driver.answers, (id_, found))
    if len(answers) < len(driver.machine.request().transactions):
        return with_driver(state, slot, driver._replace(answers=tuple(sorted(answers, key=lambda a: a[0].id.int))))
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
        app = state.apps[driver.query]
        if config.invariants and driver.machine.job.role is Role.WRITER and app.last < driver.batch:
            raise ViolationError(f"success of batch {driver.batch} and the ledger says {app}")
        if driver.machine.job.role is Role.WRITER:
            rows = written(config, attempt_of(state, driver))
            state = state._replace(told=state.told | {(driver.query, driver.batch, rows)})
        return succeeded(config, state, slot, driver)
    if outcome in REPORTED:
        return state._replace(reported=outcome, drivers=(None,) * len(state.drivers), flying=())
    if outcome is Outcome.ABANDONED:
        return with_driver(state, slot, None)
    return with_driver(state, slot, aborting(driver))


def attempt_of(state: State, driver: Driver) -> Attempt:
    """Return what this run wrote last for its batch."""
    return next(a for a in state.attempts if (a.run, a.batch) == (driver.run, driver.batch))


def succeeded(config: Config, state: State, slot: int, driver: Driver) -> State:
    spark = list(state.spark)
    spark[driver.query] = max(spark[driver.query], driver.batch + 1)
    following = None
    if driver.batch + 1 < config.batches:
        following = Driver(driver.query, driver.run, driver.batch + 1, "W")
    return with_driver(state._replace(spark=tuple(spark)), slot, following)


def write(config: Config, state: State, slot: int, driver: Driver) -> Iterator[Step]:
    query, run, batch = driver.query, driver.run, driver.batch
    first = not any((attempt.query, attempt.batch) == (query, batch) for attempt in state.attempts)
    creations = tuple(stream.creation for stream in state.streams)
    own = config.first[batch % len(config.first)]
    for placement in own if first else config.placements.replace("E", own):
        placed = config.placed(placement)
        if any(state.streams[config.stream(query, number)].sealed for number, _ in placed):
            yield f"tasks cannot write {placement}", with_driver(state, slot, None)
            continue
        attempt = Attempt(query, run, batch, placement, "O" * len(placed), creations)
        after = state._replace(attempts=(*state.attempts, attempt))
        machine = config.commit(job_of(config, attempt))
        yield f"tasks write {placement}", with_driver(after, slot, driver._replace(stage="M", machine=machine))


def job_of(config: Config, attempt: Attempt) -> Job:
    """Return the job of a commit of these rows. Without a task, the driver does not know its query."""
    key, run = config.key(attempt.query), run_name(attempt.run)
    nonce = f"{run}/{attempt.batch}"
    if attempt.placement == "Z":
        return Job("", "query", "", nonce, attempt.batch, (), Role.BYSTANDER, target=key.target)
    own = own_parts(config, attempt)
    return Job(key.app, "query", run, nonce, attempt.batch, own, Role.WRITER, target=key.target)


# ---- everything that can happen --------------------------------------------------------------------------------------


def steps(config: Config, state: State) -> Iterator[Step]:
    if state.reported:
        return
    alive = [slot for slot, driver in enumerate(state.drivers) if driver is not None]
    for query in range(config.queries):
        yield from starts(config, state, query)
    for call in state.flying:
        after, _ = effect(config, state, call)
        flying = tuple(other for other in after.flying if other != call)
        yield f"a late {call.ask.value} arrives", after._replace(flying=flying)
    if state.other < 2 * config.batches * (config.targets - 1):
        yield "the other target: an entry", state._replace(length=state.length + 1, other=state.other + 1)
    yield from visibility(config, state)
    yield from server_faults(state)
    yield from stream_faults(config, state)
    yield from time_passes(config, state)
    if config.cut:
        yield cuts(config, state)
    for slot in alive:
        for label, after in step(config, state, slot):
            driver = after.drivers[slot]
            yield label, with_driver(after, slot, driver._replace(late=False)) if driver and driver.late else after
        yield from crashes(state, slot)
        yield from unknowns(state, slot)


def starts(config: Config, state: State, query: int) -> Iterator[Step]:
    budget, slots = state.budget, (2 * query, 2 * query + 1)
    free = [slot for slot in slots if state.drivers[slot] is None]
    alive = len(slots) - len(free)
    if state.spark[query] >= config.batches or not free or (alive and not budget.zombie):
        return
    after = state._replace(runs=state.runs + 1, budget=budget._replace(zombie=budget.zombie - alive))
    driver = Driver(query, state.runs, state.spark[query], "W")
    yield f"run {state.runs} starts", with_driver(after, free[0], driver)


def cuts(config: Config, state: State) -> Step:
    """One call of a reader that requests a cut. Its result is checked, and it restarts."""
    cut = state.cut
    if cut is None or cut.returned:
        return "cut: reads the ledger", state._replace(cut=Cut(state.length, state.apps))
    if cut.revision >= 0:
        found = _checked(config, state, cut)
        if found is None or (cut.tails and found != cut.before):
            return "cut: starts again", state._replace(cut=None)
        after = cut._replace(revision=-1, apps=(), before=found, returned=bool(cut.tails))
        return "cut: finds each batch whole", state._replace(cut=after)
    if len(cut.tails) == len(config.cut):
        return "cut: reads the ledger again", state._replace(cut=cut._replace(revision=state.length, apps=state.apps))
    stream = config.cut[len(cut.tails)]
    seen = frozenset(id_ for id_, letter in letters_of(config, state, stream) if letter in "Cc")
    return f"cut: reads the tail of {stream}", state._replace(cut=cut._replace(tails=(*cut.tails, seen)))


def _checked(config: Config, state: State, cut: Cut) -> Any:
    """Return what must not change between two checks; None if a batch may be partially visible."""
    ledger = {config.key(query): app for query, app in enumerate(cut.apps)}
    streams = {f"s/t{number}" for number in config.cut}
    statuses = {id_: status(state, id_) for id_ in deciding(ledger, streams)}
    if divided(ledger, streams, statuses) is not None:
        return None
    if config.cut_at_revision:
        return cut.revision
    return tuple(tuple(id_ for id_ in app.last_set if stream_of(id_)[0] in config.cut) for app in cut.apps)


def visibility(config: Config, state: State) -> Iterator[Step]:
    """Let a decided commit become visible, in any order."""
    for attempt in state.attempts:
        if "D" in attempt.registers:
            for id_, letter in zip(transactions(config, attempt), attempt.registers, strict=True):
                if letter == "D":
                    yield f"{address(id_)} becomes visible", put(state, id_, "C")


def stream_faults(config: Config, state: State) -> Iterator[Step]:
    """Seal a stream, which aborts its open transactions; or delete and recreate a sealed one.

    A stream cannot be deleted while it is not sealed, or while a transaction is being committed.
    """
    budget = state.budget
    for number, stream in enumerate(state.streams):
        letters = dict(letters_of(config, state, number))
        if not stream.sealed and budget.seal:
            after = state
            for id_, letter in letters.items():
                after = put(after, id_, "A") if letter == "O" else after
            after = with_stream(after, number, stream._replace(sealed=True))
            yield f"stream {number} is sealed", after._replace(budget=budget._replace(seal=budget.seal - 1))
        if stream.sealed and "D" not in letters.values():
            yield f"stream {number} is recreated", recreated(config, state, number)
            yield f"stream {number} is recreated, and all forgotten", recreated(config, state, number, str.lower)


def recreated(config: Config, state: State, number: int, letters: Callable[[str], str] = str) -> State:
    """Return the state with another stream of the name. The statuses of its transactions may outlive the stream."""
    after = state
    for id_, letter in letters_of(config, state, number):
        after = put(after, id_, letters(letter))
    lost = {(a.query, a.batch, number) for a in state.attempts}
    after = after._replace(deleted=state.deleted | lost)
    return with_stream(after, number, Server(state.streams[number].creation + 1))


def letters_of(config: Config, state: State, number: int) -> list[tuple[TransactionId, str]]:
    """Return the transactions of an existing stream, with their letters."""
    here = (number, state.streams[number].creation)
    return [
        (id_, letter)
        for attempt in state.attempts
        for id_, letter in zip(transactions(config, attempt), attempt.registers, strict=True)
        if stream_of(id_) == here
    ]


def with_stream(state: State, number: int, stream: Server) -> State:
    return state._replace(streams=(*state.streams[:number], stream, *state.streams[number + 1 :]))


def time_passes(config: Config, state: State) -> Iterator[Step]:
    """Pings no longer count; leases without pings end."""
    if any(driver and driver.late for driver in state.drivers):
        return
    after = state
    for slot, driver in enumerate(state.drivers):
        if driver is not None and driver.machine is not None:
            late = bool(config.leases)
            after = with_driver(after, slot, driver._replace(machine=driver.machine.aged(), late=late))
    if config.leases:
        known, ages = dict(state.ages), []
        for id_ in relevant(state):
            if register(state, id_) == "O":
                age = known.get(id_, 0) + 1
                if age == config.leases[stream_of(id_)[0]]:
                    after = put(after, id_, "A")
                else:
                    ages.append((id_, age))
        after = after._replace(ages=tuple(ages))
    if after != state:
        yield WAITING, after


def pinged(state: State, transactions: tuple[TransactionId, ...]) -> State:
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


def is_end(config: Config, state: State, followed: bool) -> bool:
    """Return True if all that Spark asked for is done, or an operator must look."""
    idle = not any(state.drivers)
    return bool(state.reported) or (min(state.spark) == config.batches and (idle or not followed))


def outcome(state: State) -> str | None:
    """Name of what was reported to an operator."""
    return state.reported.name if state.reported else None


# ---- which states are the same ---------------------------------------------------------------------------------------


def canonical(config: Config) -> Callable[[State], Any]:
    """Return a key that equal situations share: runs by their order, and only the transactions that matter."""

    def key(state: State) -> Any:
        ids = relevant(state)
        runs = {address(id_)[0] for id_ in ids} | {d.run for d in state.drivers if d}
        if state.cut is not None:
            sets = [*state.cut.tails, *(app.last_set for app in state.cut.apps)]
            sets += [[part.transaction for part in app.open.parts] for app in state.cut.apps if app.open]
            runs |= {address(id_)[0] for ids_ in sets for id_ in ids_}
        order = {run: position for position, run in enumerate(sorted(runs))}
        names = {run_name(run): position for run, position in order.items()}

        def id_key(id_: TransactionId) -> tuple[int, ...]:
            run, batch, part = address(id_)
            return order[run], batch, part, *stream_of(id_)

        def entry_key(entry: Any) -> Any:
            if entry is None or isinstance(entry, Barrier):
                return None
            parts = (
                tuple(id_key(p.transaction) for p in entry.parts)
                if isinstance(entry, Prepared)
                else entry.content.total
            )
            known = any(entry.run in app.runs for app in state.apps)
            return entry.app, names.get(entry.run, -1), known, entry.batch, parts

        def driver_key(driver: Driver | None) -> Any:
            if driver is None:
                return (-1,)
            machine, run, app = driver.machine, run_name(driver.run), state.apps[driver.query]
            seen = run in app.runs, bool(app.runs) and app.runs[-1] == run
            last = app.seen_run == run, app.seen_nonce == f"{run}/{driver.batch}"
            head = driver.query, order[driver.run], driver.batch, driver.stage, seen, last
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
                # With one stream, a machine makes no difference between COMMITTING and COMMITTED of a recorded set.
                tuple("committed" if one and s.is_committed else s.value for s in machine.statuses),
                machine.outcome and machine.outcome.value,
                tuple(map(id_key, machine.settling)),
                tuple((id_key(i), s.value) for i, s in driver.answers),
                tuple(id_key(p.transaction) for p in machine.job.own),
                tuple(sorted((id_key(i), s.value) for i, s in machine.missing if i in ids)),
                tuple(sorted(machine.deleted)),
            )

        one = config.streams == 1 or not (config.slow or config.leases)
        flying = tuple(
            sorted(
                (c.ask.value, id_key(c.transaction) if c.transaction else (), str(entry_key(c.entry)))
                for c in state.flying
                if (c.revision == state.length if c.ask is Ask.APPEND else register(state, c.transaction) == "O")  # type: ignore[arg-type]
            )
        )

        def cut_key(cut: Cut | None) -> Any:
            if cut is None:
                return None
            ledger = tuple((app.last, entry_key(app.open), tuple(map(id_key, app.last_set))) for app in cut.apps)
            tails = tuple(tuple(sorted(id_key(i) for i in tail)) for tail in cut.tails)
            before = cut.before == state.length if config.cut_at_revision else str(cut.before)
            return cut.revision == state.length, cut.revision < 0, ledger, before, tails, cut.returned

        rows = tuple(
            (
                tuple(sorted(rows_of(config, state, q, b, "Cc").items())),
                tuple(sorted(rows_of(config, state, q, b, "D").items())),
                tuple(sorted(wanted(config, state, q, b))),
            )
            for q in range(config.queries)
            for b in range(config.batches)
        )
        placements = tuple(
            sorted({(order[a.run], a.batch, a.placement, a.creations) for a in state.attempts if a.run in order})
        )
        return (
            state.spark,
            tuple(map(tuple, state.streams)),
            tuple(
                (
                    app.last,
                    entry_key(app.open),
                    tuple((batch, of.total) for batch, of in app.recent),
                    tuple(map(id_key, app.last_set)),
                )
                for app in state.apps
            ),
            tuple(sorted(map(driver_key, state.drivers))),
            flying,
            tuple((id_key(i), register(state, i), i in state.named) for i in ids),
            rows,
            tuple((id_key(i), age) for i, age in state.ages if i in ids),
            tuple(sorted(state.told)),
            tuple(sorted(state.deleted)),
            placements,
            tuple(state.budget),
            state.other,
            state.reported and state.reported.value,
            cut_key(state.cut),
        )

    return key
