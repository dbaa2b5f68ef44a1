"""Places in a stream as the command line names them: a word, a time, or a stream cut in any form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from pravega_connector.client import PravegaClient, StreamCut, StreamName
from pravega_connector.errors import ConfigError, MalformedStreamCutError
from pravega_connector.monitoring import parse_time, read_cut
from pravega_connector.reader.positions import parse_place, valid_cut

#: Metavariable of an option that names a place.
PLACES: Final = "PLACE"
_FILE: Final = "@"


def place(client: PravegaClient, stream: StreamName, text: str, *, end: bool = False) -> StreamCut:
    """The cut at ``earliest`` (or ``head``), ``latest`` (``tail``), a time, or a stream cut.

    A cut is given in any form that :func:`pravega_connector.monitoring.read_cut` takes, as ``@file``, or as ``-`` for
    standard input. With ``end`` no event before a time lies behind the cut, otherwise none of the time or later before
    it.

    Raises MalformedStreamCutError, TimeUnknownError, ConfigError, StreamNotFoundError.
    """
    if text == "-":
        found = read_cut(sys.stdin.read(), stream)
    elif text.startswith(_FILE):
        found = read_cut_file(Path(text[len(_FILE) :]), stream)
    elif (millis := _time(text)) is not None:
        return client.cut_at(client.require_stream(stream), millis, end=end)
    else:
        try:
            found = read_cut(text, stream)
        except MalformedStreamCutError:
            cut = parse_place(client, stream, text, "the command line", end=end, also=", @file with one")
            assert cut is not None
            return cut
    return valid_cut(client, found)


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
