"""Bad records in files of their own: written before their transaction is committed, and the same when it is redone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, Final

from connector.errors import IngestError, OutputFileError
from connector.ingest._source import Rejected
from connector.ingest._state import Piece
from connector.whole_file import WholeFile

__all__ = ["DeadLetters"]

_DIGITS: Final = 8


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
        """Where the bad records of a piece are."""
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
