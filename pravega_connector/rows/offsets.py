"""Offset of the source: the end of a micro-batch, as the JSON value that Spark keeps in its checkpoint.

::

    {"streams": {"scope/stream": {"0.#epoch.0": 1234, …}, …},  a position in each stream
     "from":    {"scope/stream": {"0.#epoch.0": 500, …}, …},   its start, if not the end of the batch before
     "parts":   {"scope/stream": {"0.#epoch.0": [700, 900]}},  positions that divide segments among tasks
     "tasks":   262144,                                        bytes up to which segments share a task
     "marks":   {"scope/stream": 339, …},                      end of the watermarks, if columns use them
     "key":     "camera 7",                                    routing key, if the query reads only one
     "version": 1}

The range of a batch depends only on the offset before it and on its own. So a replay after a crash reads the same bytes
in the same parts, regardless of later changes. ``from`` has the streams that are new to the query, and the streams that
lost data and resume elsewhere. Without ``tasks`` each segment has a separate task.

Spark compares offsets as text. So keys are sorted and numbers canonical: the same position is always the same text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from pravega_connector.errors import ConfigError
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.wire import StreamCut, StreamName, parse_segment_name, segment_name
from pravega_serde.errors import PravegaError

_VERSION: Final = 1

Cuts = Mapping[StreamName, StreamCut]
Parts = Mapping[StreamName, Mapping[int, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class Offset:
    """End of a batch: positions, the streams with another start than the previous end, and divided segments.

    ``marks`` is the end of the watermarks of each stream. ``task_bytes`` is the number of bytes up to which segments
    share a task (0: each has its own). ``key`` is the routing key of a query that reads only one: the positions in
    segments of other keys have no meaning.
    """

    cuts: Cuts
    begins: Cuts = field(default_factory=dict)
    parts: Parts = field(default_factory=dict)
    marks: Mapping[StreamName, int] = field(default_factory=dict)
    task_bytes: int = 0
    key: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON value."""
        value: dict[str, Any] = {"streams": _cuts_json(self.cuts)}
        if self.begins:
            value["from"] = _cuts_json(self.begins)
        parts = {
            str(name): {_short(name, i): list(places) for i, places in sorted(segments.items())}
            for name, segments in sorted(self.parts.items())
            if segments
        }
        if parts:
            value["parts"] = parts
        if self.task_bytes and sum(len(cut.positions) for cut in self.cuts.values()) > 1:
            value["tasks"] = self.task_bytes
        if self.marks:
            value["marks"] = {str(name): end for name, end in sorted(self.marks.items())}
        if self.key is not None:
            value["key"] = self.key
        return value | {"version": _VERSION}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Offset:
        """Parse the JSON value. Raises ConfigError for another version, and for a value that is not an offset."""
        if value.get("version") != _VERSION:
            raise ConfigError(
                f"the checkpoint has an offset of version {value.get('version')!r}, but this connector reads version "
                f"{_VERSION}: use the connector that wrote it, or a new checkpoint"
            )
        try:
            cuts, begins = _cuts(value["streams"]), _cuts(value.get("from", {}))
            parts = {StreamName.parse(text): _places(text, of) for text, of in value.get("parts", {}).items()}
            marks = {StreamName.parse(text): int(end) for text, end in value.get("marks", {}).items()}
            task_bytes, key = int(value.get("tasks", 0)), value.get("key")
            if not isinstance(key, str | None):
                raise TypeError(f"a routing key must be a text, not {key!r}")
        except (KeyError, AttributeError, TypeError, ValueError, PravegaError) as error:
            raise ConfigError(f"the checkpoint has an offset that this connector did not write: {error}") from error
        return cls(cuts, begins, parts, marks, task_bytes, key)

    def slices_from(self, start: Offset) -> Iterator[SegmentSlice]:
        """Yield the slices of the batch between two offsets, in the order of its tasks. No server is called."""
        for stream, cut in sorted(self.cuts.items()):
            begin = self.begins.get(stream) or start.cuts.get(stream)
            if begin is not None:
                yield from slices_of(begin, cut, self.parts.get(stream, {}))


def slices_of(
    start: StreamCut, end: StreamCut, parts: Mapping[int, tuple[int, ...]] = MappingProxyType({})
) -> Iterator[SegmentSlice]:
    """Yield the ranges of segments between two cuts. No segment of one may be a successor of a segment of the other."""
    for segment_id, stop in end.positions.items():
        bounds = [max(start.positions.get(segment_id, 0), 0), *parts.get(segment_id, ()), stop]
        for begin, until in itertools.pairwise(bounds):
            if begin < until:
                yield SegmentSlice(end.stream, segment_id, begin, until)


def from_offset(value: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
    """Return the position in each stream. Raises ConfigError like :meth:`Offset.from_json`."""
    return dict(Offset.from_json(value).cuts)


def cut_of(name: StreamName, positions: Mapping[str, Any]) -> StreamCut:
    """Return a cut from short segment names, ``{"0.#epoch.0": 1234}``. Raises ConfigError, TypeError, ValueError."""
    return StreamCut(name, {parse_segment_name(f"{name}/{segment}")[1]: int(at) for segment, at in positions.items()})


def _cuts(value: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
    return {name: cut_of(name, positions) for name, positions in ((StreamName.parse(t), p) for t, p in value.items())}


def _places(text: str, value: Mapping[str, Any]) -> dict[int, tuple[int, ...]]:
    return {parse_segment_name(f"{text}/{short}")[1]: tuple(map(int, places)) for short, places in value.items()}


def _cuts_json(cuts: Cuts) -> dict[str, dict[str, int]]:
    return {
        str(name): dict(sorted((_short(name, i), at) for i, at in cut.positions.items()))
        for name, cut in sorted(cuts.items())
    }


def _short(name: StreamName, segment_id: int) -> str:
    return segment_name(name, segment_id).rsplit("/", 1)[1]
