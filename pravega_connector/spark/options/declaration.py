"""Declaration and parsing of options: a dataclass field with a description and a parser is an option."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any, Final, TypeVar

from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_serde.suggestions import did_you_mean, distance

T = TypeVar("T")

# Options that Spark adds (tables, checkpoints, query names).
_SPARKS_OWN: Final = frozenset(
    {"checkpointlocation", "location", "owner", "provider", "queryname", "serialization.format"}
)
# Option names of Kafka's source, in the spelling that Spark passes, and their names here.
_KAFKAS: Final = {
    "kafka.bootstrap.servers": "controller",
    "bootstrap.servers": "controller",
    "bootstrap_servers": "controller",
    "schema.registry.url": "registry",
    "topic": "stream",
    "subscribe": "stream",
    "subscribepattern": "stream_pattern",
    "startingoffsets": "start_stream_cut",
    "endingoffsets": "end_stream_cut",
    "startingtimestamp": "start_stream_cut",
    "endingtimestamp": "end_stream_cut",
    "maxoffsetspertrigger": "max_rows_per_trigger",
}
# Option that turns errors for misspelled names into warnings.
_IGNORE: Final = "ignore_unknown_options"
# Minimum letters of a name for two edits and for one edit; shorter names allow none: 'host' is not 'path'.
_TWO_EDITS: Final = 8
_ONE_EDIT: Final = 4
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})


class PravegaOptionWarning(UserWarning):
    """Warning about an unknown option, which has no effect."""


def text(name: str, value: str) -> str:
    """Parse a text that must not be empty."""
    if not value.strip():
        raise ConfigError(f"option {name!r} is empty")
    return value


def flag(name: str, value: str) -> bool:
    """Parse ``true`` or ``false``."""
    if (lowered := value.strip().lower()) in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ConfigError(f"option {name!r} must be true or false, not {value!r}{did_you_mean(value, ('true', 'false'))}")


def number(least: int, most: int) -> Callable[[str, str], int]:
    """Return a parser of a whole number from ``least`` to ``most``."""

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
    """Return a parser of one of the allowed words, in upper or lower case."""

    def parse(name: str, value: str) -> str:
        for word in allowed:
            if value.strip().lower() == word.lower():
                return word
        hint = did_you_mean(value, allowed)
        raise ConfigError(f"option {name!r} must be one of {', '.join(allowed)}, not {value!r}{hint}")

    return parse


def option(default: Any, doc: str, parse: Callable[[str, str], Any] = text, *, alias: str = "", **more: Any) -> Any:
    """Declare a dataclass field as an option. ``alias`` is another name for it, ``more`` goes into its metadata.

    Pass ``operator=True`` for an option that operators and experts set, such as a timeout. The documentation lists
    these options on a separate page.
    """
    return field(default=default, metadata={"doc": doc, "parse": parse, "alias": alias.lower(), **more})


def parse_options(kind: type[T], raw: Mapping[str, str], *, also_known: Collection[str] = ()) -> T:
    """Parse the options of a source or a sink as Spark passes them. Names are not case sensitive.

    ``also_known`` are names of the other side, because a table has the options of both. Raises ConfigError for an
    invalid value, UnknownOptionError for a misspelled name. Any other unknown name causes a PravegaOptionWarning,
    because Spark and its users add options for other components. With the option ``ignore_unknown_options``, a
    misspelled name causes only the warning, too.
    """
    known = _known(kind)
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in sorted((key.lower(), value) for key, value in raw.items()):
        if name in known:
            values[known[name].name] = known[name].metadata["parse"](name, value)
        elif name not in _SPARKS_OWN and name not in also_known and not name.startswith("option."):
            unknown.append(name)
    for name in unknown:
        meant = misspelt(name, {*known, *also_known})
        if meant is not None and not values.get(_IGNORE, False):
            raise UnknownOptionError(
                f"unknown option {name!r}: did you mean {meant!r}? If it is for another component, set {_IGNORE}=true"
            )
        hint = did_you_mean(name, known) or f"; known options: {', '.join(sorted(known))}"
        warnings.warn(str(UnknownOptionError(f"unknown option {name!r} has no effect{hint}")), PravegaOptionWarning, 2)
    return kind(**values)


def known_names(kind: type[Any]) -> frozenset[str]:
    """Return names and aliases of the options, in lower case."""
    return frozenset(_known(kind))


def _known(kind: type[Any]) -> dict[str, Field[Any]]:
    declared = fields(kind)
    return {f.name: f for f in declared} | {f.metadata["alias"]: f for f in declared if f.metadata.get("alias")}


def misspelt(name: str, known: Collection[str]) -> str | None:
    """Return the known option that an unknown name in lower case certainly means, or None.

    The name differs by one or two edits, or only by underscores (Spark passes ``startStreamCut`` in lower case). Or it
    is the name that Kafka's source uses. The caller raises an error, so the similarity that hints use is not enough:
    ``dateFormat`` is similar to ``format``, but belongs to other components.
    """
    if name in _KAFKAS:
        return _KAFKAS[name] if _KAFKAS[name] in known else None
    plain = _letters(name)
    allowed = (len(plain) >= _ONE_EDIT) + (len(plain) >= _TWO_EDITS)
    edits, near = min(((distance(plain, _letters(each)), each) for each in known), default=(allowed + 1, None))
    return near if edits <= allowed else None


def _letters(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(".", "")
