"""Target of the fuzzer: a serializer, the events to begin with, and what belongs to its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pravega_serde import Serializer

__all__ = ["Format", "Target", "self_describing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One serializer."""

    name: str
    serializer: Serializer[Any]
    corpus: Sequence[bytes]
    """Events to mutate, good ones most of them."""
    bombs: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    """Made when they are needed: each has up to a mebibyte."""
    columns: bool = True
    """Whether the format has columns for it."""
    rows_take_more: bool = False
    """Whether a good row can be bad in a column: so where the row itself says what it is."""
    smaller_in_python: str = ""
    """What an error of a row says that is none in a column: so where Python's type has a smaller range."""
    rewritten: bool = False
    """Whether what was read as a row and as a column is also compared by writing it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format's targets, and what mutations put into its events."""

    targets: Sequence[Target]
    """Those without a corpus have only bombs."""
    tokens: Sequence[bytes]
    keep: int = 0
    """Bytes at the start that are left alone: without them nothing else would be looked at."""


Bombs = Mapping[str, Callable[[], bytes]]


def self_describing(
    make: Callable[..., Serializer[Any]],
    anything: Sequence[bytes],
    bombs: Bombs,
    typed: Mapping[str, tuple[pa.Schema, Sequence[bytes], Bombs]],
) -> list[Target]:
    """Targets of a format whose events say what they are: read as they are, and as columns of a schema."""
    read_as = [
        Target(name=name, serializer=make(arrow_type=schema), corpus=corpus, bombs=bombs, rows_take_more=True)
        for name, (schema, corpus, bombs) in typed.items()
    ]
    return [Target(name="anything", serializer=make(), corpus=anything, bombs=bombs, columns=False), *read_as]
