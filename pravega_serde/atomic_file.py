"""Output files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final

from pravega_serde.errors import OutputFileError

# Bytes of one write to the file, however small the pieces of the format are.
_BUFFER: Final = 1 << 20


class WholeFile:
    """A file under construction; at the end of the ``with`` block it is durable and takes its name.

    Until then it is a hidden file next to it (``.name.….part``). A failing block removes the hidden file, and a killed
    process leaves it. Several writers of one file do not disturb each other: the last one to end replaces the others.
    A file that is replaced keeps its permissions, and a symbolic link stays: it leads to the new file.

    Raises OutputFileError for a missing folder, missing permission, a full disk, and for the name of a device, a pipe
    or a folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve() if path.is_symlink() else path
        self._part = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex[:12]}.part")

    def __enter__(self) -> BinaryIO:
        try:
            known = self.path.stat() if self.path.exists() else None
            if known is not None and not stat.S_ISREG(known.st_mode):
                raise OutputFileError(f"{self.path} is not a file, and is not replaced by one: choose another name")
            self._file = self._part.open("xb", buffering=_BUFFER)
            if known is not None:
                os.fchmod(self._file.fileno(), stat.S_IMODE(known.st_mode))
        except OSError as error:
            raise self._refused(error) from error
        except BaseException:  # from a signal, right after the file was created
            self._part.unlink(missing_ok=True)
            raise
        return self._file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if error is not None:
            self.drop()
            if isinstance(error, OSError):
                raise self._refused(error) from error
            return
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as failure:
            self.drop()
            raise self._refused(failure) from failure

    def drop(self) -> None:
        """Remove the unfinished file. Only after entering."""
        # Closing flushes the buffer, which a full disk refuses once more.
        with contextlib.suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)

    def _refused(self, error: OSError) -> OutputFileError:
        return OutputFileError(
            f"the file {self.path} cannot be written: {error.strerror or error}; the incomplete file was removed; "
            "check free space and permissions, then repeat the command"
        )


def _sync_folder(folder: Path) -> None:
    """Make the new name durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
