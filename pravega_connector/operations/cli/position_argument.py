"""Positions in a stream on the command line: a word, a time, or a stream cut in any form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click

from pravega_connector.client import PravegaClient, StreamCut, StreamName
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.operations.monitoring import parse_time, read_cut
from pravega_connector.reader.positions import needs_stream, parse_place, valid_cut

_FILE: Final = "@"


class _Position(click.ParamType):  # type: ignore[type-arg,unused-ignore]  # generic since click 8.4
    """Position in a stream. A file or standard input is read with the command line, before a server is needed."""

    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value == "-":
            return sys.stdin.read()
        if value.startswith(_FILE):
            return _content(Path(value[len(_FILE) :]))
        return str(value)


#: Type of an option that accepts a position. Its value is a word, a time or the text of a stream cut.
POSITION: Final = _Position()


def resolve_position(client: PravegaClient, stream: StreamName, text: str, *, end: bool = False) -> StreamCut:
    """Return the stream cut at ``earliest`` (or ``head``), ``latest`` (``tail``), a time, or a stream cut.

    A cut has any form that :func:`pravega_connector.stream_cuts.read_cut` accepts. For a time, all events of that time
    or later are after the cut. With ``end``, all earlier events are before it.

    Raises MalformedStreamCutError, TimeUnknownError, ConfigError, StreamNotFoundError.
    """
    if (millis := _time(text)) is not None:
        return client.cut_at(client.require_stream(stream), millis, end=end)
    try:
        found = read_cut(text, stream)
    except MalformedStreamCutError:
        cut = parse_place(client, stream, text, "the command line", end=end, also=", or @FILE with one")
        assert cut is not None
        return cut
    return valid_cut(client, found)


def cut_argument(text: str, stream: StreamName | None = None) -> StreamCut:
    """Return the stream cut of an argument. Raises MalformedStreamCutError, also for a position that is not a cut."""
    if needs_stream(text):
        raise MalformedStreamCutError(
            f"{text!r} is a position in a stream, not a stream cut: 'pravega-serde cut of {stream or 'SCOPE/STREAM'} "
            f"--at {text}' prints its cut"
        )
    return read_cut(text, stream)


def read_cut_file(path: Path, stream: StreamName | None = None) -> StreamCut:
    """Return the cut in a file. Raises ConfigError for an unreadable file, MalformedStreamCutError."""
    return read_cut(_content(path), stream)


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid UTF-8"
        raise ConfigError(f"cannot read a stream cut from {path}: {reason}; check the path") from None


def _time(text: str) -> int | None:
    try:
        return parse_time(text)
    except ConfigError:
        return None
