"""Names of column types, as Arrow writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from connector.errors import ConfigError

__all__ = ["parse_types"]

_TIMESTAMP: Final = re.compile(r"timestamp\[(s|ms|us|ns),\s*tz=([^\]]+)\]")
_DECIMAL: Final = re.compile(r"decimal(?:128)?\((\d+),\s*(\d+)\)")


def parse_types(texts: Iterable[str]) -> dict[str, pa.DataType]:
    """Types of columns from ``column=type``, such as ``zip=string``. Raises ConfigError."""
    found = {}
    for text in texts:
        name, equals, kind = text.rpartition("=") if "tz=" not in text else text.partition("=")
        if not equals or not name:
            raise ConfigError(f"{text!r} is not COLUMN=TYPE, such as zip=string")
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
            f"there is no column type {text!r}; there are string, int64, int32, double, bool, date32, timestamp[us], "
            "timestamp[us, tz=UTC], decimal(10, 2), binary"
        ) from None
