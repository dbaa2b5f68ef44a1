"""Content of a step: its events, written to its transaction, and its malformed records, written to files."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from pravega_connector.errors import IngestError, OutputFileError, SourceChangedError
from pravega_connector.operations.ingest.encode import Encoding
from pravega_connector.operations.ingest.feed import Draft, Piece
from pravega_connector.operations.ingest.replayable import Chunk, RecordSource, Rejected
from pravega_connector.operations.ingest.targets import Parts
from pravega_connector.writer.transactions import LeaseKeeper, OpenTransaction
from pravega_serde.atomic_file import WholeFile

# Minimum bytes of a chunk that is written separately, and maximum number of smaller chunks that are written together.
_LARGE: Final = 1 << 16
_PARTS: Final = 64
# Seconds between two checks of a source that is being read.
_REPORT_EVERY: Final = 1.0
_DIGITS: Final = 8


@dataclass(slots=True)
class Counts:
    """Totals of one run so far."""

    sources: int = 0
    transactions: int = 0
    redone: int = 0
    rewritten: int = 0
    """Parts of steps that were written to their stream again."""
    events: int = 0
    rejected: int = 0
    bytes: int = 0
    recovered: int = 0

    def with_content(self, done: Counts) -> Counts:
        """Return the sum with the events, rejected records and bytes of another."""
        return replace(
            self,
            events=self.events + done.events,
            rejected=self.rejected + done.rejected,
            bytes=self.bytes + done.bytes,
        )


class ContentWriter:
    """Writer of the content of drafts. Not thread safe."""

    def __init__(
        self, source: RecordSource, keeper: LeaseKeeper, dead_letters: DeadLetters | None, parts: Parts
    ) -> None:
        """``parts`` has the transactions of other streams that the records name."""
        self._source, self._keeper, self._dead_letters, self._parts = source, keeper, dead_letters, parts

    def write(
        self,
        transaction: OpenTransaction[bytes],
        draft: Draft,
        encoding: Encoding,
        on_progress: Callable[[str, Counts], None],
        *,
        again: bool = False,
    ) -> Counts:
        """Write the events of a draft to a transaction; the caller flushes it. Raises SourceError, TransactionError.

        Events of other streams go to parts of the step. With ``again``, a part of a step is written again, without the
        events of other streams and the malformed records, which were written the first time. ``on_progress`` is called
        with each source and the counts so far.
        """

        def write(chunks: list[tuple[str, Chunk]]) -> None:
            for rows in encoding.by_stream(chunks, transaction.stream):
                if rows.stream == transaction.stream:
                    transaction.write_column(rows.events, rows.keys)
                elif not again:
                    self._parts.of(rows.stream).write_column(rows.events, rows.keys)

        done, looked = Counts(), time.monotonic()
        waiting: list[tuple[str, Chunk]] = []
        pieces = {piece.source: piece for piece in draft.pieces}
        for number, (id_, chunk) in enumerate(draft.content):
            if number == 1:  # a short step needs no keep-alive
                self._keeper.add(transaction)
            if chunk.rejected and self._dead_letters is not None and not again:
                self._dead_letters.add(pieces[id_], chunk.rejected)
            if chunk.batch.num_rows:
                waiting.append((id_, chunk))
            # The records of small sources are encoded together.
            if chunk.batch.nbytes >= _LARGE or len(waiting) >= _PARTS:
                write(waiting)
                waiting = []
            done.events += chunk.batch.num_rows
            done.rejected += len(chunk.rejected)
            done.bytes += chunk.bytes
            on_progress(id_, done)
            if time.monotonic() - looked > _REPORT_EVERY:  # a source that grows as fast as it is read would never end
                self._check_unchanged(pieces[id_])
                looked = time.monotonic()
        if waiting:
            write(waiting)
        return done

    def check(self, draft: Draft) -> None:
        """Check before a commit that the sources are as recorded. Raises SourceError."""
        for piece in draft.pieces:
            self._check_unchanged(piece)

    def settle(self, draft: Draft) -> None:
        """Check the sources before a commit, and publish malformed records durably. Raises SourceError, IngestError."""
        self.check(draft)
        if self._dead_letters is not None:
            self._dead_letters.publish(draft.pieces)

    def forget(self) -> None:
        """Forget the transactions of a step, and discard malformed records that were not published."""
        self._parts.forget()
        if self._dead_letters is not None:
            self._dead_letters.discard()

    def _check_unchanged(self, piece: Piece) -> None:
        """Raise SourceChangedError if a source has changed after its piece was recorded."""
        if (change := self._source.change(piece.source, piece.mark)) is None:
            return
        error = SourceChangedError(
            f"{piece.source} changed while it was read: {change}; the records being read are not committed"
        )
        error.source_id = piece.source
        raise error


class DeadLetters:
    """Directory with the dead letters: one file of JSON lines for each piece that has malformed records.

    The name of a file depends only on its source and first record. So a piece that is read again replaces its earlier
    file.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Create the directory. Raises IngestError."""
        self._folder = Path(folder)
        self._open: dict[Piece, tuple[WholeFile, BinaryIO]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._failed(self._folder, error) from error

    def path(self, piece: Piece) -> Path:
        """Return the file of the malformed records of a piece."""
        digest = hashlib.blake2b(piece.source.encode(), digest_size=_DIGITS // 2).hexdigest()
        return self._folder / f"{piece.source.rpartition('/')[2][:100]}.{digest}.{piece.offset}.jsonl"

    def add(self, piece: Piece, rejected: Iterable[Rejected]) -> None:
        """Write malformed records of a piece to a temporary file next to the final one."""
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
        """Move the files of pieces into place, durable on return; delete files that an earlier read left."""
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
        """Discard records that were added and not published."""
        for whole, _ in self._open.values():
            whole.drop()
        self._open.clear()

    @staticmethod
    def _failed(path: Path, error: Exception) -> IngestError:
        refusal = error.__cause__ if isinstance(error, OutputFileError) else error
        reason = getattr(refusal, "strerror", None) or refusal
        return IngestError(f"malformed records cannot be written to {path}: {reason}; nothing is committed")
