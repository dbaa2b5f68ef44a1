"""Opening files, compressed ones too, with errors that tell what is wrong with them."""

from __future__ import annotations

import lzma
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

import pyarrow as pa

from connector.errors import SourceUnreadableError

__all__ = ["COMPRESSIONS", "kind_of", "open_file", "reading"]

#: Suffix -> name of the compression in pyarrow; ``xz`` is the standard library's.
COMPRESSIONS: Final = {
    ".gz": "gzip",
    ".bz2": "bz2",
    ".zst": "zstd",
    ".zstd": "zstd",
    ".lz4": "lz4",
    ".br": "brotli",
    ".xz": "xz",
}
_KINDS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".txt": "text",
    ".log": "text",
    ".text": "text",
    ".avro": "avro",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
}


def kind_of(path: str) -> str | None:
    """What the name of a file says that it holds; None if it says nothing that is known."""
    return _KINDS.get(_without_compression(path).suffix.lower())


def _without_compression(path: str) -> PurePath:
    pure = PurePath(path)
    return pure.with_suffix("") if pure.suffix.lower() in COMPRESSIONS else pure


@contextmanager
def open_file(path: str) -> Iterator[Any]:
    """A binary file to read from, decompressed by its suffix. Raises SourceUnreadableError, also while it is read."""
    with reading(path):
        compression = COMPRESSIONS.get(PurePath(path).suffix.lower())
        if compression is None:
            with open(path, "rb", buffering=0) as plain:
                yield plain
        elif compression == "xz":
            with lzma.open(path, "rb") as unpacked:
                yield unpacked
        else:
            with pa.input_stream(path, compression=compression) as unpacked:
                yield unpacked


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Raises SourceUnreadableError for what goes wrong with a file while it is read."""
    try:
        yield
    except FileNotFoundError:
        raise SourceUnreadableError(f"{path} is not there (any more)") from None
    except PermissionError:
        raise SourceUnreadableError(f"{path} may not be read: permission denied; allow it and start again") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException) as error:
        what = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error).partition("\n")[0]
        raise SourceUnreadableError(f"{path} cannot be read, it is damaged or cut off: {what}") from error
