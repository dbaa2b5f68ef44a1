"""State of work in steps: positions of items, owners of units, and the undecided steps.

The state results from a log of updates. Each update is written conditionally by one run, in one life of one program.
Initial value and updates are JSON objects in a Pravega state synchronizer, so that Java clients can take part.

An *item* has a position: a segment and an offset, or a file and its records. A *unit* is the object of a claim: one
item, or :data:`ALL` items. Positions are JSON values, which this module does not interpret.

A step may write to several streams, with one transaction in each. The first one decides: once it is committed, the
others are committed too. If the lease of one of them has ended before, its stream is *owed* this part of the step. What
is owed is a separate item: its position is the content of the step, and the step that writes it again ends it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final, NamedTuple

from pravega_connector.errors import StepsStateError
from pravega_serde.errors import DeserializationError

_VERSION: Final = 1
#: Unit of all items, including later ones.
ALL: Final = "*"

Position = Any
_OWED: Final = "owed "


class Named(NamedTuple):
    """Transaction and its stream, as ``scope/stream``."""

    stream: str
    id: uuid.UUID


class Life(NamedTuple):
    """Owner of the log, and the number of its life.

    A later life begins without the positions of the earlier one.
    """

    id: str
    generation: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """Recorded transaction, and the items that its commit moves."""

    transaction: uuid.UUID
    stream: str
    """Stream of the transaction, as ``scope/stream``."""
    moves: Mapping[str, tuple[Position, Position]]
    """Positions of each item before and after the step: None before the first one, or after the step that ends it."""
    after: tuple[Named, ...] = ()
    """Committed transactions, one of a stream, that may not be visible yet. This one is committed after them."""
    parts: tuple[Named, ...] = ()
    """Transactions of other streams, one of a stream, that are committed if this one is."""
    content: Any = None
    """What to read to write a part again, as JSON."""
    note: Mapping[str, Any] = field(default_factory=dict)
    """Information on the program that recorded it, such as host and process."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form within an update."""
        value: dict[str, Any] = {
            "transaction": str(self.transaction),
            "stream": self.stream,
            "moves": {item: list(move) for item, move in self.moves.items()},
        }
        if after := [str(named.id) for named in self.after if named.stream == self.stream]:
            value["after"] = after
        elsewhere = tuple(named for named in self.after if named.stream != self.stream)
        for name, transactions in (("after_in", elsewhere), ("parts", self.parts)):
            if transactions:
                value[name] = {named.stream: str(named.id) for named in transactions}
        if self.content is not None:
            value["content"] = self.content
        return value | ({"note": dict(self.note)} if self.note else {})

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Step:
        """Parse the JSON form."""
        after = tuple(Named(str(value["stream"]), uuid.UUID(id_)) for id_ in value.get("after", ()))
        return cls(
            uuid.UUID(value["transaction"]),
            str(value["stream"]),
            {item: (before, after) for item, (before, after) in value["moves"].items()},
            after + _transactions(value.get("after_in", {})),
            _transactions(value.get("parts", {})),
            value.get("content"),
            dict(value.get("note", {})),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Changes that one run writes at once."""

    run: str
    life: Life
    decided: Mapping[uuid.UUID, bool] = field(default_factory=dict)
    """Outcomes of recorded transactions: True if committed."""
    owed: Mapping[uuid.UUID, tuple[str, ...]] = field(default_factory=dict)
    """Streams whose part of a step in ``decided`` was aborted, although the step is committed."""
    claim: Mapping[str, Position] = field(default_factory=dict)
    """Units that the run owns from now on, with positions for items that the log does not know yet."""
    settled: Mapping[str, tuple[Position, Position]] = field(default_factory=dict)
    """Positions before and after, of items that move without output and so without a transaction."""
    forget: tuple[str, ...] = ()
    """Finished items, which the log drops."""
    step: Step | None = None
    note: Mapping[str, Any] = field(default_factory=dict)
    """Information of the program for the whole log, such as a schema. Entries replace those of the same name."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, without empty parts."""
        value: dict[str, Any] = {"run": self.run, "life": list(self.life)}
        if self.decided:
            value["decided"] = {str(transaction): committed for transaction, committed in self.decided.items()}
        if self.owed:
            value["owed"] = {str(transaction): list(streams) for transaction, streams in self.owed.items()}
        for name in ("claim", "note"):
            if part := getattr(self, name):
                value[name] = dict(part)
        if self.settled:
            value["settled"] = {item: list(move) for item, move in self.settled.items()}
        if self.forget:
            value["forget"] = list(self.forget)
        if self.step is not None:
            value["step"] = self.step.to_json()
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Update:
        """Parse the JSON form."""
        return cls(
            run=str(value["run"]),
            life=_life(value["life"]),
            decided={uuid.UUID(id_): bool(committed) for id_, committed in value.get("decided", {}).items()},
            owed={uuid.UUID(id_): tuple(map(str, streams)) for id_, streams in value.get("owed", {}).items()},
            claim=dict(value.get("claim", {})),
            settled={item: (before, after) for item, (before, after) in value.get("settled", {}).items()},
            forget=tuple(value.get("forget", ())),
            step=Step.from_json(value["step"]) if "step" in value else None,
            note=dict(value.get("note", {})),
        )


@dataclass(slots=True)
class StepsState:
    """State of the log. :meth:`apply` changes it in place. Applying an update twice has the effect of once."""

    life: Life
    former: frozenset[str] = frozenset()
    """Earlier owners of the log's name. Their runs may write late."""
    positions: dict[str, Position] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    steps: dict[str, Step] = field(default_factory=dict)
    """Undecided step of each run."""
    note: dict[str, Any] = field(default_factory=dict)

    def is_over(self, life: Life) -> bool:
        """Return True if the log knows that a life has ended."""
        return life.id in self.former or (life.id == self.life.id and life.generation < self.life.generation)

    def owner(self, item: str) -> str | None:
        """Return the run that owns an item."""
        return self.owners.get(item, self.owners.get(ALL))

    @property
    def owed(self) -> dict[str, Any]:
        """Streams to which a part of a committed step must be written again, each with the content of the step."""
        return {item[len(_OWED) :]: content for item, content in self.positions.items() if is_owed(item)}

    def copy(self) -> StepsState:
        """Return an independent copy."""
        return replace(
            self,
            positions=dict(self.positions),
            owners=dict(self.owners),
            steps=dict(self.steps),
            note=dict(self.note),
        )

    def apply(self, update: Update) -> StepsState:
        """Apply an update, and return the state itself."""
        if update.life != self.life:
            self._begin(update.life)
        # In this order, an update that was interrupted can be applied again.
        for run, step in list(self.steps.items()):
            if (committed := update.decided.get(step.transaction)) is None:
                continue
            if committed:
                self.positions.update({item: after for item, (_, after) in step.moves.items()})
                for item in [item for item, (_, after) in step.moves.items() if after is None]:
                    del self.positions[item]
                for stream in update.owed.get(step.transaction, ()):
                    self.positions[owed_item(stream)] = step.content
            del self.steps[run]
        if ALL in update.claim:
            self.owners = {ALL: update.run}
        else:
            self.owners.update(dict.fromkeys(update.claim, update.run))
            for item, position in update.claim.items():
                self.positions.setdefault(item, position)
        self.positions.update({item: after for item, (_, after) in update.settled.items()})
        for item in update.forget:
            self.positions.pop(item, None)
            self.owners.pop(item, None)
        self.note.update(update.note)
        if update.step is not None:
            self.steps[update.run] = update.step
        return self

    def _begin(self, life: Life) -> None:
        if life.id != self.life.id:
            self.former |= {self.life.id}
        self.life, self.positions, self.owners, self.steps, self.note = life, {}, {}, {}, {}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of an initial value, with the items by folder, because the folders' names repeat."""
        folders: dict[str, dict[str, Position]] = {}
        for item, position in self.positions.items():
            folder, slash, name = item.rpartition("/")
            folders.setdefault(folder + slash, {})[name] = position
        return {
            "version": _VERSION,
            "life": list(self.life),
            "former": sorted(self.former),
            "positions": folders,
            "owners": self.owners,
            "steps": {run: step.to_json() for run, step in self.steps.items()},
            "note": self.note,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StepsState:
        """Parse an initial value. Raises StepsStateError for the form of another release."""
        if value.get("version") != _VERSION:
            raise StepsStateError(f"the state has version {value.get('version')!r}; this release reads {_VERSION}")
        return cls(
            _life(value["life"]),
            frozenset(map(str, value["former"])),
            {folder + name: at for folder, names in value["positions"].items() for name, at in names.items()},
            {str(unit): str(run) for unit, run in value["owners"].items()},
            {str(run): Step.from_json(step) for run, step in value["steps"].items()},
            dict(value["note"]),
        )


def _transactions(value: Mapping[str, str]) -> tuple[Named, ...]:
    return tuple(Named(str(stream), uuid.UUID(id_)) for stream, id_ in value.items())


def is_owed(item: str) -> bool:
    """Return True for the item of a part that must be written again."""
    return item.startswith(_OWED)


def owed_item(stream: str) -> str:
    """Return the item for a part of a step that must be written to a stream again."""
    return _OWED + stream


def _life(value: Any) -> Life:
    id_, generation = value
    return Life(str(id_), int(generation))


class StepsJson:
    """Serializer of initial values or updates, as UTF-8 JSON."""

    def __init__(self, kind: type[StepsState] | type[Update]) -> None:
        self._kind = kind

    def serialize(self, value: Any, /) -> bytes:
        """Return the JSON text without unnecessary spaces."""
        return json.dumps(value.to_json(), ensure_ascii=False, separators=(",", ":")).encode()

    def deserialize(self, data: bytes, /) -> Any:
        """Parse the JSON text. Raises DeserializationError, StepsStateError."""
        try:
            return self._kind.from_json(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DeserializationError(
                f"invalid entry of a log of steps ({type(error).__name__}: {error}): {data[:200]!r}"
            ) from None


# ---- checks of an update ---------------------------------------------------------------------------------------------


class Verdict(Enum):
    """Result of checking an update against a state."""

    WRITE = "the update may be appended"
    DONE = "its step is recorded already"
    UNDECIDED = "a recorded step must be decided first"
    LOST = "another run has taken over, or the log has begun a later life"


def undecided(state: StepsState, update: Update) -> list[Step]:
    """Return the recorded steps that must be decided before the update may be appended.

    These are the run's own step, steps on the units that it claims, and all steps if a later life begins.
    """
    pending = []
    for run, step in state.steps.items():
        if step.transaction in update.decided or _is_its_record(update, run, step):
            continue
        mine = run == update.run or ALL in update.claim or not update.claim.keys().isdisjoint(step.moves)
        if mine or update.life != state.life:
            pending.append(step)
    return pending


def _is_its_record(update: Update, run: str, step: Step) -> bool:
    """Return True if the update has a recorded step, to which it may add parts."""
    return update.step is not None and run == update.run and step.transaction == update.step.transaction


def check(state: StepsState, update: Update) -> tuple[Verdict, str]:
    """Return the verdict on an update after a state, and the reason if it is refused."""
    if state.is_over(update.life):
        return Verdict.LOST, "its log has begun a later life"
    if update.step is not None and state.steps.get(update.run) == update.step:
        return Verdict.DONE, ""  # the answer to the append was lost
    if undecided(state, update):
        return Verdict.UNDECIDED, ""
    moves = update.step.moves if update.step is not None else {}
    for item in [*moves, *update.settled]:
        owner = state.owner(item) if update.life == state.life else None
        if item not in update.claim and ALL not in update.claim and owner != update.run:
            return Verdict.LOST, f"run {owner} owns {item}"
    # Settled items move after the decided steps, and the new step after both.
    positions = _decided_positions(state, update, [*moves, *update.settled])
    for changes in (update.settled, moves):
        for item, (before, after) in changes.items():
            if positions[item] != before:
                return Verdict.LOST, f"{item} is at {positions[item]!r} in the log, not at {before!r}"
            positions[item] = after
    return Verdict.WRITE, ""


def _decided_positions(state: StepsState, update: Update, items: Iterable[str]) -> dict[str, Position]:
    """Return the positions of items once the update's decisions are applied."""
    known = {} if update.life != state.life else state.positions
    found = {item: known.get(item, update.claim.get(item)) for item in items}
    if update.life == state.life:
        for step in state.steps.values():
            if update.decided.get(step.transaction):
                found |= {item: after for item, (_, after) in step.moves.items() if item in found}
    return found
