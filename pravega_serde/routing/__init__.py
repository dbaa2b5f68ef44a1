"""Routing keys. Events with the same key stay in order.

:mod:`~pravega_serde.routing.routers` determines an event's key. :mod:`~pravega_serde.routing.key_line` computes the
key's position on the key line, as Java's client does.
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
