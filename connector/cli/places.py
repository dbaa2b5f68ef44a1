"""Places in a stream as the command line names them: a word, a time, or a stream cut in any form."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import Final

from ..client import PravegaClient, StreamCut, StreamName
from ..errors import ConfigError, MalformedStreamCutError
from ..insight import parse_time, read_cut

__all__ = ["PLACES", "place", "read_cut_file"]

#: Metavariable of an option that names a place.
PLACES: Final = "PLACE"
_HEAD: Final = ("earliest", "head")
_TAIL: Final = ("latest", "tail")
_FILE: Final = "@"


def place(client: PravegaClient, stream: StreamName, text: str, *, end: bool = False) -> StreamCut:
    """The cut at ``earliest`` (or ``head``), ``latest`` (``tail``), a time, or a stream cut.

    A cut is given in any form that :func:`~connector.insight.read_cut` takes, as ``@file``, or as ``-`` for standard
    input. With ``end`` no event before a time lies behind the cut, otherwise none of the time or later before it.

    Raises MalformedStreamCutError, TimeUnknownError, ConfigError, StreamNotFoundError.
    """
    client.require_stream(stream)
    word = text.strip().lower()
    if word in _HEAD:
        return client.head(stream)
    if word in _TAIL:
        return client.tail(stream)
    if (millis := _time(text)) is not None:
        return client.cut_at(stream, millis, end=end)
    cut = _cut(text, stream)
    if not client.controller.is_cut_valid(cut):
        raise MalformedStreamCutError(
            f"the stream cut does not cover stream {stream} exactly once: take one that Pravega gave for this stream"
        )
    return cut


def read_cut_file(path: Path, stream: StreamName | None = None) -> StreamCut:
    """The cut in a file. Raises ConfigError for a file that cannot be read, MalformedStreamCutError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid UTF-8"
        raise ConfigError(f"the stream cut cannot be read from {path}: {reason}") from None
    return read_cut(text, stream)


def _time(text: str) -> int | None:
    try:
        return parse_time(text)
    except ConfigError:
        return None


def _cut(text: str, stream: StreamName) -> StreamCut:
    if text == "-":
        cut = read_cut(sys.stdin.read(), stream)
    elif text.startswith(_FILE):
        cut = read_cut_file(Path(text[len(_FILE) :]), stream)
    else:
        try:
            cut = read_cut(text, stream)
        except MalformedStreamCutError as error:
            if near := difflib.get_close_matches(text.strip().lower(), (*_HEAD, *_TAIL), n=1):
                raise ConfigError(f"{text!r} is no place in a stream: did you mean {near[0]!r}?") from None
            raise MalformedStreamCutError(
                f"{error.message}; a place is earliest, latest, a time, a stream cut or @file with one"
            ) from None
    # Java puts -1 for a segment that has not begun, which no server takes.
    return StreamCut(cut.stream, {segment_id: max(at, 0) for segment_id, at in cut.positions.items()})
