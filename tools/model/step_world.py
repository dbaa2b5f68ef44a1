"""World for the protocol of steps: runs that crash, overlap, or lose answers, and a server that ends transactions.

Runs drive the implementation's own machine (:mod:`pravega_connector.exactly_once.steps.machine`) over its own state.
The model is the rest of the world:

- The log, which accepts an update only at its end.
- Transactions, which are one-shot registers.
- Leases that end, and outcomes that are forgotten.
- Commits that become visible later, in any order.

Two items have positions from 0 to ``length``. A run claims items, moves some of them by one position in a transaction,
and continues until all are done. In ``late`` mode it records a transaction after it has written it, as readers of a
group do. In ``early`` mode it claims everything with each step, and records a transaction before it writes it, as
ingestion does; with ``other``, it then adds a part in another stream to the step. It decides a recorded step of
another run only before it begins. Its writes come from its *feed*, which it reads ahead of the log: if another run may
have moved the log, it restarts the feed at the log's positions.

Checked in every state: no position is committed twice in a life of the log. No position of an item is visible before
the previous one. The steps that the log calls done are committed. From every state, the end can be reached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple
from uuid import UUID

from pravega_connector.client import TransactionStatus as Status
from pravega_connector.exactly_once.steps.machine import Ask, Outcome, Phase, Request, Turn, transactions
from pravega_connector.exactly_once.steps.state import ALL, Life, Named, Step, StepsState, Update, owed_item

_STATUSES = {"O": Status.OPEN, "D": Status.COMMITTING, "C": Status.COMMITTED, "A": Status.ABORTED}
STREAM = "scope/stream"
OTHER = "scope/other"
_PER_RUN = 64


@dataclass(frozen=True)
class Config:
    """How large the world is, and how much may go wrong in it."""

    mode: str
    items: str = "ab"
    length: int = 1
    other: bool = False
    """In early mode: whether each step has a part in another stream."""
    crash: int = 0
    expiry: int = 0
    unknown: int = 0
    forget: int = 0
    zombie: int = 0
    """Runs that start while another one is alive."""
    reset: int = 0
    """Lives of the log that begin while runs of the earlier one may be alive."""
    turn: type[Turn] = Turn
    feed: bool = True
    """Whether a step's positions are those of the feed. Otherwise they are the log's when the step begins."""
    conditional: bool = True
    """Whether the log refuses an update that was decided on an earlier state."""


class Budget(NamedTuple):
    crash: int
    expiry: int
    unknown: int
    forget: int
    zombie: int
    reset: int


class Register(NamedTuple):
    """A transaction: its status letter, lower case once forgotten, and what was written to it."""

    id: int
    letter: str
    content: tuple[tuple[int, str, int], ...] = ()
    stream: str = STREAM


class Call(NamedTuple):
    """A call whose sender no longer waits for it. It takes effect later, or never."""

    ask: Ask
    transaction: int = -1
    update: Update | None = None
    revision: int = 0


class Run(NamedTuple):
    """A run that is alive."""

    number: int
    life: int
    stage: str = "claim"
    turn: Turn | None = None
    at: tuple[tuple[str, int], ...] = ()
    """Positions of its feed, for the items that it owns."""
    step: Step | None = None
    decided: int = -1
    """Its own transaction that is committed, while the log does not show it."""
    before: tuple[Named, ...] = ()
    """The transactions of that step."""
    begun: int = 0
    answers: tuple[tuple[UUID, Status], ...] = ()


class State(NamedTuple):
    log: StepsState
    length: int
    """Updates in the log: the revision at its end."""
    registers: tuple[Register, ...]
    runs: tuple[Run | None, Run | None]
    flying: tuple[Call, ...]
    started: int
    life: int
    budget: Budget
    reported: Outcome | None = None


Labelled = tuple[str, State]


def first_state(config: Config) -> State:
    """Return the world before the first run."""
    budget = Budget(config.crash, config.expiry, config.unknown, config.forget, config.zombie, config.reset)
    return State(StepsState(Life("log")), 0, (), (None, None), (), 0, 0, budget)


def steps(config: Config, state: State) -> Iterator[Labelled]:
    """Yield everything that can happen next."""
    if state.reported:
        return
    yield from _starts(config, state)
    for call in state.flying:
        after, _ = _effect(config, state, call)
        yield f"a late {call.ask.value} arrives", after._replace(flying=tuple(c for c in state.flying if c != call))
    yield from _server(state)
    for slot in (0, 1):
        if state.runs[slot] is not None:
            yield from _proceeds(config, state, slot)
            yield from _fails(config, state, slot)


def _starts(config: Config, state: State) -> Iterator[Labelled]:
    alive = [slot for slot in (0, 1) if state.runs[slot] is not None]
    budget = state.budget
    if budget.reset:
        yield (
            "the log begins a later life",
            state._replace(life=state.life + 1, budget=budget._replace(reset=budget.reset - 1)),
        )
    if _complete(config, state) or len(alive) == 2 or (alive and not budget.zombie):
        return
    slot = 0 if state.runs[0] is None else 1
    after = state._replace(started=state.started + 1, budget=budget._replace(zombie=budget.zombie - bool(alive)))
    yield f"run {state.started} starts", _with(after, slot, Run(state.started, state.life))


def _server(state: State) -> Iterator[Labelled]:
    budget = state.budget
    relevant = _relevant(state)
    for register in state.registers:
        if register.letter == "D":
            yield f"{register.id} becomes visible", _put(state, register._replace(letter="C"))
        if register.id not in relevant:
            continue
        if register.letter == "O" and budget.expiry:
            after = _put(state, register._replace(letter="A"))
            yield f"the lease of {register.id} ends", after._replace(budget=budget._replace(expiry=budget.expiry - 1))
        elif register.letter in "CA" and budget.forget:
            after = _put(state, register._replace(letter=register.letter.lower()))
            yield f"{register.id} is forgotten", after._replace(budget=budget._replace(forget=budget.forget - 1))


# ---- a run -----------------------------------------------------------------------------------------------------------


def _proceeds(config: Config, state: State, slot: int) -> Iterator[Labelled]:
    run = state.runs[slot]
    assert run is not None
    if run.turn is not None:
        yield from _asks(config, state, slot, run)
    elif run.stage == "claim":
        yield from _claims(config, state, slot, run)
    elif run.stage == "write":
        yield _writes(config, state, slot, run)
    else:
        yield from _moves(config, state, slot, run)


def _claims(config: Config, state: State, slot: int, run: Run) -> Iterator[Labelled]:
    if config.mode == "early" and not state.log.steps:
        # Nothing is in the way: it claims everything with its first step.
        at = tuple((item, state.log.positions.get(item) or 0) for item in config.items)
        yield f"run {run.number} reads", _with(state, slot, run._replace(stage="moves", at=at))
        return
    if config.mode == "early":
        choices: list[dict[str, Any]] = [{ALL: None}]
    else:
        some = [combinations(config.items, count) for count in range(1, len(config.items) + 1)]
        choices = [dict.fromkeys(items, 0) for count in some for items in count]
    for claim in choices:
        update = Update(run=_name(run.number), life=Life("log", run.life), claim=claim, decided=_decided(run))
        # In early mode it decides the steps that it has seen, of runs that it considers ended.
        seen = frozenset(step.transaction for step in state.log.steps.values())
        turn = config.turn(update, deciding=seen if config.mode == "early" else None, unseen=_unseen(run))
        yield f"run {run.number} claims {''.join(claim)}", _with(state, slot, run._replace(turn=turn))


def _moves(config: Config, state: State, slot: int, run: Run) -> Iterator[Labelled]:
    if OTHER in state.log.owed and run.decided < 0:
        yield _pays(config, state, slot, run)
        return
    left = [item for item, position in run.at if position < config.length]
    if not left:
        yield _rests(config, state, slot, run)
        return
    for items in {(left[0],), (left[-1],), tuple(left)}:
        id_ = run.number * _PER_RUN + run.begun
        at = dict(run.at)
        early = config.mode == "early"
        # In early mode the log knows nothing of an item before its first step.
        before = at if config.feed else {i: state.log.positions.get(i) or 0 for i in items}
        moves = {i: (None if early and not before[i] else before[i], at[i] + 1) for i in items}
        content = [[run.life, item, at[item]] for item in items] if config.other else None
        step = Step(UUID(int=id_), STREAM, moves, _unseen(run) if early else (), content=content)
        claim = {ALL: None} if early else {}
        life = Life("log", run.life)
        update = Update(run=_name(run.number), life=life, decided=_decided(run), claim=claim, step=step)
        turn = config.turn(update, commit=not early, deciding=frozenset() if early else None, see=not early)
        written = () if early else tuple((run.life, item, at[item]) for item in items)
        after = state._replace(registers=(*state.registers, Register(id_, "O", written)))
        run_after = run._replace(turn=turn, step=step, begun=run.begun + 1, stage="record")
        yield f"run {run.number} begins {id_} with {''.join(items)}", _with(after, slot, run_after)


def _pays(config: Config, state: State, slot: int, run: Run) -> Labelled:
    """Begin the step that writes a part again which is owed."""
    id_ = run.number * _PER_RUN + run.begun
    step = Step(UUID(int=id_), OTHER, {owed_item(OTHER): (state.log.owed[OTHER], None)})
    update = Update(run=_name(run.number), life=Life("log", run.life), claim={ALL: None}, step=step)
    turn = config.turn(update, deciding=frozenset(), see=False)
    after = state._replace(registers=(*state.registers, Register(id_, "O", (), OTHER)))
    return f"run {run.number} begins {id_} for what is owed", _with(
        after, slot, run._replace(turn=turn, step=step, begun=run.begun + 1, stage="record")
    )


def _writes(config: Config, state: State, slot: int, run: Run) -> Labelled:
    """In early mode: write the recorded transaction, which may have ended."""
    assert run.step is not None
    register = _register(state, run.step.transaction.int)
    if register.letter != "O":
        return f"run {run.number} finds {register.id} ended", _with(state, slot, _again(run))
    if run.step.stream == OTHER:
        (content,) = (tuple(map(tuple, before)) for before, _ in run.step.moves.values())
    else:
        feed = dict(run.at)
        content = tuple((run.life, item, feed[item]) for item in run.step.moves)
    after = _put(state, register._replace(content=content))
    label = f"run {run.number} writes {register.id}"
    if config.other and run.step.stream == STREAM:
        id_ = run.number * _PER_RUN + run.begun
        step = replace(run.step, parts=(Named(OTHER, UUID(int=id_)),))
        update = Update(run=_name(run.number), life=Life("log", run.life), claim={ALL: None}, step=step)
        turn = config.turn(update, deciding=frozenset(), see=False)
        after = after._replace(registers=(*after.registers, Register(id_, "O", content, OTHER)))
        run = run._replace(turn=turn, step=step, begun=run.begun + 1, stage="parts")
        return f"{label} and {id_}", _with(after, slot, run)
    return label, _with(after, slot, run._replace(turn=_committing(config, run), stage="commit"))


def _committing(config: Config, run: Run) -> Turn:
    assert run.step is not None
    update = Update(run=_name(run.number), life=Life("log", run.life), step=run.step)
    return config.turn(update, see=False, unseen=run.step.after).committing()


def _rests(config: Config, state: State, slot: int, run: Run) -> Labelled:
    """Record the outcome of the last step, then end; or claim what is left."""
    if run.decided >= 0:
        claim = {ALL: None} if config.mode == "early" else {}
        update = Update(run=_name(run.number), life=Life("log", run.life), decided=_decided(run), claim=claim)
        deciding = frozenset() if config.mode == "early" else None
        turn = config.turn(update, deciding=deciding, unseen=_unseen(run))
        return f"run {run.number} rests", _with(state, slot, run._replace(turn=turn, stage="rest"))
    return f"run {run.number} ends", _with(state, slot, None)


def _again(run: Run) -> Run:
    return run._replace(stage="claim", turn=None, step=None, decided=-1, at=())


def _asks(config: Config, state: State, slot: int, run: Run) -> Iterator[Labelled]:
    assert run.turn is not None
    request = run.turn.request()
    label = f"run {run.number} {run.turn.phase.name.lower()}: "
    if request.ask is Ask.READ:
        yield label + f"revision {state.length}", _answered(config, state, slot, run, (state.length, state.log))
    elif request.ask is Ask.STATUS:
        found = {named.id: _status(state, named.id.int) for named in request.transactions}
        yield label + str([s.name for s in found.values()]), _answered(config, state, slot, run, found)
    else:
        call = _calls(run)[0]
        after, found = _effect(config, state, call)
        if request.ask is Ask.APPEND:
            yield label + str(found), _answered(config, after, slot, run, found)
            return
        answers = (*run.answers, (UUID(int=call.transaction), found))
        label += f"{call.transaction} {found.name}"
        if len(answers) < len(request.transactions):
            yield label, _with(after, slot, run._replace(answers=answers))
        else:
            yield label, _answered(config, after, slot, run, dict(answers))


def _calls(run: Run) -> list[Call]:
    """Return what the run asks for and that has an effect."""
    if run.turn is None:
        return []
    request: Request = run.turn.request()
    if request.ask is Ask.APPEND:
        return [Call(Ask.APPEND, update=request.update, revision=request.revision)]
    if request.ask in (Ask.ABORT, Ask.COMMIT):
        done = {id_ for id_, _ in run.answers}
        return [Call(request.ask, named.id.int) for named in request.transactions if named.id not in done]
    return []


def _answered(config: Config, state: State, slot: int, run: Run, answer: Any) -> State:
    assert run.turn is not None
    turn = run.turn.answered(answer)
    run = run._replace(turn=turn, answers=())
    return _ended(config, state, slot, run) if turn.ended else _with(state, slot, run)


def _ended(config: Config, state: State, slot: int, run: Run) -> State:
    assert run.turn is not None
    outcome, update = run.turn.outcome, run.turn.update
    if outcome is Outcome.UNDECIDED:
        return state._replace(reported=outcome, runs=(None, None), flying=())
    if outcome is Outcome.OWED:
        return _with(state, slot, _owing(config, run))
    if run.stage == "owed":
        assert run.step is not None
        mine = run.turn.recorded(run.step.transaction) is not None
        return _with(state, slot, _moved(run, run.step)._replace(decided=-1) if mine else _again(run))
    if outcome in (Outcome.LOST, Outcome.BUSY, Outcome.ABORTED):
        return _with(state, slot, _again(run) if config.mode == "early" else None)
    run = run._replace(turn=None)
    if outcome is Outcome.COMMITTED:
        assert update.step is not None
        return _with(state, slot, _moved(run, update.step)._replace(before=transactions(update.step)))
    if run.stage == "parts":
        return _with(state, slot, run._replace(turn=_committing(config, run), stage="commit"))
    if update.step is not None:  # recorded in early mode
        return _with(state, slot, run._replace(stage="write", decided=-1))
    if run.stage == "claim":
        claimed = config.items if ALL in update.claim else tuple(update.claim)
        at = tuple((item, state.log.positions.get(item) or 0) for item in claimed)
        return _with(state, slot, run._replace(stage="moves", at=at, decided=-1))
    return _with(state, slot, None if _complete(config, state) else _again(run))


def _owing(config: Config, run: Run) -> Run:
    """Return the run that records the outcome of its step, with a part still owed."""
    assert run.step is not None
    update = Update(run=_name(run.number), life=Life("log", run.life), claim={ALL: None})
    turn = config.turn(update, deciding=frozenset({run.step.transaction}))
    return run._replace(stage="owed", turn=turn)


def _moved(run: Run, step: Step) -> Run:
    """Return the run after its committed step."""
    moved = {item: after for item, (_, after) in step.moves.items()}
    at = tuple((item, moved.get(item, position)) for item, position in run.at)
    return run._replace(stage="moves", turn=None, at=at, decided=step.transaction.int, step=None)


def _decided(run: Run) -> dict[UUID, bool]:
    return {UUID(int=run.decided): True} if run.decided >= 0 else {}


def _unseen(run: Run) -> tuple[Named, ...]:
    return run.before if run.decided >= 0 else ()


def _fails(config: Config, state: State, slot: int) -> Iterator[Labelled]:
    run, budget = state.runs[slot], state.budget
    assert run is not None
    where = run.turn.phase.name if run.turn is not None else run.stage
    calls = _calls(run)
    if budget.crash:
        dead = _with(state, slot, None)._replace(budget=budget._replace(crash=budget.crash - 1))
        yield f"run {run.number} crashes at {where}", dead
        for call in calls:
            yield f"run {run.number} crashes at {where}, a call under way", _flies(dead, call)
    if budget.unknown:
        for call in calls:
            after = state._replace(budget=budget._replace(unknown=budget.unknown - 1))
            yield f"run {run.number} {call.ask.value}: no answer, asks again", _flies(after, call)
            if call.ask is Ask.APPEND:  # it took effect, and the answer was lost
                done, _ = _effect(config, after, call)
                yield f"run {run.number} append: done, no answer, reads", _reads(done, slot, run)


def _reads(state: State, slot: int, run: Run) -> State:
    assert run.turn is not None
    return _with(state, slot, run._replace(turn=replace(run.turn, phase=Phase.READ)))


# ---- effects ---------------------------------------------------------------------------------------------------------


def _effect(config: Config, state: State, call: Call) -> tuple[State, Any]:
    if call.ask is Ask.APPEND:
        if config.conditional and call.revision != state.length:
            return state, False
        assert call.update is not None
        return state._replace(log=state.log.copy().apply(call.update), length=state.length + 1), True
    register = _register(state, call.transaction)
    if register.letter == "O":
        state = _put(state, register._replace(letter="D" if call.ask is Ask.COMMIT else "A"))
    return state, _status(state, call.transaction)


def _flies(state: State, call: Call) -> State:
    return state if call in state.flying else state._replace(flying=(*state.flying, call))


def _with(state: State, slot: int, run: Run | None) -> State:
    runs = (run, state.runs[1]) if slot == 0 else (state.runs[0], run)
    return state._replace(runs=runs)


def _put(state: State, register: Register) -> State:
    return state._replace(registers=tuple(register if r.id == register.id else r for r in state.registers))


def _register(state: State, id_: int) -> Register:
    return next(register for register in state.registers if register.id == id_)


def _status(state: State, id_: int) -> Status:
    return _STATUSES.get(_register(state, id_).letter, Status.UNKNOWN)


def _name(number: int) -> str:
    return f"run-{number}"


def _complete(config: Config, state: State) -> bool:
    log = state.log
    done = all(log.positions.get(item) == config.length for item in config.items)
    return log.life.generation == state.life and done and not log.steps and not log.owed


# ---- what must hold --------------------------------------------------------------------------------------------------


def violation(config: Config, state: State) -> str | None:
    """Return what is wrong with a state; its first word is the kind."""
    committed = Counter((r.stream, at) for r in state.registers if r.letter in "DCc" for at in r.content)
    visible = {(r.stream, at) for r in state.registers if r.letter in "Cc" for at in r.content}
    if twice := [at for at, count in committed.items() if count > 1]:
        return f"DUPLICATE {twice}"
    for stream, (life, item, position) in visible:
        if position and (stream, (life, item, position - 1)) not in visible:
            return f"ORDER: {item}{position} is visible before what comes before it in {stream}"
    life = state.log.life.generation
    owed = [(stream, tuple(at)) for stream, content in state.log.owed.items() for at in content]
    for item in config.items:
        position = state.log.positions.get(item)
        for stream in (STREAM, OTHER) if config.other else (STREAM,):
            known = {*committed, *owed}
            if lost := [at for at in range(position or 0) if (stream, (life, item, at)) not in known]:
                return f"LOSS: the log has {item} at {position}, and {lost} are not committed in {stream}"
    if state.reported and not config.forget:
        return "REPORT without anything forgotten"
    return None


def is_end(config: Config, state: State, followed: bool) -> bool:
    """Return whether everything is done, or an operator must decide."""
    return bool(state.reported) or (_complete(config, state) and not any(state.runs))


def outcome(state: State) -> str | None:
    """Return the name of the outcome that was reported to an operator."""
    return state.reported.name if state.reported else None


# ---- which states are the same ---------------------------------------------------------------------------------------


def _ids_of(update: Update | None) -> set[int]:
    if update is None:
        return set()
    return {id_.int for id_ in update.decided} | _ids_in(update.step)


def _ids_in(step: Step | None) -> set[int]:
    return set() if step is None else {named.id.int for named in (*transactions(step), *step.after)}


def _relevant(state: State) -> set[int]:
    """Return the transactions that a run can still ask about."""
    ids: set[int] = set()
    for step in state.log.steps.values():
        ids |= _ids_in(step)
    for run in state.runs:
        if run is None:
            continue
        ids |= {run.decided} - {-1}
        ids |= _ids_in(run.step) | {named.id.int for named in _unseen(run)}
        if run.turn is not None:
            ids |= _ids_of(run.turn.update) | {named.id.int for named in run.turn.unseen}
            ids |= {id_.int for id_ in run.turn.incomplete}
            for step in run.turn.in_the_way:
                ids |= _ids_in(step)
    for call in state.flying:
        if call.ask is Ask.APPEND and call.revision == state.length:
            ids |= _ids_of(call.update)
        elif call.ask is not Ask.APPEND:
            ids.add(call.transaction)
    return ids


def canonical(config: Config) -> Callable[[State], Any]:
    """Return the key that equal situations share: runs by their slot, transactions by their order."""

    def key(state: State) -> Any:
        relevant = sorted(_relevant(state))
        order = {id_: position for position, id_ in enumerate(relevant)}
        slots = {_name(run.number): slot for slot, run in enumerate(state.runs) if run is not None}

        def ids(some: Iterable[UUID]) -> tuple[int, ...]:
            return tuple(order.get(id_.int, -1) for id_ in some)

        def step_key(step: Step | None) -> Any:
            if step is None:
                return ()
            after, parts = (ids(named.id for named in some) for some in (step.after, step.parts))
            return order.get(step.transaction.int, -1), tuple(sorted(map(repr, step.moves.items()))), after, parts

        def update_key(update: Update) -> Any:
            decided = tuple(sorted((order.get(i.int, -1), c) for i, c in update.decided.items()))
            claim = tuple(sorted(update.claim))
            owed = tuple(sorted((order.get(i.int, -1), streams) for i, streams in update.owed.items()))
            return slots.get(update.run, -1), update.life.generation, decided, owed, claim, step_key(update.step)

        def run_key(run: Run | None) -> Any:
            if run is None:
                return ()
            before = ids(named.id for named in _unseen(run))
            head = run.life, run.stage, run.at, step_key(run.step), order.get(run.decided, -1), before
            if run.turn is None:
                return head
            turn = run.turn
            return (
                *head,
                turn.phase.value,
                turn.revision == state.length,
                update_key(turn.update),
                tuple(map(step_key, turn.in_the_way)),
                ids(named.id for named in turn.unseen),
                tuple(sorted(ids(turn.incomplete))),
                None if turn.deciding is None else tuple(sorted(ids(turn.deciding))),
                tuple((order.get(i.int, -1), s.value) for i, s in run.answers),
            )

        flying = []
        for call in state.flying:
            if call.ask is Ask.APPEND:
                if call.revision == state.length and call.update is not None:
                    flying.append(("append", update_key(call.update)))
            elif _register(state, call.transaction).letter == "O":
                flying.append((call.ask.value, order[call.transaction]))
        log = state.log
        others = sorted(
            (r.letter.upper(), r.content, r.stream) for r in state.registers if r.id not in order and r.letter in "DCc"
        )
        return (
            log.life.generation,
            tuple(sorted((item, repr(at or 0)) for item, at in log.positions.items())),
            tuple(sorted((unit, slots.get(owner, -1)) for unit, owner in log.owners.items())),
            tuple(sorted((slots.get(run, -1), step_key(step)) for run, step in log.steps.items())),
            tuple(map(run_key, state.runs)),
            tuple(sorted(map(repr, flying))),
            tuple((order[r.id], r.letter, r.content, r.stream) for r in state.registers if r.id in order),
            tuple(others),
            state.life,
            tuple(state.budget),
            state.reported.value if state.reported else "",
        )

    return key
