"""Text forms of stream cuts, and the comparison of two cuts.

==========  ====================================================================================================
text        Java's ``StreamCut.asText``, which ``StreamCut.from`` reads
json        ``{"scope/stream": {"0.#epoch.0": 120}}``, as in the options of the source
positions   ``scope/stream:0.#epoch.0=120,1.#epoch.0=0``
==========  ====================================================================================================

In addition, the JSON of an offset (``{"streams": {…}, "version": …}``) and ``checkpoint:/path`` are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pravega_connector.checkpoint import committed_offset
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import InvalidNameError, MalformedStreamCutError
from pravega_connector.reader.positions import parse_time as parse_time  # noqa: PLC0414 - exported by the package
from pravega_connector.stores.segments import sealed_lengths
from pravega_connector.wire import SegmentRange, StreamCut, StreamName, parse_segment_name, segment_epoch, segment_name
from pravega_connector.wire.cuts import malformed_cut

#: Text forms of a cut.
CUT_FORMS: Final = ("text", "json", "positions")
_CHECKPOINT: Final = "checkpoint:"


def read_cut(text: str, stream: StreamName | None = None) -> StreamCut:
    """Read a cut in any of the forms; ``stream`` selects one of several.

    Raises MalformedStreamCutError, ConfigError for an unreadable checkpoint or a checkpoint of several streams.
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
    """Return a cut in one of CUT_FORMS, on one line."""
    if form == "text":
        return cut.to_text()
    positions = {segment_label(cut.stream, i): at for i, at in cut.positions.items()}
    if form == "json":
        return json.dumps({str(cut.stream): positions})
    return f"{cut.stream}:" + ",".join(f"{label}={at}" for label, at in positions.items())


def segment_label(stream: StreamName, segment_id: int) -> str:
    """Return the short name of a segment: ``0.#epoch.0``."""
    return segment_name(stream, segment_id).rsplit("/", 1)[1]


def cuts_of(offset: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
    """Return the position in each stream of an offset of the Spark source. Raises MalformedStreamCutError."""
    return {cut.stream: cut for name, positions in offset["streams"].items() for cut in [_cut(name, positions)]}


def _chosen(cuts: Mapping[StreamName, StreamCut], stream: StreamName | None) -> StreamCut:
    if stream is not None and stream in cuts:
        return cuts[stream]
    if stream is not None or len(cuts) != 1:
        names = ", ".join(map(str, cuts)) or "no stream"
        raise malformed_cut(f"expected one of {stream or 'a single stream'}, found {names}")
    return next(iter(cuts.values()))


def _from_json(text: str) -> dict[StreamName, StreamCut]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise malformed_cut(f"invalid JSON ({error})") from None
    streams = value.get("streams", value)
    if not isinstance(streams, dict):
        raise malformed_cut('write {"scope/stream": {"0.#epoch.0": 120}}')
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
        raise malformed_cut(
            f'write {{"scope/stream": {{"0.#epoch.0": 120}}}} or scope/stream:0.#epoch.0=120 ({error})'
        ) from None


def _segment(stream: StreamName, key: str) -> int:
    """Return the id of a segment from its short name or its id."""
    return int(key) if key.isdecimal() and "#" not in key else parse_segment_name(f"{stream}/{key}")[1]


# ---- comparison ----

Relation = Literal["before", "equal", "after", "incomparable"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Position of the first cut relative to the second."""

    relation: Relation
    """``incomparable``: before the second cut for some routing keys and after it for others."""
    bytes: int | None
    """Bytes between the cuts, including 8 for each event; None for incomparable cuts and unknown lengths."""


def compare_cuts(first: StreamCut, second: StreamCut, client: PravegaClient | None = None) -> Comparison:
    """Compare two cuts of a stream. Without a client, only cuts with the same segments can be compared.

    Raises MalformedStreamCutError for cuts of different streams, ControllerError.
    """
    if first.stream != second.stream:
        raise MalformedStreamCutError(f"the cuts are of different streams: {first.stream} and {second.stream}")
    if first.positions.keys() == second.positions.keys():
        pairs = [(at, second.positions[i]) for i, at in first.positions.items()]
        relation = _relation((a > b) - (a < b) for a, b in pairs)
        between = None if relation == "incomparable" else sum(abs(max(a, 0) - max(b, 0)) for a, b in pairs)
        return Comparison(relation, between)
    if client is None:
        raise MalformedStreamCutError(
            f"the cuts of {first.stream} have different segments: pass a client to compare them"
        )
    relation = _relation(_signs(client, first, second))
    match relation:
        case "before":
            return Comparison(relation, _bytes_between(client, first, second))
        case "after":
            return Comparison(relation, _bytes_between(client, second, first))
    return Comparison(relation, None)


def _relation(signs: Iterable[int]) -> Relation:
    found = set(signs) - {0}
    if len(found) == 2:
        return "incomparable"
    return "equal" if not found else "before" if found == {-1} else "after"


def _signs(client: PravegaClient, first: StreamCut, second: StreamCut) -> Iterator[int]:
    """Yield signs for each two segments that share keys: -1 if the first cut is before the second, 1 if after."""
    ranges = _ranges(client, first.stream, {*first.positions, *second.positions})
    for a, at in first.positions.items():
        for b, to in second.positions.items():
            if a == b:
                yield (at > to) - (at < to)
            elif ranges[a].low < ranges[b].high and ranges[b].low < ranges[a].high:
                yield 1 if a > b else -1  # if two segments share keys, the later one has the higher epoch


def _ranges(client: PravegaClient, stream: StreamName, segment_ids: set[int]) -> dict[int, SegmentRange]:
    found: dict[int, SegmentRange] = {}
    for epoch in sorted({segment_epoch(i) for i in segment_ids}):
        found |= {r.id: r for r in client.controller.epoch_segments(stream, epoch)}
    if missing := segment_ids - found.keys():
        raise MalformedStreamCutError(f"stream {stream} has no segment {min(missing)}: the cut is of another stream")
    return found


def _bytes_between(client: PravegaClient, start: StreamCut, end: StreamCut) -> int | None:
    stream = start.stream
    ids = client.controller.segments_between(start, end)
    ends = {i: at for i, at in end.positions.items() if i in ids}
    infos = client.stores.segment_infos(stream, [i for i in ids if i not in ends])
    ends |= {i: info.write_offset for i, info in infos.items() if info.exists}
    ends |= sealed_lengths(client.stores, stream, [i for i, info in infos.items() if not info.exists])
    if ends.keys() != set(ids):
        return None
    return sum(max(ends[i], 0) - max(start.positions.get(i, 0), 0) for i in ids)
