"""What a step puts into its transaction: the events of its records, and beside it the records that are no events."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from connector.client import LeaseKeeper, OpenTransaction
from connector.errors import SourceChangedError
from connector.ingest._dead_letters import DeadLetters
from connector.ingest._encode import Encoding
from connector.ingest._feed import Draft
from connector.ingest._source import Chunk, ReplayableSource
from connector.ingest._state import Piece

__all__ = ["ContentWriter", "Counts"]

# A chunk of so many bytes is written at once; of smaller ones so many are written together.
_LARGE: Final = 1 << 16
_PARTS: Final = 64
# Between two looks at a source that is being read.
_LOOK: Final = 1.0


@dataclass(slots=True)
class Counts:
    """What one run has done so far."""

    sources: int = 0
    transactions: int = 0
    redone: int = 0
    events: int = 0
    rejected: int = 0
    bytes: int = 0
    recovered: int = 0

    def with_content(self, done: Counts) -> Counts:
        """These, and the events, rejected records and bytes of another."""
        return replace(
            self,
            events=self.events + done.events,
            rejected=self.rejected + done.rejected,
            bytes=self.bytes + done.bytes,
        )


class ContentWriter:
    """Writes what drafts hold. Not thread safe."""

    def __init__(self, source: ReplayableSource, keeper: LeaseKeeper, dead_letters: DeadLetters | None) -> None:
        self._source, self._keeper, self._dead_letters = source, keeper, dead_letters

    def write(
        self,
        transaction: OpenTransaction[bytes],
        draft: Draft,
        encoding: Encoding,
        tell: Callable[[str, Counts], None],
    ) -> Counts:
        """Hand the events of a draft to a transaction, which is to be flushed. Raises SourceError, TransactionError.

        ``tell`` is called with each source and what was done so far.
        """
        done, looked = Counts(), time.monotonic()
        waiting: list[tuple[str, Chunk]] = []
        pieces = {piece.source: piece for piece in draft.pieces}
        for number, (id_, chunk) in enumerate(draft.content):
            if number == 1:  # a short step needs no ping
                self._keeper.add(transaction)
            if chunk.rejected and self._dead_letters is not None:
                self._dead_letters.add(pieces[id_], chunk.rejected)
            if chunk.batch.num_rows:
                waiting.append((id_, chunk))
            # What small sources hold is encoded together.
            if chunk.batch.nbytes >= _LARGE or len(waiting) >= _PARTS:
                transaction.write_column(*encoding.encode(waiting))
                waiting = []
            done.events += chunk.batch.num_rows
            done.rejected += len(chunk.rejected)
            done.bytes += chunk.bytes
            tell(id_, done)
            if time.monotonic() - looked > _LOOK:  # one that grows as fast as it is read would never end
                self._check_unchanged(pieces[id_])
                looked = time.monotonic()
        if waiting:
            transaction.write_column(*encoding.encode(waiting))
        return done

    def settle(self, draft: Draft) -> None:
        """What must be before a commit: sources that are as they were recorded, and bad records durable in place.

        Raises SourceError, IngestError.
        """
        for piece in draft.pieces:
            self._check_unchanged(piece)
        if self._dead_letters is not None:
            self._dead_letters.publish(draft.pieces)

    def forget(self) -> None:
        """Drop bad records that were not settled."""
        if self._dead_letters is not None:
            self._dead_letters.discard()

    def _check_unchanged(self, piece: Piece) -> None:
        """Raise SourceChangedError if a source is not what it was when its piece was recorded."""
        if (change := self._source.change(piece.source, piece.mark)) is None:
            return
        error = SourceChangedError(
            f"{piece.source} changed while it was read: {change}; nothing of what was being read is committed"
        )
        error.source_id = piece.source
        raise error
