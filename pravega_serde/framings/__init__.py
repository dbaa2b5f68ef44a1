"""Framings of other systems around the events of any serializer: headers, lengths and compression.

- :mod:`~pravega_serde.framings.serializer` has :class:`Framed`, which reads and writes them by row and by column.
- :mod:`~pravega_serde.framings.layouts` has the bytes of each framing.

The headers of schema registries with a client here are in :mod:`pravega_serde.registry`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.framings.serializer import Framed as Framed
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "serializer": "Framed",
        },
    )
