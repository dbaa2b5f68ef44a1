"""Content of a step: the events of its records, written to its transaction, and bad records in files beside it."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from pravega_connector.atomic_file import WholeFile
from pravega_connector.errors import IngestError, OutputFileError, SourceChangedError
from pravega_connector.ingest.encode import Encoding
from pravega_connector.ingest.feed import Draft, Piece
from pravega_connector.ingest.replayable import Chunk, Rejected, ReplayableSource
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction

# A chunk of so many bytes is written at once; of smaller ones so many are written together.
_LARGE: Final = 1 << 16
_PARTS: Final = 64
# Between two looks at a source that is being read.
_LOOK: Final = 1.0
_DIGITS: Final = 8


@dataclass(slots=True)
class Counts:
    """Totals of one run so far."""

    sources: int = 0
    transactions: int = 0
    redone: int = 0
    events: int = 0
    rejected: int = 0
    bytes: int = 0
    recovered: int = 0

    def with_content(self, done: Counts) -> Counts:
        """Sum with the events, rejected records and bytes of another."""
        return replace(
            self,
            events=self.events + done.events,
            rejected=self.rejected + done.rejected,
            bytes=self.bytes + done.bytes,
        )


class ContentWriter:
    """Writer of the content of drafts. Not thread safe."""

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
        """Check before a commit that sources are as they were recorded, and put bad records in place, durable.

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


class DeadLetters:
    """A folder with one file of JSON lines for each piece that has bad records.

    A file's name follows from its source and first record, so that a piece that is read again replaces what was told of
    it before.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Creates the folder. Raises IngestError."""
        self._folder = Path(folder)
        self._open: dict[Piece, tuple[WholeFile, BinaryIO]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(self._folder, error) from error

    def path(self, piece: Piece) -> Path:
        """File of the bad records of a piece."""
        digest = hashlib.blake2b(piece.source.encode(), digest_size=_DIGITS // 2).hexdigest()
        return self._folder / f"{piece.source.rpartition('/')[2][:100]}.{digest}.{piece.offset}.jsonl"

    def add(self, piece: Piece, rejected: Iterable[Rejected]) -> None:
        """Write bad records of a piece, beside the place where they are to be."""
        path = self.path(piece)
        try:
            if piece not in self._open:
                whole = WholeFile(path)
                self._open[piece] = whole, whole.__enter__()
            _, file = self._open[piece]
            for bad in rejected:
                line = {"source": piece.source, "record": bad.record, "line": bad.line, "reason": bad.reason}
                file.write(json.dumps({**line, "text": bad.text}, ensure_ascii=False).encode() + b"\n")
        except (OSError, OutputFileError) as error:
            raise self._failed(path, error) from error

    def publish(self, pieces: Iterable[Piece]) -> None:
        """Put the bad records of pieces in place, durable on return; drop what an earlier reading left there."""
        for piece in pieces:
            path = self.path(piece)
            try:
                if piece in self._open:
                    whole, _ = self._open.pop(piece)
                    whole.__exit__(None, None, None)
                else:
                    path.unlink(missing_ok=True)
            except (OSError, OutputFileError) as error:
                raise self._failed(path, error) from error

    def discard(self) -> None:
        """Forget what was added and not published."""
        for whole, _ in self._open.values():
            whole.drop()
        self._open.clear()

    @staticmethod
    def _failed(path: Path, error: Exception) -> IngestError:
        refusal = error.__cause__ if isinstance(error, OutputFileError) else error
        reason = getattr(refusal, "strerror", None) or refusal
        return IngestError(f"bad records cannot be written to {path}: {reason}; nothing is committed")
