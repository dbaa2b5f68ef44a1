"""Framings of other systems around the events of any serializer: headers, lengths and compression.

- :mod:`~pravega_serde.framings.serializer` has :class:`Framed`, which reads and writes them by row and by column.
- :mod:`~pravega_serde.framings.layouts` has the bytes of each framing.

The headers of schema registries with a client here are in :mod:`pravega_serde.registry`.
"""

from typing import TYPE_CHECKING

from pravega_serde.framings.serializer import Framed
from pravega_serde.public_names import unknown_names

__all__ = ["Framed"]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
