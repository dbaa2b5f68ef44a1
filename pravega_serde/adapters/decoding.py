"""Decoding of columns in data frames and SQL: what a malformed event becomes, and how a package is imported."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from pravega_serde.errors import DeserializationError, MissingExtraError, SerdeError
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


def check_package(name: str) -> None:
    """Raise :class:`MissingExtraError` if a package of the extra ``frames`` is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingExtraError(name, "frames", purpose=f"an adapter for {name}") from error
