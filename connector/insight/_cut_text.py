"""Stream cuts in the forms that people and programs hand on, and back.

==========  ====================================================================================================
text        what Java's ``StreamCut.asText`` gives, and ``StreamCut.from`` reads
json        ``{"scope/stream": {"0.#epoch.0": 120}}``, as the source's options take it
positions   ``scope/stream:0.#epoch.0=120,1.#epoch.0=0``
==========  ====================================================================================================

Beside these the JSON of an offset (``{"streams": {…}, "version": …}``) and ``checkpoint:/path`` are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from connector.checkpoint import committed_offset
from connector.errors import ConfigError, InvalidNameError, MalformedStreamCutError
from connector.wire import StreamCut, StreamName, parse_segment_name, segment_name

__all__ = ["CUT_FORMS", "cuts_of", "parse_time", "read_cut", "segment_label", "write_cut"]

#: Forms that a cut can be written in.
CUT_FORMS: Final = ("text", "json", "positions")
_CHECKPOINT: Final = "checkpoint:"


def read_cut(text: str, stream: StreamName | None = None) -> StreamCut:
    """The cut that a text in any of the forms stands for; ``stream`` chooses among several.

    Raises MalformedStreamCutError, ConfigError for a checkpoint that cannot be read or has several streams.
    """
    text = text.strip()
    if text.startswith(_CHECKPOINT):
        return _chosen(cuts_of(committed_offset(text[len(_CHECKPOINT) :])), stream)
    if text.startswith("{"):
        return _chosen(_from_json(text), stream)
    if ":" in text:
        return _chosen(_from_positions(text), stream)
    return StreamCut.from_text(text, stream)


def write_cut(cut: StreamCut, form: str) -> str:
    """The cut in one of CUT_FORMS, on one line."""
    if form == "text":
        return cut.to_text()
    positions = {segment_label(cut.stream, i): at for i, at in cut.positions.items()}
    if form == "json":
        return json.dumps({str(cut.stream): positions})
    return f"{cut.stream}:" + ",".join(f"{label}={at}" for label, at in positions.items())


def segment_label(stream: StreamName, segment_id: int) -> str:
    """The short name of a segment: ``0.#epoch.0``."""
    return segment_name(stream, segment_id).rsplit("/", 1)[1]


def cuts_of(offset: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
    """The position in each stream, from an offset of the Spark source. Raises MalformedStreamCutError."""
    return {cut.stream: cut for name, positions in offset["streams"].items() for cut in [_cut(name, positions)]}


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of a number or a time of ISO 8601, which is UTC if it names no zone. ConfigError."""
    if text.strip().isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ConfigError(f"{text!r} is no time: write 2026-11-21T10:00:00Z, or milliseconds since 1970") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _chosen(cuts: Mapping[StreamName, StreamCut], stream: StreamName | None) -> StreamCut:
    if stream is not None and stream in cuts:
        return cuts[stream]
    names = ", ".join(map(str, cuts)) or "no stream"
    if stream is not None or len(cuts) != 1:
        raise MalformedStreamCutError(f"one stream's cut is wanted{f', of {stream}' if stream else ''}; it has {names}")
    return next(iter(cuts.values()))


def _from_json(text: str) -> dict[StreamName, StreamCut]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise MalformedStreamCutError(f"not a stream cut: it begins like JSON and is none ({error})") from None
    streams = value.get("streams", value)
    if not isinstance(streams, dict):
        raise MalformedStreamCutError('not a stream cut: write {"scope/stream": {"0.#epoch.0": 120}}')
    return cuts_of({"streams": streams})


def _from_positions(text: str) -> dict[StreamName, StreamCut]:
    name, _, rest = text.partition(":")
    pairs = (item.rpartition("=") for item in rest.split(",")) if rest.strip() else ()
    cut = _cut(name.strip(), {segment.strip(): offset.strip() for segment, _, offset in pairs})
    return {cut.stream: cut}


def _cut(name: str, positions: Any) -> StreamCut:
    try:
        stream = StreamName.parse(name)
        return StreamCut(stream, {_segment(stream, key): int(at) for key, at in positions.items()})
    except (AttributeError, TypeError, ValueError, InvalidNameError) as error:
        raise MalformedStreamCutError(
            'not a stream cut: write {"scope/stream": {"0.#epoch.0": 120}} or scope/stream:0.#epoch.0=120 '
            f"({error})"
        ) from None


def _segment(stream: StreamName, key: str) -> int:
    """A segment by its short name, or by its id."""
    return int(key) if key.isdecimal() and "#" not in key else parse_segment_name(f"{stream}/{key}")[1]
