"""The source's offset: one stream cut for each stream, as the JSON value that Spark keeps in its checkpoint.

``{"streams": {"scope/stream": {"0.#epoch.0": 1234, ...}}, "version": 1}``. Spark compares offsets as text, so keys are
sorted and numbers canonical: the same position is always the same text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from connector.errors import ConfigError
from connector.wire import StreamCut, StreamName, parse_segment_name, segment_name
from pravega_serde import PravegaError

__all__ = ["from_offset", "to_offset"]

_VERSION: Final = 1


def to_offset(cuts: Mapping[StreamName, StreamCut]) -> dict[str, Any]:
    """The JSON value of a position in each stream."""
    streams = {}
    for name in sorted(cuts):
        cut = cuts[name]
        texts = {_short(name, segment_id): offset for segment_id, offset in cut.positions.items()}
        streams[str(name)] = dict(sorted(texts.items()))
    return {"streams": streams, "version": _VERSION}


def from_offset(offset: Mapping[str, Any]) -> dict[StreamName, StreamCut]:
    """The position in each stream. Raises ConfigError for what this version did not write."""
    if offset.get("version") != _VERSION:
        raise ConfigError(
            f"the checkpoint holds an offset of version {offset.get('version')!r}, this connector reads version "
            f"{_VERSION}: use the connector that wrote it, or a new checkpoint"
        )
    try:
        return dict(_cut(*item) for item in offset["streams"].items())
    except (KeyError, AttributeError, TypeError, ValueError, PravegaError) as error:
        raise ConfigError(f"the checkpoint holds an offset that is not one of this connector: {error}") from error


def _cut(text: str, positions: Mapping[str, int]) -> tuple[StreamName, StreamCut]:
    name = StreamName.parse(text)
    by_id = {parse_segment_name(f"{name}/{segment}")[1]: int(offset) for segment, offset in positions.items()}
    return name, StreamCut(name, by_id)


def _short(name: StreamName, segment_id: int) -> str:
    return segment_name(name, segment_id).rsplit("/", 1)[1]
