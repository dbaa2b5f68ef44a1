"""Bad records in files of their own: written before their transaction is committed, and the same when it is redone."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from connector.errors import IngestError
from connector.ingest._source import Rejected
from connector.ingest._state import Piece

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
        self._open: dict[Piece, Any] = {}
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
                self._open[piece] = _beside(path).open("w", encoding="utf-8")
            for bad in rejected:
                line = {"source": piece.source, "record": bad.record, "line": bad.line, "reason": bad.reason}
                self._open[piece].write(json.dumps({**line, "text": bad.text}, ensure_ascii=False) + "\n")
        except OSError as error:
            raise self._failed(path, error) from error

    def publish(self, pieces: Iterable[Piece]) -> None:
        """Put the bad records of pieces in place, durable on return; drop what an earlier reading left there."""
        for piece in pieces:
            path = self.path(piece)
            try:
                if (file := self._open.pop(piece, None)) is None:
                    path.unlink(missing_ok=True)
                    continue
                file.flush()
                os.fsync(file.fileno())
                file.close()
                _beside(path).replace(path)
            except OSError as error:
                raise self._failed(path, error) from error

    def discard(self) -> None:
        """Forget what was added and not published."""
        for piece, file in self._open.items():
            file.close()
            _beside(self.path(piece)).unlink(missing_ok=True)
        self._open.clear()

    @staticmethod
    def _failed(path: Path, error: OSError) -> IngestError:
        return IngestError(f"bad records cannot be written to {path}: {error.strerror or error}; nothing is committed")


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.{os.getpid()}.tmp")
