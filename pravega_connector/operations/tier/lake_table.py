"""Tables of a lake: the rows of a stream, and its position in the same commit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final, Protocol

import pyarrow as pa

from pravega_connector.controller.targets import name_of
from pravega_connector.errors import ColumnTypeError, ConfigError, LakeTableError
from pravega_connector.operations.tier.merge import TierMerge
from pravega_connector.wire import StreamCut
from pravega_serde.errors import PravegaError

_KINDS: Final = (
    *("bool", "int8", "int16", "int32", "int64", "float", "double"),
    *("string", "large_string", "binary", "large_binary"),
    *("date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]"),
)


class ConflictError(Exception):
    """Another program has committed to the table; this commit added nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierPosition:
    """Position of a stream in a table: the events before the cut are in it, each once."""

    stream: str
    """The stream and its creation, ``scope/stream#number``."""
    cut: str
    """Stream cut after the last event, as text."""
    version: int
    """Number of the commit of this stream, from 1."""
    run: str
    """The run that committed it: any text that no other run has."""
    events: int
    """Events before the cut, since the first commit."""
    rows: int
    """Rows of these events. Malformed events have none in mode DROPMALFORMED."""
    merged: bool
    """True if the table has the last row of each key. Otherwise it has a row for each event."""

    def stream_cut(self) -> StreamCut:
        """Return the cut."""
        return StreamCut.from_text(self.cut)

    def to_text(self) -> str:
        """Return the position as JSON, for the metadata of a commit."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: object, table: str) -> TierPosition:
        """Parse :meth:`to_text`. Raises LakeTableError."""
        try:
            found = json.loads(str(text))
            position = cls(**{name: found[name] for name in cls.__slots__})
            position.stream_cut()
        except (ValueError, TypeError, KeyError) as error:
            raise LakeTableError(
                f"{table}: the position of the stream in its metadata was written by another program or version: "
                f"{str(text)[:100]!r}"
            ) from error
        return position


@contextmanager
def library_errors(table: object) -> Iterator[None]:
    """Raise the errors of a table's library as LakeTableError, in one line.

    Libraries also raise plain exceptions, and those of databases, object stores and HTTP clients.
    """
    try:
        yield
    except (ConflictError, PravegaError):
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:300] or type(error).__name__
        raise LakeTableError(f"{table}: {text}") from error


class LakeTable(Protocol):
    """Table of a lake. Not thread safe."""

    def schema(self) -> pa.Schema | None:
        """Return the columns of the loaded table, or None if it did not exist."""

    def create(self, schema: pa.Schema, partition_by: Sequence[str]) -> None:
        """Create the table, unless another program has created it in the meantime."""

    def position(self, stream: str) -> TierPosition | None:
        """Load the table, and return the position of a stream ``scope/stream``, or None without one."""

    def commit(self, rows: pa.Table, position: TierPosition) -> None:
        """Add the rows and the position to the loaded table in one commit. Columns that it lacks are added.

        Raises ConflictError if the table has another position of this stream by now, or another commit that is not
        compatible with this one. After a LakeTableError, the outcome is unknown: load the position.
        """

    def merge(self, rows: pa.Table, position: TierPosition, merge: TierMerge) -> None:
        """Change the rows with the keys of ``rows`` and set the position, in one commit; see :meth:`commit`."""

    def positions(self, stream: str) -> Iterator[tuple[int, TierPosition]]:
        """Yield the kept commits of a stream, with their times in milliseconds since 1970, the newest first."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the loaded table. Later commits are not seen."""

    def files(self) -> list[str]:
        """Return the URIs of the Parquet files whose rows are those of the loaded table.

        Raises LakeTableError for a table that has deleted rows or other column names next to its files.
        """

    @property
    def root(self) -> str | None:
        """Folder whose subfolders have the values of partition columns, or None if the files have them."""


def no_merge(table: object) -> ConfigError:
    """Return the error of a table whose library cannot merge deletions in one commit."""
    return ConfigError(
        f"{table}: changes are merged into Delta tables only, because the upsert of pyiceberg deletes no rows: write "
        "into delta:PATH"
    )


def not_plain(table: object, reason: str) -> LakeTableError:
    """Return the error of a table whose files are not its rows."""
    return LakeTableError(
        f"{table}: its Parquet files are not its rows, because of {reason}: read the table with its own connector, and "
        "the stream with start_stream_cut"
    )


def stream_of(position: TierPosition) -> str:
    """Return the stream ``scope/stream`` of a position."""
    return name_of(position.stream)


def check_columns(schema: pa.Schema, table: str) -> None:
    """Raise ColumnTypeError for a column that tables do not have without a change of its values."""
    for field in schema:
        _check(field.type, field.name, table)


def _check(kind: pa.DataType, path: str, table: str) -> None:
    if pa.types.is_struct(kind) and kind.num_fields:
        for field in kind:
            _check(field.type, f"{path}.{field.name}", table)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _check(kind.value_type, f"{path}.element", table)
    elif pa.types.is_map(kind):
        _check(kind.key_type, f"{path}.key", table)
        _check(kind.item_type, f"{path}.value", table)
    elif str(kind) not in _KINDS and not pa.types.is_decimal128(kind) and not pa.types.is_fixed_size_binary(kind):
        raise ColumnTypeError(
            f"{table}: column {path!r} is {kind}, which tables do not have; convert it before, or read the stream "
            "with a schema that has another type"
        )
