"""Arguments of the client's calls: accepted types, checks at the call, and conversions."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar

from pravega_connector.core.values import MAX_LONG, ScalingPolicy
from pravega_connector.errors import ConfigError, InvalidNameError, MalformedStreamCutError
from pravega_connector.wire import StreamCut, StreamName, TableName
from pravega_serde.format_table import formats, serializer_for
from pravega_serde.suggestions import which_name

if TYPE_CHECKING:
    from pravega_serde.routing import EventRouter

C = TypeVar("C")
T = TypeVar("T")

#: A stream: its full name, or its name in the configured scope.
Stream = StreamName | str
#: A key-value table: its full name, or its name in the configured scope.
NamedTable = TableName | str
#: One stream, or several to be read together.
Streams = Stream | Iterable[Stream]
#: A position in a stream: a cut, its text, ``earliest``, ``latest`` or a time. For several streams, a cut for each.
Position = StreamCut | str | Iterable[StreamCut | str]


class KeyOptions(TypedDict, total=False):
    """Options of a read of one routing key."""

    key: str | None
    router: EventRouter | None
    keep_other_keys: bool


class FollowOptions(KeyOptions, total=False):
    """Options of :meth:`PravegaClient.follow`."""

    start: Position | None


class ReadOptions(FollowOptions, total=False):
    """Options of :meth:`PravegaClient.read`."""

    end: Position | None
    limit: int | None


#: Behavior if the object exists already, or is missing.
IfExists = Literal["ignore", "error"]

# Classes that are accepted as a format.
_CLASSES: Final[dict[Any, str]] = {str: "string", bytes: "bytes"}

# Argument names of other clients, of the command line and of Spark's options -> names in this client.
_MEANT: Final = {
    **dict.fromkeys(("value_serializer", "value_deserializer", "deserializer"), "serializer"),
    **dict.fromkeys(("schema", "format", "encoding"), "serializer"),
    "key": "routing_key router",
    "partition_key": "routing_key key router",
    "routing_key": "key router",
    **dict.fromkeys(("begin", "from_", "from_beginning", "offset", "auto_offset_reset", "start_stream_cut"), "start"),
    **dict.fromkeys(("until", "end_stream_cut"), "end"),
    **dict.fromkeys(("max_events", "max_messages", "max_records", "max_rows", "count"), "limit"),
    **dict.fromkeys(("lease_time", "transaction_timeout"), "lease"),
    **dict.fromkeys(("partitions", "num_partitions", "num_segments", "segments"), "segments partitions"),
    **dict.fromkeys(("topic", "topics"), "stream streams"),
}
LONGEST: Final = 1e9  # seconds that a call may wait, about thirty years
_MODES: Final = frozenset({"mode", "writer_mode", "exactly_once", "at_least_once", "enable_idempotence", "acks"})


def _is_kind(value: object, kind: str) -> str:
    return f"{kind}, not {value!r}" if isinstance(value, str | int | float | None) else f"{kind}, not {_name_of(value)}"


def _name_of(value: object) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


# ---------------------------------------------------------------- streams


def stream_name(stream: Stream, scope: str | None) -> StreamName:
    """Return the full name of a stream. Raises InvalidNameError."""
    if isinstance(stream, StreamName):
        return stream
    if not isinstance(stream, str):
        raise InvalidNameError(_is_kind(stream, "a stream must be 'scope/stream' or a StreamName"))
    if "/" in stream:
        return StreamName.parse(stream)
    if scope is None:
        raise InvalidNameError(f"invalid stream {stream!r}: write 'scope/stream', or set the client's scope")
    return StreamName(scope, stream)


def table_name(table: NamedTable, scope: str | None) -> TableName:
    """Return the full name of a key-value table. Raises InvalidNameError."""
    if isinstance(table, TableName):
        return table
    if not isinstance(table, str):
        raise InvalidNameError(_is_kind(table, "a table must be 'scope/table' or a TableName"))
    if "/" in table:
        return TableName.parse(table)
    if scope is None:
        raise InvalidNameError(f"invalid table {table!r}: write 'scope/table', or set the client's scope")
    return TableName(scope, table)


def is_one_stream(streams: Streams) -> bool:
    """Return True for a single stream, False for a collection of streams."""
    return isinstance(streams, StreamName | str) or not isinstance(streams, Iterable)


def stream_names(streams: Streams, scope: str | None) -> list[StreamName]:
    """Return the full names of one or several streams.

    Raises InvalidNameError. Raises ConfigError for an empty collection and for duplicates.
    """
    if isinstance(streams, StreamName | str) or not isinstance(streams, Iterable):
        return [stream_name(streams, scope)]
    names = [stream_name(each, scope) for each in streams]
    if not names:
        raise ConfigError("no stream is set: pass one stream, or a list of streams")
    if len(set(names)) < len(names):
        raise ConfigError(f"a stream is listed twice: {', '.join(map(str, names))}")
    return names


def places(place: Position | None, streams: list[StreamName], what: str) -> list[StreamCut | str | None]:
    """Return a position for each stream: the same for all, or a separate cut for each.

    Raises ConfigError for an invalid position. Raises MalformedStreamCutError for a cut of another stream, and if a
    stream has no cut.
    """
    if place is None or isinstance(place, str):
        return [place] * len(streams)
    own = own_cuts(place, what)
    for stream in own:
        if stream not in streams:
            raise MalformedStreamCutError(
                f"the stream cut of argument {what!r} is of stream {stream}, not of {', '.join(map(str, streams))}"
            )
    for stream in streams:
        if stream not in own:
            raise MalformedStreamCutError(
                f"argument {what!r} has no stream cut of stream {stream}: pass one for each stream"
            )
    return [own[stream] for stream in streams]


def own_cuts(place: Any, what: str) -> dict[StreamName, StreamCut]:
    """Return stream cuts by stream, from one or several, each a StreamCut or its text.

    Raises ConfigError for an invalid position, MalformedStreamCutError for an invalid text.
    """
    if isinstance(place, StreamCut):
        given: list[Any] = [place]
    elif isinstance(place, Iterable) and not isinstance(place, bytes | Mapping):
        given = list(place)
    else:
        given = [None]
    if not all(isinstance(each, StreamCut | str) for each in given):
        kinds = (
            "must be 'earliest', 'latest', a StreamCut or its text, 'timestamp:2026-11-21T10:00:00Z', or a list with "
            "a cut for each stream"
        )
        text = _is_kind(place, f"argument {what!r} {kinds}")
        if isinstance(place, datetime):
            text += f": write 'timestamp:{place.isoformat()}' (without a zone, the time is UTC)"
        raise ConfigError(text)
    return {cut.stream: cut for cut in (StreamCut.from_text(e) if isinstance(e, str) else e for e in given)}


# ---------------------------------------------------------------- serializers


def serializer_of(given: Any, *needs: str) -> Any:
    """Return the serializer for the name of a format, ``str`` or ``bytes``, or the serializer that is passed.

    None stays None. ``needs`` are the methods that the serializer must have. Raises UnsupportedFormatError, SerdeError
    for a format that needs options, ConfigError for an object that is not a serializer.
    """
    if given is None:
        return None
    if isinstance(given, str):
        return serializer_for(given)
    if isinstance(given, type):
        if given in _CLASSES:
            return serializer_for(_CLASSES[given])
        if all(hasattr(given, name) for name in needs):
            raise ConfigError(f"{given.__name__} is a class: pass an instance, {given.__name__}(…)")
    elif all(callable(getattr(given, name, None)) for name in needs):
        return given
    if isinstance(given, StreamCut):
        raise ConfigError("the serializer must not be a stream cut: write start=cut")
    known = ", ".join(map(repr, formats()))
    raise ConfigError(
        _is_kind(given, f"a serializer must be a format's name ({known}) or an object with {' and '.join(needs)}")
    )


def error_handler(given: Any) -> None:
    """Raise ConfigError unless the value is None or can be called with the error of an event."""
    if given is not None and not callable(given):
        raise ConfigError(
            "argument 'on_error' must be a function that accepts the error of each malformed event (such as "
            f"errors.append), not {given!r}"
        )


# ---------------------------------------------------------------- numbers and words


def seconds(what: str, value: Any, *, optional: bool = True) -> None:
    """Raise ConfigError unless the value is a positive number of seconds, or None if ``optional``."""
    if not (optional and value is None) and (not _is_number(value) or not 0 < value < math.inf):
        raise ConfigError(f"argument {what!r} must be a positive number of seconds, not {value!r}")


def wait(what: str, value: Any) -> None:
    """Raise ConfigError unless the value is a finite number of seconds to wait, 0 or more."""
    if not _is_number(value) or not 0 <= value <= LONGEST:
        raise ConfigError(f"argument {what!r} must be a number of seconds, not {value!r}")


def number(what: str, value: Any) -> None:
    """Raise ConfigError unless the value is a finite number of seconds, or None. Below 0, the time is over."""
    if value is not None and not (_is_number(value) and -math.inf < value <= LONGEST):
        raise ConfigError(f"argument {what!r} must be a number of seconds, not {value!r}")


def count(what: str, value: Any, least: int = 0, most: int = MAX_LONG, *, optional: bool = True) -> None:
    """Raise ConfigError unless the value is a whole number from ``least`` to ``most``, or None if ``optional``."""
    if optional and value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        limit = f" and at most {most}" if isinstance(value, int) and value > most else ""
        raise ConfigError(f"argument {what!r} must be a whole number of at least {least}{limit}, not {value!r}")


def millis(what: str, value: Any) -> None:
    """Raise ConfigError unless the value is a time in whole milliseconds."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(
            f"argument {what!r} must be a whole number of milliseconds, not {value!r}: for a datetime, write "
            "round(moment.timestamp() * 1000)"
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def scaling(segments: Any) -> ScalingPolicy:
    """Return the policy for a number of segments, or the policy that is passed. Raises ConfigError."""
    if isinstance(segments, ScalingPolicy):
        return segments
    if not isinstance(segments, int) or isinstance(segments, bool):
        hint = "; write the scope and the stream as one argument: 'scope/stream'" if isinstance(segments, str) else ""
        raise ConfigError(
            _is_kind(segments, "argument 'segments' must be a number of segments or a ScalingPolicy") + hint
        )
    return ScalingPolicy.fixed(segments)


def instance(what: str, value: Any, kind: Any, how: str, *, optional: bool = True) -> None:
    """Raise ConfigError unless the value is of class ``kind``, or None if ``optional``.

    ``how`` explains how to get one.
    """
    if not (optional and value is None) and not isinstance(value, kind):
        raise ConfigError(_is_kind(value, f"argument {what!r} must be a {kind.__name__} ({how})"))


def listed(what: str, values: Iterable[T]) -> list[T]:
    """Return several values as a list. Raises ConfigError for a single one, also for a text."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | bytearray | memoryview):
        raise ConfigError(_is_kind(values, f"argument {what!r} must be a list or another iterable"))
    return list(values)


def is_error(what: str, value: str) -> bool:
    """Return True if ``if_exists`` or ``if_missing`` is ``error``.

    Raises ConfigError unless it is ``ignore`` or ``error``.
    """
    if value not in ("ignore", "error"):
        raise ConfigError(_is_kind(value, f"argument {what!r} must be 'ignore' or 'error'"))
    return value == "error"


def only(call: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise ConfigError for an unknown argument name, and suggest the intended one."""
    for name in given:
        if name not in known:
            raise _no_argument(call, name, known)


def _no_argument(call: str, name: str, known: Collection[str]) -> ConfigError:
    if name in _MODES:
        return ConfigError(
            f"{call} has no argument {name!r}: a writer neither duplicates nor loses flushed events; to make events "
            "visible together or not at all, write client.transactions(stream, serializer)"
        )
    hint = which_name(name, known, _MEANT)
    return ConfigError(f"{call} has no argument {name!r}{hint}; its arguments: {', '.join(known)}")


def hinted(kind: type[C]) -> type[C]:
    """Let the public methods of a class raise ConfigError with the right name for an unknown argument."""
    for name, method in list(vars(kind).items()):
        code = getattr(method, "__code__", None)
        if code is not None and not name.startswith("_") and not code.co_flags & inspect.CO_VARKEYWORDS:
            setattr(kind, name, _with_hints(method, code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]))
    return kind


def _with_hints(method: Callable[..., Any], known: tuple[str, ...]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except TypeError:
            unknown = next((name for name in named if name not in known), None)
            if unknown is None:
                raise
        raise _no_argument(method.__name__, unknown, known)

    return call
