"""What one event may cost to decode.

Sizes that stand in a stream are never trusted: an array or string is checked against the bytes that remain, and
everything else is bounded by the numbers below. They are far above what applications write.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Limits"]

MAX_DEPTH: Final = 10_000
"""Objects inside objects. Java itself overflows a default 1 MiB thread stack at some 1,000 to 3,000."""

MAX_HANDLES: Final = 4_000_000
"""Objects, strings and class descriptors of one event; Java numbers them all."""

MAX_BYTES: Final = 256 * 1024 * 1024
"""Size of one event; Pravega's own limit is 8 MiB."""

MAX_CLASSES: Final = 4096
"""Class descriptors of one event: each costs far more memory than the 16 bytes it can be written in."""

MAX_ANNOTATION_NESTING: Final = 4
"""Class annotations inside class annotations; ``ObjectOutputStream`` writes none at all, RMI writes one string."""

HEAVY_BYTES: Final = 24 * 1024 * 1024
"""Memory of values whose Python form is far larger than their Java form, that any event may take."""

HEAVY_FACTOR: Final = 24
"""And so many bytes more for each byte of the event."""

DEQUE_BYTES: Final = 650
"""Memory of an empty deque, which takes 13 bytes in a stream."""

SET_BYTES: Final = 320
"""Memory of an empty set, which takes 6 bytes in a stream."""

KEY_BYTES: Final = 160
"""Memory of a key that is wrapped, which takes 3 bytes in a stream."""

MAX_DECIMAL_BITS: Final = 32_768
"""Longer ``BigDecimal`` values stay records: the conversion to a decimal number takes quadratic time."""

MAX_SHARED: Final = 100_000
"""Elements and fields that one event may become, beyond its number of bytes, where values become copies (in Arrow
columns, in dataclasses): each takes a byte at least, so only objects that others share can become more."""

CACHED_CLASSES: Final = 256
"""Compiled class descriptors that a serializer keeps; the cache is emptied when it is full."""

CACHED_FIELDS: Final = 512
"""Classes with more fields are compiled anew for each event."""

CACHED_DESCRIPTOR_BYTES: Final = 16_384
"""Longer descriptors are compiled anew for each event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one :class:`~pravega_serde.java.JavaSerializer`; beyond them, ``LimitExceededError``."""

    depth: int = MAX_DEPTH
    """Objects inside objects."""
    handles: int = MAX_HANDLES
    """Objects, strings and class descriptors in one event."""
    size: int = MAX_BYTES
    """Bytes of one event."""
    classes: int = MAX_CLASSES
    """Class descriptors in one event."""
