"""Positions of a Spark query, read from its checkpoint folder without Spark.

A checkpoint has two logs with one file for each batch. The file name is the number of the batch. Spark writes
``offsets/N`` when it plans batch N, and ``commits/N`` when the batch is done. ``offsets/N`` begins with the version and
Spark's own settings. A line for each source follows: the offset as JSON, or ``-``. In version 2 of the log (Spark 4.2),
each line begins with the source's name and a colon. Offsets of this connector are recognized by their shape; see
``pravega_connector.spark.source``.

The folder is on this machine, or on any file system of ``fsspec``: ``s3a://``, ``hdfs://``, ``gs://``, ``abfss://``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from pravega_connector.errors import ConfigError
from pravega_serde.errors import MissingExtraError

_VERSIONS: Final = ("v1", "v2")
_NOTHING: Final = "-"


def committed_offset(path: str | Path) -> dict[str, Any]:
    """Return the end of the newest finished batch of a query, which is one with an entry in the commit log.

    ``path`` is a checkpoint folder: a path on this machine or the URI of another file system. Raises ConfigError
    without such a folder or a finished batch, and for a query that does not read exactly one source of this connector.
    Raises MissingExtraError without the packages for the file system.
    """
    offsets = committed_offsets(path)
    if len(offsets) > 1:
        streams = "; ".join(", ".join(sorted(offset["streams"])) for offset in offsets)
        raise ConfigError(
            f"the query of checkpoint {path} has {len(offsets)} Pravega sources ({streams}): pass the stream cut of "
            "one source instead"
        )
    return offsets[0]


def committed_offsets(path: str | Path) -> list[dict[str, Any]]:
    """Return the offset of each source of this connector, as :func:`committed_offset`.

    Use it for queries with several sources.
    """
    return _offsets(path, committed_batch(path))


def committed_batch(path: str | Path) -> int:
    """Return the number of the newest finished batch of a query. Raises ConfigError before the first one.

    Checksums and leftovers of crashes are ignored.
    """
    try:
        found = [int(name) for name in _folder(path).names("commits") if name.isdecimal()]
    except FileNotFoundError:
        found = []
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be read: {error.strerror or error}") from error
    if not found:
        raise ConfigError(f"the query of checkpoint {path} has not finished a batch yet: it has no position")
    return max(found)


class _Folder(Protocol):
    """Checkpoint folder on some file system. Its methods raise OSError."""

    def names(self, log: str) -> list[str]:
        """Return the file names of a log. Raises FileNotFoundError if the log does not exist."""

    def read(self, log: str, name: str) -> bytes:
        """Return the content of a file."""


class _LocalFolder:
    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self, log: str) -> list[str]:
        return [file.name for file in (self._path / log).iterdir()]

    def read(self, log: str, name: str) -> bytes:
        return (self._path / log / name).read_bytes()


class _RemoteFolder:
    """Folder on a file system of fsspec. All errors of the file system are raised as OSError."""

    def __init__(self, uri: str) -> None:
        scheme = urlsplit(uri).scheme
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an optional package
        except ModuleNotFoundError:
            raise MissingExtraError("fsspec", "checkpoints", purpose=f"a checkpoint on {scheme}") from None
        try:
            self._files, self._path = url_to_fs(uri)
        except ImportError as error:  # the text names the missing package for this file system
            raise ConfigError(f"checkpoint {uri} cannot be read: {error}") from None
        except ValueError as error:
            raise ConfigError(f"checkpoint {uri} is on an unknown file system: {error}") from None

    def names(self, log: str) -> list[str]:
        found: list[str] = self._asked("ls", f"{self._path}/{log}", detail=False)
        return [name.rstrip("/").rpartition("/")[2] for name in found]

    def read(self, log: str, name: str) -> bytes:
        content: bytes = self._asked("cat_file", f"{self._path}/{log}/{name}")
        return content

    def _asked(self, method: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._files, method)(*arguments, **options)
        except OSError:
            raise
        except Exception as error:  # errors of any package: credentials, connections
            raise OSError(None, f"{type(error).__name__}: {error}") from error


def _folder(path: str | Path) -> _Folder:
    """Return the folder of a path or URI. Raises ConfigError unless it has a log of offsets."""
    text = str(path)
    parts = urlsplit(text)
    if parts.scheme == "file":
        text = unquote(parts.path)
    elif len(parts.scheme) > 1:  # one letter is a drive
        folder: _Folder = _RemoteFolder(text)
        try:
            folder.names("offsets")
        except OSError as error:
            said = "it has no folder 'offsets'" if isinstance(error, FileNotFoundError) else error.strerror or error
            raise ConfigError(f"cannot read checkpoint {text}: {said}") from None
        return folder
    local = Path(text)
    if not local.is_dir():
        raise ConfigError(f"checkpoint {text} does not exist: check the path; this machine has no such folder")
    if not (local / "offsets").is_dir():
        raise ConfigError(
            f"invalid checkpoint {text}: it has no folder 'offsets'; pass the checkpoint folder of a streaming query"
        )
    return _LocalFolder(local)


def _offsets(path: str | Path, batch: int) -> list[dict[str, Any]]:
    try:
        lines = _folder(path).read("offsets", str(batch)).decode().split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror or error if isinstance(error, OSError) else "invalid UTF-8"
        raise ConfigError(f"the offsets of batch {batch} in checkpoint {path} cannot be read: {reason}") from error
    version = lines[0]
    if version not in _VERSIONS or len(lines) < 2:
        raise ConfigError(
            f"unknown version of the offset log of checkpoint {path}, batch {batch}: it begins with {version[:20]!r} "
            f"instead of {' or '.join(_VERSIONS)}"
        )
    texts = (line if version == "v1" else line.partition(":")[2] for line in lines[2:])
    found = [offset for text in texts if (offset := _ours(text)) is not None]
    if not found:
        raise ConfigError(f"the query of checkpoint {path} has no Pravega source of this connector")
    return found


def _ours(text: str) -> dict[str, Any] | None:
    """Return the offset in an entry of the log if it is of this connector, else None."""
    if text == _NOTHING:
        return None
    try:
        offset = json.loads(text)
    except ValueError:
        return None
    if isinstance(offset, dict) and isinstance(offset.get("streams"), dict) and isinstance(offset.get("version"), int):
        return offset
    return None
