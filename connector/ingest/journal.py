"""State of an ingestion: how far each source is in the stream, and the transaction that is at work.

A state synchronizer keeps it. Initial value and updates are JSON objects, in UTF-8; docs/ingest.md has their form,
which Java clients can read and write.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from pravega_serde.errors import DeserializationError

from ..client import MAX_EVENT_SIZE, STATE_TAG, PravegaClient, StateSynchronizer, StreamName
from ..errors import IngestStateError, OutcomeUnknownError

__all__ = ["IngestState", "Journal", "Json", "Owner", "Piece", "Progress", "Step", "Update", "state_name"]

_VERSION: Final = 1
_COMMITTED: Final = "committed"
_ABORTED: Final = "aborted"
# Bytes of updates that make one initial value instead of them worth writing, and steps between two looks at that.
_COMPACT_AFTER: Final = 4 << 20
_LOOK_EVERY: Final = 200


class Json:
    """Objects as UTF-8 JSON."""

    def serialize(self, value: Mapping[str, Any], /) -> bytes:
        """The text, without needless spaces."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def deserialize(self, data: bytes, /) -> dict[str, Any]:
        """The object. Raises DeserializationError."""
        try:
            value = json.loads(data)
        except ValueError as error:
            raise DeserializationError(f"invalid JSON: {error}") from None
        if not isinstance(value, dict):
            raise DeserializationError(f"this is a JSON {type(value).__name__}, not an object")
        return value


@dataclass(frozen=True, slots=True)
class Owner:
    """A run of an ingester: who it is, and where to look whether it is alive."""

    run: str
    host: str
    pid: int
    since: int

    def to_json(self) -> dict[str, Any]:
        """JSON form within an update."""
        return {"run": self.run, "host": self.host, "pid": self.pid, "since": self.since}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Parse the JSON form of an update. Another client need not tell more than its run."""
        return cls(str(value["run"]), str(value.get("host", "")), int(value.get("pid", 0)), int(value.get("since", 0)))


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one source, from ``offset`` to before ``end``; all that follow if ``end`` is None."""

    source: str
    offset: int
    end: int | None
    mark: str

    def to_json(self) -> dict[str, Any]:
        """JSON form within an update."""
        return {"source": self.source, "offset": self.offset, "end": self.end, "mark": self.mark}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Parse the JSON form of an update."""
        end = value["end"]
        return cls(str(value["source"]), int(value["offset"]), None if end is None else int(end), str(value["mark"]))


@dataclass(frozen=True, slots=True)
class Step:
    """One transaction, and what it is for. It is recorded before anything is written to it."""

    transaction: uuid.UUID
    owner: Owner
    lease: float
    pieces: tuple[Piece, ...]
    after: uuid.UUID | None = None
    """A committed transaction that may not be visible yet: until it is, no other one is to be committed."""

    def to_json(self) -> dict[str, Any]:
        """JSON form within an update."""
        value = {
            "transaction": str(self.transaction),
            "owner": self.owner.to_json(),
            "lease": self.lease,
            "pieces": [piece.to_json() for piece in self.pieces],
        }
        return value if self.after is None else value | {"after": str(self.after)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Parse the JSON form of an update. Those of earlier releases have no ``after``."""
        after = value.get("after")
        return cls(
            uuid.UUID(value["transaction"]),
            Owner.from_json(value["owner"]),
            float(value["lease"]),
            tuple(Piece.from_json(piece) for piece in value["pieces"]),
            None if after is None else uuid.UUID(after),
        )


@dataclass(slots=True)
class Progress:
    """Progress of one source into the stream."""

    mark: str
    offset: int
    """Records that are in the stream; -1 for all of an unknown number."""
    finished: bool


@dataclass(frozen=True, slots=True)
class Update:
    """End of the previous step, and the next step; None while idle."""

    committed: bool
    """Whether the transaction of the step before is committed; if not it is aborted, or there was none."""
    ended: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Sources that have no more than so many records, all of them in the stream now; and their marks."""
    step: Step | None = None
    schema: str | None = None

    def to_json(self, number: int) -> dict[str, Any]:
        """The update that makes state ``number``."""
        value: dict[str, Any] = {"number": number, "previous": _COMMITTED if self.committed else _ABORTED}
        if self.ended:
            value["ended"] = {id_: list(known) for id_, known in self.ended.items()}
        if self.schema is not None:
            value["schema"] = self.schema
        return value | {"step": None if self.step is None else self.step.to_json()}


class IngestState:
    """State of an ingestion, changed in place: older states are not needed, and copies of many files are slow."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.number = 0
        self.sources: dict[str, Progress] = {}
        self.step: Step | None = None
        self.schema: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Parse an initial value. Raises IngestStateError."""
        if value.get("version") != _VERSION:
            raise IngestStateError(f"the state has version {value.get('version')!r}; this release reads {_VERSION}")
        with _explained(value):
            state = cls(str(value["target"]))
            state.number, state.schema = int(value["number"]), value.get("schema")
            state.step = None if value.get("step") is None else Step.from_json(value["step"])
            for folder, names in value.get("sources", {}).items():
                for name, (mark, offset, finished) in names.items():
                    state.sources[folder + name] = Progress(str(mark), int(offset), bool(finished))
        return state

    def to_json(self) -> dict[str, Any]:
        """JSON form as an initial value: sources by folders, because their names repeat."""
        folders: dict[str, dict[str, Any]] = {}
        for id_, known in self.sources.items():
            folder, slash, name = id_.rpartition("/")
            folders.setdefault(folder + slash, {})[name] = [known.mark, known.offset, int(known.finished)]
        step = None if self.step is None else self.step.to_json()
        value = {"version": _VERSION, "target": self.target, "number": self.number, "schema": self.schema}
        return value | {"step": step, "sources": folders}

    def apply(self, update: Mapping[str, Any]) -> Self:
        """Take in an update. Raises IngestStateError for one that cannot follow."""
        with _explained(update):
            if update["number"] != self.number + 1:
                raise IngestStateError(f"update {update['number']} cannot follow state {self.number}")
            step = None if update["step"] is None else Step.from_json(update["step"])
            if update["previous"] == _COMMITTED:
                self._advance()
            for id_, (records, mark) in update.get("ended", {}).items():
                self.sources[id_] = Progress(str(mark), int(records), finished=True)
            self.number, self.step = self.number + 1, step
            self.schema = update.get("schema", self.schema)
        return self

    def _advance(self) -> None:
        """The pieces of the open step are in the stream."""
        for piece in self.step.pieces if self.step is not None else ():
            whole = piece.end is None
            self.sources[piece.source] = Progress(piece.mark, -1 if piece.end is None else piece.end, whole)


class _explained:  # noqa: N801 - used like a function
    """Context that explains which entry of a state is invalid."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError)):
            raise IngestStateError(
                f"invalid entry of the state ({type(error).__name__}: {error}): {self._value!r:.200}"
            ) from error


def state_name(target: StreamName, name: str | None = None) -> StreamName:
    """Stream of the state: beside the target, by default with ``-ingest`` behind its name."""
    return StreamName(target.scope, name or f"{target.stream}-ingest")


class Journal:
    """Reader and writer of the state in its stream, which is created if missing."""

    def __init__(self, client: PravegaClient, target: StreamName, name: StreamName) -> None:
        """Raises IngestStateError for the state of another target, AuthenticationError, ConfigError."""
        # Creating takes a right on the whole scope, which using an existing stream does not need.
        if not client.controller.stream_exists(name):
            client.create_stream(name, tags=[STATE_TAG])
        self.name = name
        self._patience = client.health.failover_timeout
        self._looked = 0
        json = Json()
        self._shared: StateSynchronizer[IngestState, dict[str, Any], dict[str, Any]] = client.synchronizer(
            name,
            create=IngestState.from_json,
            apply=lambda state, update: state.apply(update),
            init_serializer=json,
            update_serializer=json,
        )
        try:
            self._shared.initialize(IngestState(str(target)).to_json())
            self._check_target(target)
        except BaseException:
            self.close()
            raise

    def _check_target(self, target: StreamName) -> None:
        if self.state.target != str(target):
            raise IngestStateError(
                f"stream {self.name} keeps the state of {self.state.target}, not of {target}: name another one for it"
            )

    @property
    def state(self) -> IngestState:
        """The state as it was when last looked at."""
        state = self._shared.state
        assert state is not None
        return state

    def fetch(self) -> IngestState:
        """The state as it is now. Raises IngestStateError."""
        self._shared.fetch_updates()
        return self.state

    def record(self, update: Update) -> bool:
        """Make an update. Returns False if another run has made one since the state was last looked at.

        Durable on return. When the answer is lost, the same is asked for until the outcome is known: a step is told
        from others by its transaction. Raises OutcomeUnknownError if that takes too long: it may come yet.
        """
        number, deadline = self.state.number, time.monotonic() + self._patience
        while True:
            try:
                written = self._shared.update_state(lambda state: _next(state, number, update))
                return bool(written) or self._is_ours(update)
            except OutcomeUnknownError:
                if time.monotonic() > deadline:
                    raise

    def compact(self) -> None:
        """Write the whole state as one value if a new run would have much to read, and the value fits."""
        if self.state.number - self._looked < _LOOK_EVERY:
            return
        self._looked = self.state.number
        if self._shared.bytes_since_compaction() > _COMPACT_AFTER:
            self._shared.compact(_fitting)

    def close(self) -> None:
        """Close the connection that writes."""
        self._shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _is_ours(self, update: Update) -> bool:
        """Whether the state's step is the update's: no other run can know its transaction earlier."""
        step = self.state.step
        return None not in (step, update.step) and step.transaction == update.step.transaction  # type: ignore[union-attr]


def _next(state: IngestState, number: int, update: Update) -> list[dict[str, Any]]:
    """The update as the next entry; empty if another run has made one."""
    return [update.to_json(number + 1)] if state.number == number else []


def _fitting(state: IngestState) -> dict[str, Any] | None:
    value = state.to_json()
    return value if len(Json().serialize(value)) < MAX_EVENT_SIZE - 64 else None
