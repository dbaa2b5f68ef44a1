"""Which options a read or write has: those of streams, or with option ``table`` those of key-value tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pravega_connector.errors import ConfigError
from pravega_connector.rows.options import known_names, overridden, parse_options
from pravega_connector.rows.options.sink import SinkOptions
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.rows.options.tables import TableSinkOptions, TableSourceOptions
from pravega_connector.spark.sql_tables import is_table

T = TypeVar("T")

_TABLE: Final = "table"
_STREAMS: Final = ("stream", "path", "paths", "stream_pattern")
# A SQL table has the path of its directory in Spark's catalog.
_PATH: Final = "path"
# The mode of a source, and of the sink of a table: two options, so a default of the one is not for the other.
_MODE: Final = "mode"


def names_table(options: Mapping[str, str]) -> bool:
    """Return True if options name a key-value table."""
    return table_in(options) is not None


def table_in(options: Mapping[str, str]) -> str | None:
    """Return the key-value table that options name, or None."""
    return _value(options, _TABLE)


def all_names() -> frozenset[str]:
    """Return the names and aliases of all options, in lower case."""
    return _stream_names() | _table_names()


def stream_options(kind: type[T], given: Mapping[str, str], defaults: Mapping[str, str]) -> T:
    """Parse the options of a read or write of streams.

    ``defaults`` apply to options that are not given; the credentials of a server count as one option. Raises
    ConfigError for options of tables, and the errors of parse_options.
    """
    others = [name for name in given if name.lower() not in _stream_names()]
    for name in others:
        if name.lower() in _table_names():
            raise ConfigError(f"option {name!r} is for key-value tables: set option 'table', or leave it out")
    if kind is SinkOptions and (_value(given, _MODE) or "").strip().lower() == "upsert":
        raise ConfigError("mode=upsert writes a key-value table: set option 'table', such as 'scope/table'")
    return parse_options(kind, with_defaults(given, defaults, kind), also_known=_stream_names() | {_TABLE})


def table_options(kind: type[T], given: Mapping[str, str], defaults: Mapping[str, str]) -> T:
    """Parse the options of a read or write of a key-value table; otherwise as :func:`stream_options`.

    Raises ConfigError if a stream is set, too, or for other options of streams.
    """
    table = table_in(given)
    only_streams = _stream_names() - _table_names()
    own = {name: value for name, value in given.items() if name.lower() != _PATH or not is_table(given)}
    for name, value in own.items():
        if name.lower() in _STREAMS:
            raise ConfigError(
                f"a table and a stream are set: option 'table' is {table!r} and {name!r} is {value!r}; set only one"
            )
        if name.lower() in only_streams:
            raise ConfigError(f"option {name!r} is for streams, and option 'table' is {table!r}: leave it out")
    if kind is TableSinkOptions:
        defaults = {name: value for name, value in defaults.items() if name != _MODE}
    return parse_options(kind, with_defaults(own, defaults, kind), also_known=_table_names())


def with_defaults(given: Mapping[str, str], defaults: Mapping[str, str], kind: type[Any]) -> dict[str, str]:
    """Return the options, with the defaults that this kind of options has."""
    own = known_names(kind)
    return overridden({name: value for name, value in defaults.items() if name in own}, given, kind)


def _value(given: Mapping[str, str], wanted: str) -> str | None:
    return next((value for name, value in given.items() if name.lower() == wanted), None)


def _stream_names() -> frozenset[str]:
    return frozenset(known_names(SourceOptions) | known_names(SinkOptions))


def _table_names() -> frozenset[str]:
    return frozenset(known_names(TableSourceOptions) | known_names(TableSinkOptions))
