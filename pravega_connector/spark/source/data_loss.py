"""Data loss: events that were deleted before a query has read them; option ``fail_on_data_loss``.

Loss is detected in two places. The driver detects it when it plans a batch: retention, a truncation or a deletion has
passed the position of the query. A task detects it when it reads a range that was planned before. In both cases, the
loss raises an error with its position and size. Or the query continues with the remaining events, and the loss is
logged. The driver then adds it to the progress of the query as well.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from pravega_connector import metrics
from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.errors import DataLossError, SegmentTruncatedError
from pravega_connector.lag import Loss, lost_bytes, survey
from pravega_connector.reader.slices import SegmentSlice
from pravega_connector.wire import StreamCut

_log: Final = logging.getLogger(__name__)
_MOST_KEPT: Final = 1000  # maximum losses kept for the progress; the latest ones are kept


class DataLoss:
    """Losses of one run, as the driver finds them. ``fail`` is the option. Thread safe."""

    def __init__(self, client: PravegaClient, *, fail: bool) -> None:
        self._client, self._fail = client, fail
        self._told: dict[tuple[object, ...], Loss] = {}
        self._lock = threading.Lock()

    @property
    def losses(self) -> Sequence[Loss]:
        """Losses that this run has skipped."""
        with self._lock:
            return tuple(self._told.values())

    def resume(self, position: StreamCut, wanted: Callable[[Loss], Loss | None] | None = None) -> StreamCut | None:
        """Return the position at which a query resumes.

        It is ``position`` itself if no data is lost, and None if the stream was deleted. A segment that was read to its
        end before it was truncated is not a loss: its successors follow. ``wanted`` returns the part of a loss that the
        query should read. Raises DataLossError for this part if losses are errors.
        """
        found = survey(self._client.stores, position, beyond=True)
        parts = found.losses if wanted is None else map(wanted, found.losses)
        self.note([loss for loss in parts if loss is not None])
        return found.cut

    def note(self, losses: Iterable[Loss]) -> None:
        """Report losses, each once. Raises DataLossError if losses are errors."""
        with self._lock:
            fresh = [loss for loss in losses if _key(loss) not in self._told]
            if fresh and self._fail:
                raise loss_error(fresh)
            for loss in fresh:
                _note(loss)
                self._told[_key(loss)] = loss
            while len(self._told) > _MOST_KEPT:
                del self._told[next(iter(self._told))]


def _key(loss: Loss) -> tuple[object, ...]:
    # A deleted stream is polled again and again; the same loss is reported once.
    return loss.stream, loss.segment_id, loss.offset, loss.bytes, loss.deleted


def pass_over(piece: SegmentSlice, at: int, error: DataLossError, *, fail: bool) -> int:
    """Return the offset after a gap that a reader of a slice has found ``at`` an offset.

    If nothing is left, return the end of the slice. The loss is logged. If losses are errors (``fail``), raises
    DataLossError with its position and size.
    """
    cause = error.__cause__
    resumed = min(cause.start_offset, piece.end) if isinstance(cause, SegmentTruncatedError) else piece.end
    loss = Loss(piece.stream, piece.segment_id, at, resumed - at)
    if fail:
        raise loss_error([loss]) from error
    _note(loss)
    return resumed


def _note(loss: Loss) -> None:
    metrics.LOSSES.add(1, str(loss.stream))
    metrics.LOST_BYTES.add(loss.bytes or 0, str(loss.stream))
    _log.warning(
        "[PRAVEGA-DATA-LOSS] stream %s, %s; the query goes on with what is left (fail_on_data_loss=false)",
        loss.stream,
        loss,
    )


def loss_error(losses: Sequence[Loss]) -> DataLossError:
    """Return the error for losses in one stream, with the position of the first one and the total size."""
    first, *others = losses
    more = ""
    if others:
        least = "" if all(loss.bytes is not None for loss in losses) else "at least "
        more = f"; with {len(others)} more segments {least}{lost_bytes(list(losses)):,} bytes in total"
    return DataLossError(
        f"stream {first.stream}, {first}{more}. Set 'fail_on_data_loss' to false to continue with the remaining "
        "events, and keep data longer (retention of the stream, 'publish_position')"
    )
