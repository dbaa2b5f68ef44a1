"""Routing keys: events of one key stay in order.

:mod:`~pravega_serde.routing.routers` says where an event's key comes from, :mod:`~pravega_serde.routing.key_line` where
on the key line it lies, as Java's client computes it.
"""

from pravega_serde.routing.key_line import segment_key, segment_keys
from pravega_serde.routing.routers import ByColumn, ByConstant, ByField, ByFunction, EventRouter, Unrouted

__all__ = [
    "ByColumn",
    "ByConstant",
    "ByField",
    "ByFunction",
    "EventRouter",
    "Unrouted",
    "segment_key",
    "segment_keys",
]
