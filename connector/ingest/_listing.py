"""Which files are meant by paths, folders and globs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from connector.errors import ConfigError, SourceUnreadableError
from connector.ingest._opening import kind_of

__all__ = ["Listing", "list_files"]

# Names that writers give to what is not done or not data, as in Spark and Hadoop.
_HIDDEN: Final = (".", "_")
_UNFINISHED: Final = (".tmp", ".part", ".crdownload", "~")


@dataclass(slots=True)
class Listing:
    """Files that were found."""

    files: dict[str, str] = field(default_factory=dict)
    """Absolute path -> kind, in no order."""
    ignored: list[str] = field(default_factory=list)
    """Files in folders that no kind was known for."""


def list_files(paths: Sequence[str], kind: str | None) -> Listing:
    """The files that paths name; folders with all that is in them.

    ``kind`` is what all hold; without it their names tell, and files in folders whose names do not are ignored.
    Hidden files in folders are left out. Raises SourceUnreadableError for a path that is not there or a folder that may
    not be read, ConfigError for a named file of no known kind.
    """
    found = Listing()
    for path in paths:
        for each in _expanded(path):
            absolute = os.path.abspath(each)
            if os.path.isdir(absolute):
                for file in _in_folder(absolute):
                    _add(found, file, kind, named=False)
            else:
                _add(found, absolute, kind, named=True)
    return found


def _expanded(path: str) -> list[str]:
    if os.path.lexists(path):
        return [path]
    if not glob.has_magic(path):
        raise SourceUnreadableError(f"{path} is not there: check the path")
    return glob.glob(path, recursive=True)


def _in_folder(folder: str) -> Iterator[str]:
    try:
        entries = list(os.scandir(folder))
    except PermissionError:
        raise SourceUnreadableError(f"the folder {folder} may not be read: permission denied") from None
    for entry in entries:
        if entry.name.startswith(_HIDDEN) or entry.name.endswith(_UNFINISHED):
            continue
        if entry.is_dir():
            yield from _in_folder(entry.path)
        else:
            yield entry.path


def _add(found: Listing, path: str, kind: str | None, *, named: bool) -> None:
    kind = kind or kind_of(path)
    if kind is not None:
        found.files[path] = kind
    elif named:
        raise ConfigError(f"the name of {path} does not tell what it holds: say it with option input")
    else:
        found.ignored.append(path)
