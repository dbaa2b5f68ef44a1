"""Checks of the model of exactly-once batches: the protocol's invariants at calls, and the results that users see."""

from __future__ import annotations

from pravega_connector.exactly_once.batch_commit import Ask, Committed, Prepared, TransactionId
from tools.model.world_state import (
    Call,
    Config,
    Cut,
    State,
    is_deleted,
    missed,
    register,
    rows_of,
    stream_of,
    transactions,
    written,
)


class ViolationError(AssertionError):
    """An invariant of the protocol does not hold at a call."""


def check_call(state: State, call: Call) -> None:
    """Check two invariants: only named transactions are committed, and the pilot decides before the others."""
    id_ = call.transaction
    if call.ask is Ask.COMMIT and id_ not in state.named:
        raise ViolationError(f"{id_} is committed and in no entry")
    for app in state.apps:
        if app.open is not None and id_ in [part.transaction for part in app.open.parts[1:]]:
            _check_decided(state, call, app.open)


def _check_decided(state: State, call: Call, prepared: Prepared) -> None:
    pilot = prepared.parts[0].transaction
    letter = register(state, pilot).upper()
    gone = is_deleted(state, stream_of(pilot))
    if letter not in ("DC" if call.ask is Ask.COMMIT else "A") and not gone:
        raise ViolationError(f"{call.ask.value} of {call.transaction} while its pilot is {letter}")


def check_append(state: State, query: int, entry: Prepared | Committed) -> None:
    """Check which entry may follow which."""
    app, before = state.apps[query], state.apps[query].open
    if entry.batch <= app.last or (before is not None and entry.batch != before.batch):
        raise ViolationError(f"{entry} after {app}")
    if before is None:
        earlier = [a for a in state.attempts if a.query == query and a.batch < entry.batch and "D" in a.registers]
        if earlier and isinstance(entry, Prepared):
            raise ViolationError(f"{entry} while an earlier batch is not visible: {earlier}")
        return
    if _is_lost(state, before):
        if isinstance(entry, Prepared):
            _check_lost_are_not_named(state, before, entry)
        return
    ids = [part.transaction for part in before.parts]
    if isinstance(entry, Committed):
        if any(_is_aborted(state, id_) for id_ in ids):
            raise ViolationError(f"COMMITTED of a set that is not: {before}")
        return
    _check_lost_are_not_named(state, before, entry)
    kept = {id_ for id_ in ids if not _is_aborted(state, id_) and not is_deleted(state, stream_of(id_))}
    if not kept.issubset(part.transaction for part in entry.parts) or entry.content != before.content:
        raise ViolationError(f"{entry} replaces what is not lost of {before}")


def _is_lost(state: State, prepared: Prepared) -> bool:
    """Return True if nothing of a set can become visible: its pilot is aborted, or deleted and all others ended."""
    pilot, *others = (part.transaction for part in prepared.parts)
    if is_deleted(state, stream_of(pilot)):
        return all(register(state, id_).upper() == "A" or is_deleted(state, stream_of(id_)) for id_ in others)
    return register(state, pilot).upper() == "A"


def _is_aborted(state: State, id_: TransactionId) -> bool:
    """Return True if a transaction was aborted, in a stream that exists."""
    return register(state, id_).upper() == "A" and not is_deleted(state, stream_of(id_))


def _is_sealed(state: State, id_: TransactionId) -> bool:
    number, _ = stream_of(id_)
    return state.streams[number].sealed


def _check_lost_are_not_named(state: State, before: Prepared, entry: Prepared) -> None:
    """Check that an entry names no aborted transaction of the one before.

    A stream may be sealed between the look at its transactions and the append, which no ping prevents. The set is then
    repaired again, or reported.
    """
    both = {part.transaction for part in before.parts} & {part.transaction for part in entry.parts}
    if any(_is_aborted(state, id_) and not _is_sealed(state, id_) for id_ in both):
        raise ViolationError(f"{entry} names what is lost of {before}")


# ---- results in every state ------------------------------------------------------------------------------------------


def violation(config: Config, state: State) -> str | None:
    """Return the first violation in a state; its first word is the kind."""
    if state.reported:
        return f"{state.reported.name}: reported though every driver lived" if is_whole(config) else None
    if state.cut is not None and state.cut.returned and (batch := _divided(config, state, state.cut)):
        return f"DIVIDED: a part of batch {batch} is before the cut"
    for query in range(config.queries):
        if (found := _of_query(config, state, query)) is not None:
            return found
    return None


def _divided(config: Config, state: State, cut: Cut) -> tuple[int, int] | None:
    """Return query and batch with only a part before a returned cut."""
    for attempt in state.attempts:
        ids = {id_ for id_ in transactions(config, attempt) if stream_of(id_)[0] in config.cut}
        before = ids & frozenset[TransactionId]().union(*cut.tails)
        if before and before != ids:
            return attempt.query, attempt.batch
    return None


def _of_query(config: Config, state: State, query: int) -> str | None:
    complete = True
    for batch in range(config.batches):
        committed = rows_of(config, state, query, batch, "DCc")
        visible = rows_of(config, state, query, batch, "Cc")
        if any(count > 1 for count in committed.values()):
            return f"DUPLICATE in batch {batch} of query {query}: {dict(committed)}"
        seen = missed(state, query, batch, visible.elements())
        if seen and not complete:
            return f"ORDER: batch {batch} is visible before batch {batch - 1} is complete"
        rows, possible = missed(state, query, batch, committed.elements()), wanted(config, state, query, batch)
        complete = seen in possible and visible == committed
        if state.spark[query] > batch and rows not in possible:
            return f"LOSS: Spark's log has batch {batch} of query {query}, committed of it is {dict(committed)}"
        for told_query, told_batch, told in state.told:
            if (told_query, told_batch) == (query, batch) and missed(state, query, batch, told) != rows:
                return f"LOSS: of batch {batch} {told} were reported as committed, and it is {rows!r}"
    return None


def wanted(config: Config, state: State, query: int, batch: int) -> set[tuple[str, ...]]:
    """Return the possible rows of a batch, by the attempts so far."""
    attempts = [a for a in state.attempts if (a.query, a.batch) == (query, batch)]
    return {missed(state, query, batch, written(config, attempt)) for attempt in attempts}


def is_whole(config: Config) -> bool:
    """Return True if nothing but time goes wrong, so that no operator is needed."""
    faults = config.crash or config.expiry or config.unknown or config.forget or config.seal
    return bool(config.leases) and not faults
