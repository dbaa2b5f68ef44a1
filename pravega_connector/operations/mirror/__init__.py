"""Mirrors: copies of the events of a stream in another cluster, exactly once and in order per routing key.

:func:`mirror` and :func:`mirror_status` are in ``run``, and ``copier`` executes step after step, with the protocol of
:mod:`pravega_connector.exactly_once.steps`. ``source`` reads whole events as bytes, and nothing decodes them.
``destination`` creates and scales the stream of the copies. ``event_time`` carries watermarks.

Streams store no routing keys. ``order`` explains how the events of each key stay in their order nevertheless, although
both streams are scaled.
"""

from pravega_connector.operations.mirror.copier import MirrorCounts, MirrorSettings
from pravega_connector.operations.mirror.run import MirrorStatus, MirrorSummary, mirror, mirror_status

__all__ = [
    "MirrorCounts",
    "MirrorSettings",
    "MirrorStatus",
    "MirrorSummary",
    "mirror",
    "mirror_status",
]
