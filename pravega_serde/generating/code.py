"""Generated files: written to disk, or compared with the files on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pravega_serde.atomic_file import WholeFile
from pravega_serde.errors import OutputFileError, StaleCodeError


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """Source files or schema files of :func:`~pravega_serde.generate`."""

    files: Mapping[str, str]
    """Relative path with ``/`` -> text of the file."""
    notes: tuple[str, ...] = ()
    """Differences between the source and the generated code, such as classes that were left out."""

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the files, and return their paths.

        Each file is replaced as a whole. It keeps its permissions, and a symbolic link stays.
        ``path`` is the folder of the files, which is created. If there is one file, ``path`` can be its name: a path
        with a suffix that is not a folder. Raises :class:`OutputFileError` for a file that cannot be written.
        """
        written = []
        for file, text in self._placed(path):
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputFileError(f"cannot write {file}: {error.strerror or error}; check the path") from error
            with WholeFile(file) as sink:
                sink.write(text.encode())
            written.append(file)
        return written

    def check(self, path: str | os.PathLike[str]) -> None:
        """Raise :class:`StaleCodeError` if a file is missing or differs. ``path`` is as for :meth:`write`."""
        for file, text in self._placed(path):
            if file.exists() and not file.is_file():  # a read of a pipe would wait for its writer
                raise StaleCodeError(f"{file} is not a regular file, so it cannot be compared; set another --output")
            try:
                found = file.read_bytes()
            except OSError as error:
                raise StaleCodeError(f"{file} cannot be read ({error.strerror or error}); generate it again") from error
            if found != text.encode():
                raise StaleCodeError(f"{file} differs from the code that its schema generates; generate it again")

    def _placed(self, path: str | os.PathLike[str]) -> Iterator[tuple[Path, str]]:
        target = Path(path)
        is_file = len(self.files) == 1 and bool(target.suffix) and not target.is_dir()
        for name, text in self.files.items():
            yield target if is_file else target / name, text
