"""Streams of a query: named ones, or those that match a pattern at each poll."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import translate
from typing import TYPE_CHECKING, Final

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.client.shared import shared_client
from pravega_connector.core.io import of_each
from pravega_connector.core.values import STATE_TAG
from pravega_connector.errors import ConfigError, ScopeNotFoundError, StreamNotFoundError
from pravega_connector.rows.options.source import SourceOptions
from pravega_connector.spark.known_clusters import note_answer
from pravega_connector.wire import StreamName

if TYPE_CHECKING:
    from pravega_connector.controller.service import ControllerClient

_REGEX: Final = "regex:"
_TAG: Final = "tag:"
_WILD: Final = frozenset("*?[")
_LEDGER: Final = "-ledger"  # suffix of a ledger without a tag, such as one that the user created


@dataclass(frozen=True, slots=True)
class Matches:
    """Streams that match a pattern: those to read, and those that match but hold state."""

    read: tuple[StreamName, ...] = ()
    state: frozenset[StreamName] = frozenset()


@dataclass(frozen=True, slots=True)
class StreamPattern:
    """Pattern of stream names. ``matches`` matches ``scope/stream``; ``scopes`` are the scopes to list, None for all.

    ``exact`` are the streams that the pattern names without a wildcard. With a ``tag``, it selects the streams that
    have the tag.
    """

    text: str
    scopes: tuple[str, ...] | None
    matches: re.Pattern[str]
    exact: frozenset[StreamName] = frozenset()
    tag: str | None = None

    @classmethod
    def parse(cls, text: str, scopes: tuple[str, ...]) -> StreamPattern:
        """Parse the text of the option with the scopes that other options name. Raises ConfigError."""
        if text.startswith(_REGEX):
            return cls(text, scopes or None, _compiled(text, text[len(_REGEX) :]))
        if text.startswith(_TAG):
            if not (tag := text[len(_TAG) :].strip()):
                raise ConfigError("option 'stream_pattern' has no tag after 'tag:': write 'tag:sales'")
            return cls(text, scopes or None, re.compile(".*"), tag=tag)
        globs = [glob for item in text.split(",") for glob in _with_scope(item.strip(), scopes)]
        named = {scope for scope, _ in globs}
        wild = any(_WILD & set(scope) for scope in named)
        matches = _compiled(text, "|".join(f"{translate(scope)[:-2]}/{translate(name)}" for scope, name in globs))
        exact = frozenset(StreamName(scope, name) for scope, name in globs if not _WILD & {*scope, *name})
        return cls(text, None if wild else tuple(sorted(named)), matches, exact)

    def find(self, controller: ControllerClient) -> Matches:
        """Return the streams that match now, without Pravega's own streams."""
        scopes = controller.list_scopes() if self.scopes is None else self.scopes
        found, state = list[StreamName](), set[StreamName]()
        for scope in scopes:
            if not scope.startswith("_"):
                with suppress(ScopeNotFoundError):  # it may be created later, like its streams
                    there = controller.list_streams(scope, tag=self.tag)
                    found += filter(self.covers, there)
                    state |= self._state_streams(controller, scope, there)
        return Matches(tuple(sorted(set(found) - state)), frozenset(state))

    def covers(self, name: StreamName) -> bool:
        """Return True if the pattern matches a stream of that name; the stream need not exist."""
        looked_in = not name.scope.startswith("_") and (self.scopes is None or name.scope in self.scopes)
        return looked_in and self.matches.fullmatch(str(name)) is not None

    def _state_streams(self, controller: ControllerClient, scope: str, there: Sequence[StreamName]) -> set[StreamName]:
        """Return the streams of a scope that hold state instead of events, except those named exactly."""
        if self.tag == STATE_TAG or not any(map(self.covers, there)):
            return set()
        known = set(there)
        tagged = controller.list_streams(scope, tag=STATE_TAG)
        return {*tagged, *(name for name in there if _is_ledger(name, known))} - self.exact


def _is_ledger(name: StreamName, there: set[StreamName]) -> bool:
    target = name.stream.removesuffix(_LEDGER)
    return target != name.stream and bool(target) and StreamName(name.scope, target) in there


def _with_scope(glob: str, scopes: tuple[str, ...]) -> list[tuple[str, str]]:
    scope, slash, name = glob.rpartition("/")
    if not glob or (slash and not scope) or not name or "/" in scope:
        raise ConfigError(f"option 'stream_pattern' contains {glob!r}: write 'name-*' or 'scope/name-*'")
    if slash:
        return [(scope, name)]
    if not scopes:
        raise ConfigError(
            f"option 'stream_pattern' contains {glob!r}, which has no scope: set option 'scope' (several as 'a,b'), "
            f"or write 'scope/{glob}', '*/{glob}' for all scopes"
        )
    return [(each, name) for each in scopes]


def _compiled(text: str, expression: str) -> re.Pattern[str]:
    try:
        return re.compile(expression)
    except re.error as error:
        raise ConfigError(f"option 'stream_pattern' has an invalid regular expression {text!r}: {error}") from None


class Streams:
    """Streams of one run of a query. A pattern is listed again when ``interval`` seconds have passed."""

    def __init__(
        self, client: PravegaClient, options: SourceOptions, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._clock = client, clock
        pattern = options.stream_pattern
        self._pattern = None if pattern is None else StreamPattern.parse(pattern, options.scopes())
        self._found = options.stream_names() if pattern is None else ()
        self._there: frozenset[StreamName] | None = None
        self._untagged = set[StreamName]()
        # The query would read its own dead letters again and again.
        self._never = None if options.dead_letter_stream is None else options.dead_letter_stream_name()
        self._interval = options.discovery_interval_ms / 1000
        self._next_look = -math.inf

    def freeze(self) -> None:
        """List the streams now, and not again."""
        self._next_look = -math.inf
        self.now()
        self._next_look = math.inf

    def now(self) -> tuple[StreamName, ...]:
        """Return the streams to read, sorted. The streams of a pattern are at most ``interval`` seconds old."""
        if self._pattern is not None and self._clock() >= self._next_look:
            matches = self._pattern.find(self._client.controller)
            left_out = {self._never, *self._created_as_state(matches.read)}
            self._found = tuple(stream for stream in matches.read if stream not in left_out)
            self._there = matches.state.union(matches.read)
            self._untagged.clear()
            self._next_look = self._clock() + self._interval
        return self._found

    def _created_as_state(self, found: Iterable[StreamName]) -> list[StreamName]:
        """Return the new streams with the state tag: a server lists a stream shortly before it lists its tags."""
        if self._pattern is None or self._pattern.tag is not None or self._there is None:
            return []
        new = [name for name in found if name not in self._there and name not in self._pattern.exact]
        return [name for name, is_state in zip(new, of_each(self._is_state, new), strict=True) if is_state]

    def _is_state(self, stream: StreamName) -> bool:
        with suppress(StreamNotFoundError):  # it was deleted after it was listed
            return STATE_TAG in self._client.controller.stream_config(stream).tags
        return False

    def covers(self, name: StreamName) -> bool:
        """Return True if the query selects a stream of that name, which need not exist or have its tag now."""
        return name in self._found if self._pattern is None else self._pattern.covers(name)

    def gone(self, known: Iterable[StreamName]) -> tuple[StreamName, ...]:
        """Return those of ``known`` that match the pattern, but were deleted; none without a pattern."""
        pattern, there = self._pattern, self._there
        if pattern is None or there is None:
            return ()
        left = tuple(name for name in known if name not in there and name != self._never and pattern.covers(name))
        return left if pattern.tag is None else tuple(self._deleted(left))

    def _deleted(self, left: Iterable[StreamName]) -> Iterator[StreamName]:
        """Yield the streams that do not exist. The others have lost their tag, so the query no longer reads them."""
        for name in left:
            if name not in self._untagged:
                if self._client.stream_exists(name):
                    self._untagged.add(name)
                else:
                    yield name

    def require(self) -> None:
        """Raise StreamNotFoundError for a named stream that does not exist, ControllerUnavailableError."""
        if self._pattern is not None:
            self.now()
        of_each(self._client.require_stream, self._found if self._pattern is None else ())


def require_streams(options: SourceOptions) -> tuple[StreamName, ...]:
    """Return the streams to read. Raises StreamNotFoundError for a missing one, ControllerUnavailableError."""
    # A user waits for it. Use half of the timeout: Spark retries a failed schema request once, in a new process.
    client = shared_client(options.config, options.timeout_ms / 2000, options.timeout_ms / 2000)
    streams = Streams(client, options)
    streams.require()
    note_answer(client.config)
    return streams.now()
