"""Routing keys: where they come from, and where Java puts them on the key line."""

from pravega_serde.routing._hash import segment_key, segment_keys
from pravega_serde.routing._routers import ByColumn, ByConstant, ByField, ByFunction, EventRouter, Unrouted

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
