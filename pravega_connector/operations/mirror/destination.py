"""Destination of a mirror: its creation with the source's settings, and its scalings at barriers."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.values import ScalingPolicy, StreamConfig
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ControllerError,
    StreamNotFoundError,
    StreamSealedError,
)
from pravega_connector.operations.mirror.order import Ranges, affected, is_aligned, scalings
from pravega_connector.stores.segment_stores import SegmentStores
from pravega_connector.wire import SegmentRange, StreamName

_log: Final = logging.getLogger(__name__)
# Seconds to repeat a scaling that was refused, because others scale the stream, too.
_SCALING: Final = 30.0


class Destination:
    """The stream that a mirror writes."""

    def __init__(self, stores: SegmentStores, stream: StreamName) -> None:
        self.stores, self.stream = stores, stream
        self._controller = stores.controller

    def create(self, config: StreamConfig) -> None:
        """Create scope and stream.

        The stream has the settings of ``config``, but a fixed number of segments, which only barriers change.
        """
        self._controller.create_scope(self.stream.scope)
        self._controller.create_stream_with(self.stream, replace(config, scaling=ScalingPolicy.fixed(1)))

    def allow_merges(self) -> None:
        """Set the minimum number of segments to 1. Servers refuse a merge below it."""
        config = self._controller.stream_config(self.stream)
        if config.scaling.min_segments > 1:
            self._update(config)

    def _update(self, config: StreamConfig) -> None:
        """Replace the configuration. The server merges all segments of a stream with a fixed number."""
        self._controller.update_stream(self.stream, replace(config, scaling=replace(config.scaling, min_segments=1)))

    @property
    def is_sealed(self) -> bool:
        """True if the stream accepts no more events."""
        return not self._controller.current_segments(self.stream)

    def seal(self) -> None:
        """Seal the stream."""
        self._controller.seal_stream(self.stream)

    def pass_barrier(self, before: Sequence[SegmentRange], after: Sequence[SegmentRange]) -> int:
        """Scale the stream at a barrier, as :mod:`~.order` explains. Return the number of scalings.

        All events of the segments ``before`` are visible. Raises StreamSealedError, ControllerErrors.
        """
        count, polls = 0, Polls(Deadline(_SCALING), 0.05, 1.0)
        while True:
            current = self._controller.current_segments(self.stream)
            if not current:
                raise StreamSealedError.of(self.stream)
            plan = scalings(current, before, after)
            if not plan:
                return count
            try:
                self._scale(current, after, plan[0])
            except (AuthenticationError, StreamNotFoundError, StreamSealedError):
                raise
            except (ConfigError, ControllerError):  # others may have scaled these segments
                if not polls.again():
                    raise
                continue
            count += 1
            if len(plan) == 1:
                return count
            # The merged segment owns all points: what follows needs no more than its ranges.
            before = ()

    def _scale(self, current: Sequence[SegmentRange], after: Sequence[SegmentRange], ranges: Ranges) -> None:
        seal = [each.id for each in affected(current, after)]
        self._controller.scale_stream(self.stream, seal, ranges)
        _log.info("stream %s: %d segments were replaced by %d", self.stream, len(seal), len(ranges))

    def is_aligned(self, source: Sequence[SegmentRange]) -> bool:
        """Return True if each source segment has a segment with the same range."""
        current = self._controller.current_segments(self.stream)
        return bool(current) and is_aligned(current, source)

    def change_tags(self, removed: Sequence[str], added: Sequence[str]) -> bool:
        """Add and remove tags of the stream. Its other tags stay.

        Return True after a change. Then the stream needs another barrier, because a change may merge segments.
        """
        config = self._controller.stream_config(self.stream)
        tags = tuple(sorted(set(config.tags) - set(removed) | set(added)))
        if tags == tuple(sorted(config.tags)):
            return False
        self._update(replace(config, tags=tags))
        return True
