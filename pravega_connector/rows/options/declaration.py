"""Declaration and parsing of options: a dataclass field with a description and a parser is an option."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import Field, field, fields
from typing import Any, Final, TypeVar

from pravega_connector.errors import ConfigError, UnknownOptionError
from pravega_serde.suggestions import did_you_mean, which_name

T = TypeVar("T")

# Options that Spark adds: for tables, and for streaming queries.
_SPARKS_OWN: Final = frozenset(
    {
        *("checkpointlocation", "queryname"),
        *("collation", "comment", "external", "is_managed_location", "location", "owner", "provider"),
        "serialization.format",
    }
)
# Names of options in other systems, and arguments of the client -> names here.
_MEANT: Final = {
    name: meant
    for meant, names in {
        "controller": "kafka.bootstrap.servers bootstrap.servers service.url "
        "endpoint endpoint_url uri url host hosts address controller_uri brokers",
        "registry": "schema.registry.url registry.url registry_uri schema_registry",
        "registry_type": "schema_type",
        "stream stream_pattern": "topic topics subscribe assign streamname",
        "stream_pattern": "subscribepattern topicspattern",
        "start_stream_cut": "startingoffsets startingoffsetsbytimestamp startingtimestamp startingtime startingversion "
        "startingposition initialposition auto.offset.reset from_beginning start begin from offset",
        "end_stream_cut": "endingoffsets endingoffsetsbytimestamp endingtimestamp endingversion end until to",
        "max_rows_per_trigger": "maxoffsetspertrigger maxfilespertrigger max_events_per_trigger limit max_events "
        "max_messages max_rows batch_size",
        "max_bytes_per_trigger": "max_bytes",
        "min_partitions": "parallelism",
        "min_partitions default_num_segments": "partitions num_partitions segments num_segments",
        "dead_letter_stream dead_letter_path": "dead_letter dead_letters dead_letter_queue dlq badrecordspath",
        "routing_key routing_key_field": "key partition_key",
        "routing_key_field": "routing_key_column key_field partition_key_column",
        "format": "serializer deserializer value_serializer value_deserializer key.serializer value.serializer "
        "key.deserializer value.deserializer encoding",
        "txn_app_id": "app_id transactional.id",
        "txn_version": "version",
        "transaction_timeout_ms": "lease lease_time",
        "username": "user",
        "publish_position": "group.id kafka.group.id groupidprefix consumer_group",
    }.items()
    for name in names.split()
}
# Option that turns errors for unknown names into warnings.
_IGNORE: Final = "ignore_unknown_options"
_OF_A_USER: Final = {
    *("username", "password", "token", "auth_method", "auth_token"),
    *("keycloak_file", "credential_provider"),
}
# Options with the credentials of the user of Pravega, and of each registry.
_CREDENTIALS: Final = [{prefix + name for name in _OF_A_USER} for prefix in ("", "registry_", "also_registry_")]
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})


class PravegaOptionWarning(UserWarning):
    """Warning about an unknown option, which has no effect because of ``ignore_unknown_options``."""


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


def texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Return options as Spark has them: names in lower case, flags as ``true`` and ``false``. None is left out."""
    return {
        name.lower(): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }


def parse_options(kind: type[T], raw: Mapping[str, str], *, also_known: Collection[str] = ()) -> T:
    """Parse the options of a source or a sink as Spark passes them. Names are not case sensitive.

    ``also_known`` are names of the other side, because a table has the options of both. Raises ConfigError for an
    invalid value, UnknownOptionError for a name that neither this format nor Spark has. With the option
    ``ignore_unknown_options``, such a name causes only a PravegaOptionWarning.
    """
    known = _known(kind)
    values: dict[str, Any] = {}
    unknown: list[str] = []
    for name, value in sorted((key.lower(), value) for key, value in raw.items()):
        if name in known:
            own, parsed = known[name].name, known[name].metadata["parse"](name, value)
            if values.setdefault(own, parsed) != parsed:
                alias = known[own].metadata.get("alias")
                also = f" ({alias!r} is another name of it)" if alias else ""
                raise ConfigError(f"option {own!r} has two values{also}: set it once")
        elif name not in _SPARKS_OWN and name not in also_known:
            unknown.append(name)
    for name in unknown:
        hint = option_hint(name, known, also_known)
        if not values.get(_IGNORE, False):
            raise UnknownOptionError(
                f"unknown option {name!r}{hint} If it is for another component, set {_IGNORE}=true"
            )
        warnings.warn(str(UnknownOptionError(f"unknown option {name!r} has no effect{hint}")), PravegaOptionWarning, 2)
    return kind(**values)


def overridden(defaults: Mapping[str, str], given: Mapping[str, str], kind: type[Any]) -> dict[str, str]:
    """Return the options ``given``, and the defaults for others.

    A given option replaces a default with another name of it. The credentials of a server count as one option.
    """
    own = known_names(kind)
    taken = {own.get(name.lower(), name) for name in given}
    for credentials in _CREDENTIALS:
        if taken & credentials:
            taken |= credentials
    return {name: value for name, value in defaults.items() if own.get(name, name) not in taken} | dict(given)


def option_hint(name: str, *known: Collection[str]) -> str:
    """Return the hint after an unknown option, from the first collection of names that has one."""
    hints = (which_name(name, names, _MEANT) for names in known)
    return next(filter(None, hints), "; 'pravega-serde options' lists all options.")


def known_names(kind: type[Any]) -> dict[str, str]:
    """Return names and aliases of the options, in lower case, with the names of their options."""
    return {name: each.name for name, each in _known(kind).items()}


def _known(kind: type[Any]) -> dict[str, Field[Any]]:
    declared = fields(kind)
    return {f.name: f for f in declared} | {f.metadata["alias"]: f for f in declared if f.metadata.get("alias")}
