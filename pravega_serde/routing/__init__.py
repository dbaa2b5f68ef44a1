"""Routing keys. Events with the same key stay in order.

:mod:`~pravega_serde.routing.routers` determines an event's key. :mod:`~pravega_serde.routing.key_line` computes the
key's position on the key line, as Java's client does.
"""

from typing import TYPE_CHECKING

from pravega_serde.public_names import unknown_names
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

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
