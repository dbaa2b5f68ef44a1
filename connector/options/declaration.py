"""Declaration and parsing of options: a dataclass field with a description and a parser is an option."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any, Final, TypeVar

from ..errors import ConfigError

__all__ = [
    "PravegaOptionWarning",
    "choice",
    "flag",
    "known_names",
    "nearest",
    "number",
    "option",
    "parse_options",
    "text",
]

T = TypeVar("T")

# Options that Spark itself adds (tables, checkpoints, names of queries).
_SPARKS_OWN: Final = frozenset({"checkpointlocation", "provider", "owner", "queryname", "serialization.format"})
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})


class PravegaOptionWarning(UserWarning):
    """An unknown option, which has no effect."""


def text(name: str, value: str) -> str:
    """Parse a text, which must not be empty."""
    if not value.strip():
        raise ConfigError(f"option {name!r} is empty")
    return value


def flag(name: str, value: str) -> bool:
    """Parse ``true`` or ``false``."""
    if (lowered := value.strip().lower()) in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ConfigError(f"option {name!r} must be true or false, not {value!r}")


def number(least: int, most: int) -> Callable[[str, str], int]:
    """Parser of a whole number within bounds."""

    def parse(name: str, value: str) -> int:
        try:
            parsed = int(value)
        except ValueError:
            parsed = least - 1
        if not least <= parsed <= most:
            raise ConfigError(f"option {name!r} must be a whole number from {least} to {most}, not {value!r}")
        return parsed

    return parse


def choice(*allowed: str) -> Callable[[str, str], str]:
    """Parser of one of some words, in upper or lower case."""

    def parse(name: str, value: str) -> str:
        for word in allowed:
            if value.strip().lower() == word.lower():
                return word
        raise ConfigError(f"option {name!r} must be one of {', '.join(allowed)}, not {value!r}")

    return parse


def option(default: Any, doc: str, parse: Callable[[str, str], Any] = text, *, alias: str = "", **more: Any) -> Any:
    """Declare a dataclass field as an option; ``alias`` is another name for it, ``more`` goes into its metadata."""
    return field(default=default, metadata={"doc": doc, "parse": parse, "alias": alias.lower(), **more})


def parse_options(kind: type[T], raw: Mapping[str, str], *, also_known: Collection[str] = ()) -> T:
    """Parse the options of a source or a sink as Spark passes them; names are not case sensitive.

    ``also_known`` are names of the other side: a table has the options of both. Raises ConfigError for an invalid
    value. An unknown name is a PravegaOptionWarning that gives the nearest known one, not an error: Spark itself adds
    options.
    """
    known = _known(kind)
    values: dict[str, Any] = {}
    for name, value in sorted((key.lower(), value) for key, value in raw.items()):
        if name in known:
            values[known[name].name] = known[name].metadata["parse"](name, value)
        elif name not in _SPARKS_OWN and name not in also_known and not name.startswith("option."):
            message = f"[PRAVEGA-UNKNOWN-OPTION] unknown option {name!r} has no effect; {nearest(name, known)}"
            warnings.warn(message, PravegaOptionWarning, stacklevel=2)
    return kind(**values)


def known_names(kind: type[Any]) -> frozenset[str]:
    """Names and aliases of the options, in lower case."""
    return frozenset(_known(kind))


def _known(kind: type[Any]) -> dict[str, Field[Any]]:
    declared = fields(kind)
    return {f.name: f for f in declared} | {f.metadata["alias"]: f for f in declared if f.metadata.get("alias")}


def nearest(name: str, known: Collection[str]) -> str:
    """Hint for an unknown name: the nearest known option, or all of them."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known options: {', '.join(sorted(known))}"
