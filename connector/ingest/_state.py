"""What is known of an ingestion: how far each source is in the stream, and the transaction that is at work.

The state is kept by a state synchronizer. Initial value and updates are JSON objects, in UTF-8; docs/ingest.md has
their form, which Java clients can read and write.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from connector.errors import IngestStateError
from pravega_serde.errors import DeserializationError

__all__ = ["IngestState", "Json", "Owner", "Piece", "Progress", "Step", "Update"]

_VERSION: Final = 1
_COMMITTED: Final = "committed"
_ABORTED: Final = "aborted"


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
            raise DeserializationError(f"this is no JSON: {error}") from None
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
        """As it stands in an update."""
        return {"run": self.run, "host": self.host, "pid": self.pid, "since": self.since}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """From an update. Another client need not tell more than its run."""
        return cls(str(value["run"]), str(value.get("host", "")), int(value.get("pid", 0)), int(value.get("since", 0)))


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one source, from ``offset`` to before ``end``; all that follow if ``end`` is None."""

    source: str
    offset: int
    end: int | None
    mark: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in an update."""
        return {"source": self.source, "offset": self.offset, "end": self.end, "mark": self.mark}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """From an update."""
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
        """As it stands in an update."""
        value = {
            "transaction": str(self.transaction),
            "owner": self.owner.to_json(),
            "lease": self.lease,
            "pieces": [piece.to_json() for piece in self.pieces],
        }
        return value if self.after is None else value | {"after": str(self.after)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """From an update. Those of earlier releases have no ``after``."""
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
    """How far one source is in the stream."""

    mark: str
    offset: int
    """Records that are in the stream; -1 for all, where nobody knows how many those are."""
    finished: bool


@dataclass(frozen=True, slots=True)
class Update:
    """What became of the step before, and the next one; None when there is none for now."""

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
    """The state. It is changed in place: nobody keeps older ones, and of many files a copy would be slow."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.number = 0
        self.sources: dict[str, Progress] = {}
        self.step: Step | None = None
        self.schema: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """From an initial value. Raises IngestStateError."""
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
        """As an initial value: sources by folders, because their names repeat."""
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
    """Says which entry it is that has not the form that it should have."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: object) -> None:
        if isinstance(error, (KeyError, TypeError, ValueError, AttributeError)):
            raise IngestStateError(
                f"an entry of the state is not what it should be ({type(error).__name__}: {error}): "
                f"{self._value!r:.200}"
            ) from error
