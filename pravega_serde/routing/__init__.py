"""Routing keys. Events with the same key stay in order.

:mod:`~pravega_serde.routing.routers` determines an event's key. :mod:`~pravega_serde.routing.key_line` computes the
key's position on the key line, as Java's client does.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.routing.key_line import segment_key as segment_key
    from pravega_serde.routing.key_line import segment_keys as segment_keys
    from pravega_serde.routing.routers import ByColumn as ByColumn
    from pravega_serde.routing.routers import ByConstant as ByConstant
    from pravega_serde.routing.routers import ByField as ByField
    from pravega_serde.routing.routers import ByFunction as ByFunction
    from pravega_serde.routing.routers import EventRouter as EventRouter
    from pravega_serde.routing.routers import Unrouted as Unrouted
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "key_line": "segment_key segment_keys",
            "routers": "ByColumn ByConstant ByField ByFunction EventRouter Unrouted",
        },
    )
