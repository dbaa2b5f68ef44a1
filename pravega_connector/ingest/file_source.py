"""Files as a source: found by paths, folders and globs, sorted, recognized by digest, read again from any record."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pravega_connector.errors import ConfigError, SourceChangedError, SourceError, SourceUnreadableError
from pravega_connector.ingest.file_kinds import (
    AvroFiles,
    CsvFiles,
    FileKind,
    JsonLines,
    ParquetFiles,
    TextFiles,
    kind_of,
    reading,
    unified,
)
from pravega_connector.ingest.replayable import Chunk

_SAMPLED_FILES: Final = 20
_DIGEST_BYTES: Final = 16
#: Types of inferred columns in other ones that every serializer and Spark have.
_PLAIN: Final = {pa.null(): pa.string(), pa.time32("ms"): pa.time32("s")}
# Names that writers give to what is not done or not data, as in Spark and Hadoop.
_HIDDEN: Final = (".", "_")
_UNFINISHED: Final = (".tmp", ".part", ".crdownload", "~")
_TIMESTAMP: Final = re.compile(r"timestamp\[(s|ms|us|ns),\s*tz=([^\]]+)\]")
_DECIMAL: Final = re.compile(r"decimal(?:128)?\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options of reading files. Some concern certain kinds of files only."""

    input: str | None = None
    """Kind of all files: ``csv``, ``tsv``, ``jsonl``, ``text``, ``avro`` or ``parquet``; None: by their names."""
    base: str | None = None
    """Folder that names of files are relative to, so that it may move. Without it files have their full path."""
    delimiter: str = ","
    header: bool = True
    multiline: bool = False
    nulls: tuple[str, ...] = ("", "NA")
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types of columns of CSV and JSON, in place of inferred ones."""
    infer_all: bool = False
    """Whether to read all of CSV and JSON to infer types, instead of the beginnings of some files."""
    reject: bool = False
    """Whether bad records are handed over instead of raising BadRecordError."""
    settle: float = 0.0
    """Seconds that a file must have been left alone before it counts as there."""

    def kinds(self) -> dict[str, FileKind]:
        """Each kind of files by its name."""
        csv = CsvFiles(delimiter=self.delimiter, header=self.header, multiline=self.multiline, nulls=self.nulls)
        tsv = CsvFiles(delimiter="\t", header=self.header, multiline=self.multiline, nulls=self.nulls)
        return {
            "avro": AvroFiles(),
            "csv": csv,
            "jsonl": JsonLines(),
            "parquet": ParquetFiles(),
            "text": TextFiles(),
            "tsv": tsv,
        }


class FileSource:
    """Files, folders and globs as a :class:`ReplayableSource`: ids are paths, in their order.

    A file is recognized by its size, the times of its last changes and a BLAKE2b digest of all its bytes. Times spare
    reading it again; the digest decides.
    """

    def __init__(self, paths: Sequence[str | os.PathLike[str]], options: FileOptions | None = None) -> None:
        """Raises ConfigError for an unknown kind of files."""
        self._paths = [os.fspath(path) for path in paths]
        self._options = options or FileOptions()
        self._kinds = self._options.kinds()
        if self._options.input not in (None, *self._kinds):
            raise ConfigError(f"invalid input {self._options.input!r}; there are: {', '.join(sorted(self._kinds))}")
        self._base = None if self._options.base is None else os.path.join(os.path.abspath(self._options.base), "")
        self._found: dict[str, str] = {}  # id -> kind
        self._schema: pa.Schema | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of all files, inferred once."""
        if self._schema is None:
            self._schema = self._inferred()
        return self._schema

    def fix(self, schema: pa.Schema) -> None:
        """Take these columns instead of inferring them; types that were asked for are changed."""
        self._schema = self._with_types(schema)

    def ids(self) -> list[str]:
        """The files that are there now, sorted by their names. Raises SourceUnreadableError, ConfigError."""
        listing = self.listing()
        self._found = {self._id(path): kind for path, kind in listing.files.items()}
        ids = sorted(self._found)
        return [id_ for id_ in ids if self._is_settled(id_)] if self._options.settle else ids

    def listing(self) -> Listing:
        """The files that are there now, and those that are ignored."""
        return list_files(self._paths, self._options.input)

    def mark(self, id_: str) -> str:
        """Size, times and digest. Raises SourceUnreadableError, SourceChangedError if it is being written to."""
        path = self._path(id_)
        before = _stat(path)
        digest = _digest(path)
        if _stat(path) != before:
            raise SourceChangedError(f"{path} is being written to: ingest it when it is complete")
        return f"{before} {digest}"

    def change(self, id_: str, mark: str) -> str | None:
        """Description of the difference, in size or content; None if only the file's times differ."""
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
        """Bytes of the file; 0 if it is gone."""
        try:
            return os.stat(self._path(id_)).st_size
        except OSError:
            return 0

    def read(self, id_: str, offset: int = 0) -> Iterator[Chunk]:
        """Records of a source from number ``offset`` on. Raises SourceError."""
        yield from self._kind(id_).chunks(self._path(id_), self.schema, offset, reject=self._options.reject)

    # ---------------------------------------------------------------- inside

    def _kind(self, id_: str) -> FileKind:
        if id_ not in self._found and id_ not in self.ids():
            raise SourceUnreadableError(f"{self._path(id_)} is not there (any more)")
        return self._kinds[self._found[id_]]

    def _id(self, path: str) -> str:
        if self._base is None:
            return path
        if not path.startswith(self._base):
            raise ConfigError(f"{path} is not in the base {self._base}: its name cannot be told from there")
        return path.removeprefix(self._base).replace(os.sep, "/")

    def _path(self, id_: str) -> str:
        return id_ if self._base is None else self._base + id_.replace("/", os.sep)

    def _is_settled(self, id_: str) -> bool:
        try:
            return time.time() - os.stat(self._path(id_)).st_mtime >= self._options.settle
        except OSError:
            return False

    def _inferred(self) -> pa.Schema:
        ids = sorted(self._found) or self.ids()
        if not ids:
            raise SourceUnreadableError(
                f"there are no files yet in {', '.join(self._paths)}: their columns are unknown"
            )
        sampled: list[pa.Schema] = []
        told: list[pa.Schema] = []
        errors: list[SourceError] = []
        for id_ in ids if self._options.infer_all else _spread(ids, _SAMPLED_FILES):
            kind = self._kinds[self._found[id_]]
            if told and not kind.sampled:
                continue
            try:
                columns = kind.columns(self._path(id_), whole=self._options.infer_all)
            except SourceError as error:
                errors.append(error)  # it is raised when the turn of that file comes
                continue
            (sampled if kind.sampled else told).append(columns)
        if not sampled and not told:
            raise errors[0]
        return self._with_types(unified([_plain(unified(sampled)), *told] if sampled else told))

    def _with_types(self, schema: pa.Schema) -> pa.Schema:
        for name, kind in self._options.types.items():
            index = schema.get_field_index(name)
            if index < 0:
                raise ConfigError(f"there is no column {name!r} to give a type; there are: {', '.join(schema.names)}")
            schema = schema.set(index, pa.field(name, kind))
        return schema


def _stat(path: str) -> str:
    """Size and times of a file."""
    with reading(path):
        found = os.stat(path)
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _digest(path: str) -> str:
    with reading(path), open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)).hexdigest()


def _spread(ids: list[str], count: int) -> list[str]:
    """Selection of so many of them, with the first and the last."""
    if len(ids) <= count:
        return ids
    return [ids[round(number * (len(ids) - 1) / (count - 1))] for number in range(count)]


def _plain(schema: pa.Schema) -> pa.Schema:
    """The same columns, with types that every serializer has."""
    return pa.schema([pa.field(each.name, _plain_type(each.type)) for each in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return _PLAIN.get(kind, kind)


@dataclass(slots=True)
class Listing:
    """Files that were found."""

    files: dict[str, str] = field(default_factory=dict)
    """Absolute path -> kind, in no order."""
    ignored: list[str] = field(default_factory=list)
    """Files in folders that no kind was known for."""


def list_files(paths: Sequence[str], kind: str | None) -> Listing:
    """Files that paths name; folders with all that is in them.

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


def parse_types(texts: Iterable[str]) -> dict[str, pa.DataType]:
    """Types of columns from ``column=type``, such as ``zip=string``. Raises ConfigError."""
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
            f"invalid column type {text!r}; there are string, int64, int32, double, bool, date32, timestamp[us], "
            "timestamp[us, tz=UTC], decimal(10, 2), binary"
        ) from None
