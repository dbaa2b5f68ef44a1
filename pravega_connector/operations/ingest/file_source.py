"""Files as a source: found by paths, directories and globs, identified by digest, readable from any record."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pyarrow as pa

from pravega_connector.errors import ConfigError, SourceChangedError, SourceError, SourceUnreadableError
from pravega_connector.operations.ingest.avro_files import AvroFiles
from pravega_connector.operations.ingest.csv_files import CsvFiles
from pravega_connector.operations.ingest.encode import OF_FIELDS
from pravega_connector.operations.ingest.file_kinds import (
    FileKind,
    TextFiles,
    kind_of,
    reading,
    unified,
)
from pravega_connector.operations.ingest.json_files import JsonLines
from pravega_connector.operations.ingest.parquet_files import ParquetFiles
from pravega_connector.operations.ingest.replayable import Chunk
from pravega_serde.columnar.found import Found, text_for_nulls

_SAMPLED_FILES: Final = 20
_DIGEST_BYTES: Final = 16
# Prefixes and suffixes of names of unfinished files or files without data, as in Spark and Hadoop.
_HIDDEN: Final = (".", "_")
_UNFINISHED: Final = (".tmp", ".part", ".crdownload", "~")
_TIMESTAMP: Final = re.compile(r"timestamp\[(s|ms|us|ns),\s*tz=([^\]]+)\]")
#: Characters that CSV itself needs.
_NO_DELIMITERS: Final = '"\r\n\0'
_DECIMAL: Final = re.compile(r"decimal(?:128)?\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options for reading files. Some apply only to certain kinds of files."""

    input: str | None = None
    """Kind of all files: ``csv``, ``tsv``, ``jsonl``, ``text``, ``avro`` or ``parquet``; None: from their names."""
    base: str | None = None
    """Directory that file names are relative to, so that it may move. Without it, ids are full paths."""
    delimiter: str = ","
    header: bool = True
    multiline: bool = False
    nulls: tuple[str, ...] = ("", "NA")
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types of CSV and JSON columns that replace inferred ones."""
    encoding: str = "utf-8"
    """Encoding of CSV, JSON and text files, such as ``latin-1``, ``cp1252`` or ``utf-16``."""
    infer_all: bool = False
    """If True, read CSV and JSON files completely to infer types, instead of the beginnings of some files."""
    reject: bool = False
    """If True, malformed records are returned as rejected; otherwise they raise BadRecordError."""
    settle: float = 0.0
    """Seconds without a change before a file is listed."""

    def __post_init__(self) -> None:
        """Raise ConfigError for an unknown encoding, or for a delimiter that is not one plain character."""
        if not (len(self.delimiter) == 1 and self.delimiter.isascii() and self.delimiter not in _NO_DELIMITERS):
            raise ConfigError(
                f"invalid delimiter {self.delimiter!r}: use one character of ASCII, but no quote or line end; "
                "for tabs, set the kind of the files (input='tsv', --input tsv)"
            )
        try:
            "".encode(self.encoding)
        except (LookupError, UnicodeError):
            raise ConfigError(
                f"unknown encoding {self.encoding!r}; known ones include utf-8, utf-16, latin-1 and cp1252"
            ) from None

    def kinds(self) -> dict[str, FileKind]:
        """Return each kind of files by its name."""
        csv = CsvFiles(
            delimiter=self.delimiter,
            header=self.header,
            multiline=self.multiline,
            nulls=self.nulls,
            encoding=self.encoding,
        )
        return {
            "avro": AvroFiles(),
            "csv": csv,
            "jsonl": JsonLines(encoding=self.encoding),
            "parquet": ParquetFiles(),
            "text": TextFiles(encoding=self.encoding),
            "tsv": replace(csv, delimiter="\t"),
        }


class FileSource:
    """Files, directories and globs as a :class:`ReplayableSource`: ids are paths, in their order.

    A file is identified by its size, the times of its last changes and a BLAKE2b digest of all its bytes. If the times
    are equal, the file is not read again. Otherwise the digest decides.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], options: FileOptions | None = None) -> None:
        """Raise ConfigError for an unknown kind of files."""
        self._paths = [os.fspath(path) for path in paths]
        self._options = options or FileOptions()
        self._kinds = self._options.kinds()
        if self._options.input not in (None, *self._kinds):
            raise ConfigError(f"invalid input {self._options.input!r}; valid inputs: {', '.join(sorted(self._kinds))}")
        self._base = None if self._options.base is None else os.path.join(os.path.realpath(self._options.base), "")
        self._found: dict[str, str] = {}  # id -> kind
        self._paths_of: dict[str, str] = {}  # ids that are not paths
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of all files, inferred once."""
        if self._schema is None:
            self._schema = self._inferred()
        return self._schema

    def fix(self, schema: pa.Schema) -> None:
        """Use these columns instead of inferring them; the types in the options still apply."""
        self._schema = self._with_types(schema)

    def ids(self) -> list[str]:
        """Return the files that exist now, sorted by name. Raises SourceUnreadableError, ConfigError."""
        listing = self.listing()
        self._found = {self._id(path): kind for path, kind in sorted(listing.files.items())}
        ids = sorted(self._found)
        return [id_ for id_ in ids if self._is_settled(id_)] if self._options.settle else ids

    def listing(self) -> Listing:
        """Return the files that exist now, and the ignored ones."""
        return list_files(self._paths, self._options.input)

    def mark(self, id_: str) -> str:
        """Return size, times and digest.

        Raises SourceUnreadableError, SourceChangedError for a file that is being written.
        """
        path = self._path(id_)
        before = _stat(path)
        digest = _digest(path)
        if _stat(path) != before:
            raise SourceChangedError(f"{path} is being written to: ingest it when it is complete")
        return f"{before} {digest}"

    def change(self, id_: str, mark: str) -> str | None:
        """Return a description of the difference in size or content; None if only the times differ."""
        path = self._path(id_)
        then, _, digest = mark.rpartition(" ")
        now = _stat(path)
        if now == then:
            return None
        size, size_then = now.partition(" ")[0], then.partition(" ")[0]
        if size != size_then:
            return f"it has {size} bytes and had {size_then}"
        return None if _digest(path) == digest else "it has other content of the same size"

    def size(self, id_: str) -> int:
        """Return the size of the file in bytes; 0 if it does not exist."""
        try:
            return os.stat(self._path(id_)).st_size
        except OSError:
            return 0

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        """Yield the records of a source from number ``offset``. Raises SourceError."""
        yield from self._kind(id_).chunks(self._path(id_), self.schema, offset, reject=self._options.reject)

    # ---------------------------------------------------------------- inside

    def _kind(self, id_: str) -> FileKind:
        if id_ not in self._found and id_ not in self.ids():
            raise SourceUnreadableError(f"{self._path(id_)} does not exist or was deleted")
        return self._kinds[self._found[id_]]

    def _id(self, path: str) -> str:
        id_ = path
        if self._base is not None:
            if not path.startswith(self._base):
                raise ConfigError(
                    f"{shown(path)} is not in the base folder {self._base}: set a base that contains all files"
                )
            id_ = path.removeprefix(self._base).replace(os.sep, "/")
        if shown(id_) != id_:  # a name that is not UTF-8
            id_ = shown(id_)
            self._paths_of[id_] = path
        return id_

    def _path(self, id_: str) -> str:
        path = self._paths_of.get(id_)
        if path is not None:
            return path
        return id_ if self._base is None else self._base + id_.replace("/", os.sep)

    def _is_settled(self, id_: str) -> bool:
        try:
            return time.time() - os.stat(self._path(id_)).st_mtime >= self._options.settle
        except OSError:
            return False

    def _inferred(self) -> pa.Schema:
        ids = sorted(self._found) or self.ids()
        if not ids:
            raise SourceUnreadableError(f"{', '.join(self._paths)} has no files yet: their columns are unknown")
        found: Found | None = None
        told: list[pa.Schema] = []
        errors: list[SourceError] = []
        for id_ in ids if self._options.infer_all else _spread(ids, _SAMPLED_FILES):
            kind = self._kinds[self._found[id_]]
            if told and not isinstance(kind, CsvFiles | JsonLines):
                continue  # only inferred columns need more files
            try:
                columns = kind.columns(self._path(id_), whole=self._options.infer_all)
            except SourceError as error:
                errors.append(error)  # raised when that file is read
                continue
            if isinstance(columns, pa.Schema):
                told.append(columns)
            elif found is None:
                found = columns
            else:
                found.merge(columns)
        if found is None and not told:
            raise errors[0]
        schema = unified(told if found is None else [text_for_nulls(found.schema()), *told])
        if set(self._found.values()) != {"text"}:
            schema = schema.with_metadata(OF_FIELDS)
        return self._with_types(schema)

    def _with_types(self, schema: pa.Schema) -> pa.Schema:
        for name, kind in self._options.types.items():
            index = schema.get_field_index(name)
            if index < 0:
                raise ConfigError(f"column {name!r} of the types does not exist; columns: {', '.join(schema.names)}")
            schema = schema.set(index, pa.field(name, kind))
        return schema


def _stat(path: str) -> str:
    """Return size and times of a file."""
    with reading(path):
        found = os.stat(path)
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _digest(path: str) -> str:
    with reading(path), open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()


def _spread(ids: list[str], count: int) -> list[str]:
    """Return an evenly spread selection, with the first and the last."""
    if len(ids) <= count:
        return ids
    return [ids[round(number * (len(ids) - 1) / (count - 1))] for number in range(count)]


@dataclass(slots=True)
class Listing:
    """Files that were found."""

    files: dict[str, str] = field(default_factory=dict)
    """Absolute path, without links -> kind, in no order."""
    ignored: list[str] = field(default_factory=list)
    """Entries of folders that are not regular files, or that no kind was known for."""


def list_files(paths: Sequence[str], kind: str | None) -> Listing:
    """Return the files that paths name. Directories include all their files.

    Links are followed, and a file is found once.

    ``kind`` is the kind of all files. Without it, their names determine the kind, and files in directories without a
    known suffix are ignored. Hidden files in directories are left out. Raises SourceUnreadableError for a path that
    does not exist, is not a regular file, or is a directory without read permission, ConfigError for a named file of
    unknown kind.
    """
    found = Listing()
    seen: set[str] = set()
    for path in paths:
        for each in _expanded(path):
            absolute = os.path.abspath(each)
            if os.path.isdir(absolute):
                for file in _in_folder(absolute, seen):
                    _add(found, file, kind, named=False)
            else:
                _add(found, absolute, kind, named=True)
    return found


def _expanded(path: str) -> list[str]:
    if os.path.lexists(path):
        return [path]
    if not glob.has_magic(path):
        raise SourceUnreadableError(f"{shown(path) or 'an empty path'} does not exist: check the path")
    if "**" not in path:
        return glob.glob(path)
    # Unlike glob's, this one does not follow links without end.
    parts = Path(path).parts
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:first])
    found = root.glob(os.path.join(*parts[first:]))
    return [str(each) for each in found if not any(name.startswith(".") for name in each.relative_to(root).parts)]


def _in_folder(folder: str, seen: set[str]) -> Iterator[str]:
    """Yield the files of a folder that was not ``seen``, also through links."""
    real = os.path.realpath(folder)
    if real in seen:
        return
    seen.add(real)
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        raise SourceUnreadableError(f"the folder {shown(folder)} cannot be read: permission denied") from None
    for entry in entries:
        if entry.name.startswith(_HIDDEN) or entry.name.endswith(_UNFINISHED):
            continue
        if os.path.isdir(entry.path):
            yield from _in_folder(entry.path, seen)
        else:
            yield entry.path


def _add(found: Listing, path: str, kind: str | None, *, named: bool) -> None:
    real = os.path.realpath(path)
    # A link to nothing stays: reading it raises the error.
    regular = os.path.isfile(real) or not os.path.exists(real)
    kind = kind or kind_of(path)
    if kind is not None and regular:
        found.files.setdefault(real, kind)
    elif named and not regular:
        raise SourceUnreadableError(
            f"{shown(path)} is a pipe, a device or a socket, which cannot be read again: use pravega-serde write"
        )
    elif named:
        raise ConfigError(f"unknown kind of file {shown(path)}: set input (--input) to the kind, such as csv or jsonl")
    else:
        found.ignored.append(shown(path))


def shown(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def parse_types(texts: Iterable[str]) -> dict[str, pa.DataType]:
    """Parse the types of columns from ``column=type``, such as ``zip=string``. Raises ConfigError."""
    found = {}
    for text in texts:
        name, equals, kind = text.rpartition("=") if "tz=" not in text else text.partition("=")
        if not equals or not name:
            raise ConfigError(f"invalid column type {text!r}; write COLUMN=TYPE, such as zip=string")
        found[name.strip()] = _parse(kind.strip())
    return found


def _parse(text: str) -> pa.DataType:
    try:
        if match := _TIMESTAMP.fullmatch(text):
            return pa.timestamp(match[1], match[2])
        if match := _DECIMAL.fullmatch(text):
            return pa.decimal128(int(match[1]), int(match[2]))
        return pa.type_for_alias(text)
    except (ValueError, pa.ArrowInvalid):
        raise ConfigError(
            f"invalid column type {text!r}; valid types: string, int64, int32, double, bool, date32, timestamp[us], "
            "timestamp[us, tz=UTC], decimal(10, 2), binary"
        ) from None
