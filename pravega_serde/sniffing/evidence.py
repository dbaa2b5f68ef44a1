"""Evidence that events have a format, in bits, and the test that it is not a coincidence.

A format with ``b`` bits of evidence in an event has them by chance in one of ``2**b`` random events.
"""

from __future__ import annotations

import math
from typing import Final

#: Bits that must remain after all choices: a chance of one in a million.
NEEDED: Final = 20.0

#: Bits of a printable ASCII character among 256 bytes.
PER_CHARACTER: Final = 1.4


def is_significant(bits: float, members: int, total: int) -> bool:
    """True if ``members`` of ``total`` events have ``bits`` of evidence in all, more than the best choice of them has.

    In random bytes, some events look like a format. Their number of possible choices is the binomial coefficient.
    """
    return members > 0 and bits - _choices(members, total) >= NEEDED


def _choices(members: int, total: int) -> float:
    inside, outside = math.lgamma(members + 1), math.lgamma(total - members + 1)
    return (math.lgamma(total + 1) - inside - outside) / math.log(2)


def text_bits(text: str) -> float:
    """Return the evidence of printable text in UTF-8: a character of several bytes has more than one of ASCII."""
    size = len(text.encode(errors="replace"))
    return PER_CHARACTER * len(text) + 2.0 * (size - len(text))
