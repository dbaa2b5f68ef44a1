"""Feed of records into the next transaction, in three variants.

- ``file``: whole sources. Their ends are not known when the transaction is recorded.
- ``count``: a fixed number of records of one source, so an offset defines the start of the next transaction.
- ``length``: as many records as fit. They are read first, and their end is recorded before they are written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from pravega_connector.errors import ConfigError, SourceChangedError, SourceError
from pravega_connector.operations.ingest.replayable import Chunk, ReplayableSource

Variant = Literal["file", "count", "length"]
VARIANTS: Final[tuple[Variant, ...]] = ("file", "count", "length")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Size of a transaction. Raises ConfigError for a number below 1."""

    variant: Variant = "file"
    files: int = 1
    """``file``: maximum number of sources."""
    records: int = 100_000
    """``count``: number of records of one source."""
    bytes: int = 16 << 20
    """``length``: approximate bytes of columns, kept in memory. ``file``: size from which no source is added."""

    def __post_init__(self) -> None:
        if self.variant not in VARIANTS:
            raise ConfigError(f"invalid variant {self.variant!r}; valid variants: {', '.join(VARIANTS)}")
        if min(self.files, self.records, self.bytes) < 1:
            raise ConfigError("the numbers of files, records and bytes of a transaction must be at least 1")


class Progress(NamedTuple):
    """Position of one source: the number of its records that are in the stream."""

    mark: str
    offset: int
    """Records that are in the stream; -1 for all of an unknown number."""
    finished: bool

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Progress:
        """Parse the JSON form, a list of the three fields."""
        mark, offset, finished = value
        return cls(str(mark), int(offset), bool(finished))

    def to_json(self) -> list[Any]:
        """Return the JSON form."""
        return list(self)


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one source, from ``offset`` to before ``end``; all remaining records if ``end`` is None."""

    source: str
    offset: int
    end: int | None
    mark: str

    def to_json(self) -> list[Any]:
        """Return the JSON form, a list of the fields."""
        return [self.source, self.offset, self.end, self.mark]

    @property
    def after(self) -> Progress:
        """Position of the source once the piece is in the stream."""
        return Progress(self.mark, -1 if self.end is None else self.end, self.end is None)


#: Positions of a source before and after, in their JSON form. Before the first one, it is None.
Move = tuple[Any, Any]


class Positions:
    """Positions of the sources after all drafts of a feed, in their JSON form.

    A run compares them with the log when it records a draft. It must not take them from the log at that time: another
    run may have moved the log, and the draft is of the earlier position.
    """

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = dict(known)

    def at(self, id_: str) -> Progress | None:
        """Return the position of a source; None if it has none."""
        known = self._known.get(id_)
        return None if known is None else Progress.from_json(known)

    def move(self, id_: str, after: Progress) -> Move:
        """Set the position of a source. Return the positions before and after."""
        before = self._known.get(id_)
        self._known[id_] = after.to_json()
        return before, self._known[id_]


@dataclass(slots=True)
class Draft:
    """Draft of a transaction."""

    pieces: tuple[Piece, ...]
    content: Iterator[tuple[str, Chunk]]
    """The records; each chunk is paired with its source."""
    moves: Mapping[str, Move] = field(default_factory=dict)
    """Positions of the sources before and after the draft."""
    ended: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Filled while ``content`` is read: sources that were read to their end."""


class Drafts(Protocol):
    """Feed of one kind of source."""

    @property
    def settled(self) -> dict[str, Move]:
        """Sources that move without records. The caller removes them once the log has them."""

    @property
    def failed(self) -> Mapping[str, SourceError]:
        """Sources that are left out."""

    @property
    def changed(self) -> Mapping[str, str]:
        """Sources that have changed after they were ingested."""

    @property
    def pending(self) -> list[str]:
        """Sources with more records to ingest, as far as is known."""

    def begin(self, known: Mapping[str, Sequence[Any]]) -> None:
        """Restart after known positions, in their JSON form. Raises the errors of the source."""

    def fail(self, id_: str, error: SourceError) -> None:
        """Leave a source out from now on."""

    def committed(self, draft: Draft) -> None:
        """Add the sources that a committed draft has read to their end to ``settled``."""

    def next(self) -> Draft | None:
        """Return the next draft; None if nothing is left. A SourceError has ``source_id`` set."""

    def again(self, pieces: Sequence[Piece]) -> Draft:
        """Return a draft with the records of pieces that were read before. Raises SourceError, DataLossError."""


class _Reading:
    """Source that is being read, and the position in it."""

    def __init__(self, source: ReplayableSource, id_: str, offset: int, mark: str) -> None:
        self.id, self.offset, self.mark = id_, offset, mark
        self._chunks = source.read(id_, offset)
        self._next: Chunk | None = None

    def peek(self) -> Chunk | None:
        """Return the next chunk; None at the end. Raises SourceError."""
        while self._next is None or not self._next.records:
            self._next = next(self._chunks, None)
            if self._next is None:
                return None
            if self._next.first != self.offset:
                raise SourceChangedError(f"{self.id} returned record {self._next.first}, expected {self.offset}")
        return self._next

    def take(self, most: int | None = None) -> Iterator[Chunk]:
        """Yield chunks of ``most`` records in total, or of all remaining records."""
        end = None if most is None else self.offset + most
        while (chunk := self.peek()) is not None and (end is None or self.offset < end):
            self._next = None
            if end is not None and self.offset + chunk.records > end:
                chunk, self._next = chunk.split(end - self.offset)
            self.offset += chunk.records
            yield chunk


class Feed:
    """Drafts of transactions, in the order of the sources, after the records that are already in the stream."""

    def __init__(self, source: ReplayableSource, sizes: Sizes, *, skip_changed: bool = False) -> None:
        self._source, self._sizes, self._skip_changed = source, sizes, skip_changed
        self._positions = Positions({})
        self._pending: deque[str] = deque()
        self._reading: _Reading | None = None
        self.settled: dict[str, Move] = {}
        """Sources that were read to their end and are not recorded yet."""
        self.failed: dict[str, SourceError] = {}
        """Sources that are left out."""
        self.changed: dict[str, str] = {}
        """Sources that have changed after they were ingested."""

    def begin(self, known: Mapping[str, Sequence[Any]]) -> None:
        """Restart after known positions, in their JSON form.

        Raises SourceChangedError, and the errors of the source.
        """
        self._positions, self._reading = Positions(known), None
        self.settled = {}
        self._pending.clear()
        for id_ in self._source.ids():
            progress = self._positions.at(id_)
            if id_ in self.failed or id_ in self.changed:
                continue
            if progress is None or not progress.finished:
                self._pending.append(id_)
            else:
                self._check(id_, progress)

    @property
    def pending(self) -> list[str]:
        """Sources with more records to ingest, as far as is known."""
        return ([] if self._reading is None else [self._reading.id]) + list(self._pending)

    def fail(self, id_: str, error: SourceError) -> None:
        """Leave a source out from now on."""
        self.failed[id_] = error
        with suppress(ValueError):
            self._pending.remove(id_)
        if self._reading is not None and self._reading.id == id_:
            self._reading = None

    def committed(self, draft: Draft) -> None:
        """Add the sources that a committed draft has read to their end to ``settled``."""
        for id_, (records, mark) in draft.ended.items():
            self._end(id_, records, mark)

    def next(self) -> Draft | None:
        """Return the next draft; None if nothing is left. A SourceError has ``source_id`` set."""
        if self._sizes.variant == "file":
            return self._whole()
        reading = self._current()
        if reading is None:
            return None
        return self._counted(reading) if self._sizes.variant == "count" else self._measured(reading)

    def again(self, pieces: Sequence[Piece]) -> Draft:
        """Return a draft with the records of pieces that were read before. Raises SourceChangedError."""
        for piece in pieces:
            if (change := self._source.change(piece.source, piece.mark)) is not None:
                raise _of(_changed(piece.source, change, "a part of it was"), piece.source)
        draft = Draft(tuple(pieces), iter(()))
        draft.content = self._read_pieces(draft)
        return draft

    def _read_pieces(self, draft: Draft) -> Iterator[tuple[str, Chunk]]:
        for piece in draft.pieces:
            reading = _Reading(self._source, piece.source, piece.offset, piece.mark)
            yield from self._read(reading, None if piece.end is None else piece.end - piece.offset, draft)

    # ---------------------------------------------------------------- variants

    def _whole(self) -> Draft | None:
        pieces: list[Piece] = []
        size = 0
        while self._pending and len(pieces) < self._sizes.files and size < self._sizes.bytes:
            id_ = self._pending[0]
            try:
                offset, mark = self._start(id_)
            except SourceError as error:
                if pieces:
                    break  # the error is raised when the source is next
                raise _of(error, id_) from None
            self._pending.popleft()
            pieces.append(Piece(id_, offset, None, mark))
            size += self._source.size(id_)
        if not pieces:
            return None
        draft = self._draft(*pieces)
        draft.content = self._read_pieces(draft)
        return draft

    def _counted(self, reading: _Reading) -> Draft:
        count = self._sizes.records
        draft = self._draft(Piece(reading.id, reading.offset, reading.offset + count, reading.mark))
        draft.content = self._read(reading, count, draft)
        return draft

    def _measured(self, reading: _Reading) -> Draft:
        first, size = reading.offset, 0
        chunks: list[Chunk] = []
        while size < self._sizes.bytes:
            try:
                chunk = reading.peek()
            except SourceError as error:
                self._reading = None  # the records before the error go first; it occurs again after them
                if chunks:
                    break
                raise _of(error, reading.id) from None
            if chunk is None:
                break
            taken = list(reading.take(_fitting(chunk, self._sizes.bytes - size)))
            chunks += taken
            size += sum(each.batch.nbytes for each in taken)
        if self._reading is None:
            self._pending.appendleft(reading.id)
        draft = self._draft(Piece(reading.id, first, reading.offset, reading.mark))
        draft.content = ((reading.id, chunk) for chunk in chunks)
        return draft

    # ---------------------------------------------------------------- inside

    def _draft(self, *pieces: Piece) -> Draft:
        """Return a draft that moves the positions. Its content is still empty."""
        return Draft(
            pieces, iter(()), {piece.source: self._positions.move(piece.source, piece.after) for piece in pieces}
        )

    def _end(self, id_: str, records: int, mark: str) -> None:
        self.settled[id_] = self._positions.move(id_, Progress(mark, records, finished=True))

    def _read(self, reading: _Reading, most: int | None, draft: Draft) -> Iterator[tuple[str, Chunk]]:
        end = None if most is None else reading.offset + most
        try:
            for chunk in reading.take(most):
                yield reading.id, chunk
        except SourceError as error:
            raise _of(error, reading.id) from None
        if end is None or reading.offset < end:
            draft.ended[reading.id] = (reading.offset, reading.mark)

    def _current(self) -> _Reading | None:
        """Return the source to read next: one that has more records."""
        while True:
            if self._reading is None:
                if not self._pending:
                    return None
                id_ = self._pending[0]
                try:
                    self._reading = _Reading(self._source, id_, *self._start(id_))
                except SourceError as error:
                    raise _of(error, id_) from None
                self._pending.popleft()
            reading = self._reading
            try:
                if reading.peek() is not None:
                    return reading
            except SourceError as error:
                self._reading = None
                self._pending.appendleft(reading.id)
                raise _of(error, reading.id) from None
            self._end(reading.id, reading.offset, reading.mark)
            self._reading = None

    def _start(self, id_: str) -> tuple[int, str]:
        """Return the first record of a source that is not in the stream, and its mark. Raises SourceError."""
        progress = self._positions.at(id_)
        if progress is None or not progress.offset:
            return 0, self._source.mark(id_)
        change = self._source.change(id_, progress.mark)
        if change is not None:
            raise _changed(id_, change, f"its first {progress.offset} records are")
        return progress.offset, progress.mark

    def _check(self, id_: str, progress: Progress) -> None:
        """Raise SourceChangedError for a source that has changed after it was ingested."""
        change = self._source.change(id_, progress.mark)
        if change is None:
            return
        if not self._skip_changed:
            raise _of(_changed(id_, change, "it is"), id_)
        self.changed[id_] = change


def _fitting(chunk: Chunk, size: int) -> int:
    """Return the approximate number of records of a chunk that fit into ``size`` bytes; at least one."""
    fitting = size * chunk.records // max(1, int(chunk.batch.nbytes))
    return max(1, min(chunk.records, fitting))


def _changed(id_: str, change: str, what: str) -> SourceChangedError:
    return SourceChangedError(
        f"{id_} has changed since {what} in the stream: {change}; restore the file, give new data a new name, or set "
        "on_change=skip to skip the changed file"
    )


def _of(error: SourceError, id_: str) -> SourceError:
    error.source_id = id_
    return error
