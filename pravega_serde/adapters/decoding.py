"""Columns of data frames and SQL: their conversion to Arrow, malformed events, and the import of a package."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from pravega_serde.errors import DeserializationError, MissingExtraError, SchemaError, SerdeError
from pravega_serde.serializer_interface import Deserializer


def column_decoder(serializer: Deserializer[Any], mode: str) -> Callable[[pa.Array], pa.Array]:
    """Return the function that decodes a column of events.

    A malformed event raises its :class:`DeserializationError` with ``mode`` FAILFAST, and is null with PERMISSIVE.
    """
    if mode.upper() == "FAILFAST":
        return serializer.decode_column
    if mode.upper() == "PERMISSIVE":
        return partial(serializer.decode_column, on_error=_ignore)
    raise SerdeError(f"invalid mode {mode!r}: use FAILFAST or PERMISSIVE; a column cannot drop rows")


def _ignore(error: DeserializationError) -> None:
    """Leave out an error: its row is null."""


@contextmanager
def becoming_arrow(what: str) -> Iterator[None]:
    """Raise :class:`SchemaError` if ``what``, a column or a frame, cannot become Arrow's in the block."""
    try:
        yield
    # Arrow raises Python's errors, too: for large integers, unpaired surrogates, repeated names.
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        raise SchemaError(
            f"{what} cannot become Arrow's: {str(error).partition(chr(10))[0]}; convert "
            "its values to one type that Arrow has"
        ) from error


def check_package(name: str) -> None:
    """Raise :class:`MissingExtraError` if a package of the extra ``frames`` is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(name, "frames", purpose=f"an adapter for {name}") from error
