"""Positions of a Spark query, read from its checkpoint folder without Spark.

A checkpoint has two logs, one file for each batch, named by its number: ``offsets/N`` is written when batch N is
planned, ``commits/N`` when it is done. ``offsets/N`` begins with the version and Spark's own settings; a line for each
source follows: the offset as JSON, or ``-``. In version 2 of the log (Spark 4.2) each line begins with the source's
name and a colon. Offsets of this connector are recognised by their shape, see ``connector.source``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from .errors import ConfigError

__all__ = ["committed_batch", "committed_offset", "committed_offsets", "planned_offset", "planned_offsets"]

_VERSIONS: Final = ("v1", "v2")
_NOTHING: Final = "-"


def committed_offset(path: str | Path) -> dict[str, Any]:
    """End of the newest batch that a query has finished, which is one with an entry in the commit log.

    ``path`` is a checkpoint folder on this machine. Raises ConfigError without such a folder or a
    finished batch, and for a query that does not read exactly one source of this connector.
    """
    return _only(path, committed_offsets(path))


def planned_offset(path: str | Path) -> dict[str, Any]:
    """End of the newest batch that a query has planned, finished or not. Raises as :func:`committed_offset`."""
    return _only(path, planned_offsets(path))


def committed_offsets(path: str | Path) -> list[dict[str, Any]]:
    """Offset of each source of this connector, as :func:`committed_offset`, for queries with several."""
    return _offsets(path, committed_batch(path))


def planned_offsets(path: str | Path) -> list[dict[str, Any]]:
    """Offset of each source of this connector, as :func:`planned_offset`, for queries with several."""
    return _offsets(path, _newest(_folder(path), "offsets"))


def committed_batch(path: str | Path) -> int:
    """Number of the newest batch that a query has finished. Raises ConfigError before the first one."""
    return _newest(_folder(path), "commits")


def _only(path: str | Path, offsets: list[dict[str, Any]]) -> dict[str, Any]:
    if len(offsets) > 1:
        streams = "; ".join(", ".join(sorted(offset["streams"])) for offset in offsets)
        raise ConfigError(
            f"the query of checkpoint {path} has {len(offsets)} Pravega sources ({streams}): "
            "give the stream cut of one instead"
        )
    return offsets[0]


def _folder(path: str | Path) -> Path:
    """Folder of a path or a ``file:`` URI."""
    text = str(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        text = unquote(parts.path)
    elif len(parts.scheme) > 1:  # one letter is a drive
        raise ConfigError(f"checkpoint {text} is on {parts.scheme}: copy it to a folder of this machine first")
    folder = Path(text)
    if not folder.is_dir():
        raise ConfigError(f"there is no checkpoint {text}: no such folder on this machine")
    if not (folder / "offsets").is_dir():
        raise ConfigError(f"invalid checkpoint {text}: it has no folder 'offsets', as those of streaming queries have")
    return folder


def _newest(folder: Path, log: str) -> int:
    """Number of the newest entry of a log, which also has checksums and remains of crashes."""
    try:
        found = [int(file.name) for file in (folder / log).iterdir() if file.name.isdecimal()]
    except FileNotFoundError:
        found = []
    if not found:
        done = "finished" if log == "commits" else "planned"
        raise ConfigError(f"the query of checkpoint {folder} has not {done} a batch yet: it has no position")
    return max(found)


def _offsets(path: str | Path, batch: int) -> list[dict[str, Any]]:
    file = _folder(path) / "offsets" / str(batch)
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid UTF-8"
        raise ConfigError(f"the offsets of batch {batch} in checkpoint {path} cannot be read: {reason}") from error
    version = lines[0]
    if version not in _VERSIONS or len(lines) < 2:
        raise ConfigError(
            f"unknown version of the offset log {file}: it begins with {version[:20]!r} instead of "
            f"{' or '.join(_VERSIONS)}"
        )
    texts = (line if version == "v1" else line.partition(":")[2] for line in lines[2:])
    found = [offset for text in texts if (offset := _ours(text)) is not None]
    if not found:
        raise ConfigError(f"the query of checkpoint {path} has no Pravega source of this connector")
    return found


def _ours(text: str) -> dict[str, Any] | None:
    """Offset of this connector in an entry of the log; None for another source's."""
    if text == _NOTHING:
        return None
    try:
        offset = json.loads(text)
    except ValueError:
        return None
    if isinstance(offset, dict) and isinstance(offset.get("streams"), dict) and isinstance(offset.get("version"), int):
        return offset
    return None
