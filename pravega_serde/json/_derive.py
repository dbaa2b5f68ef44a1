"""The shape of an event: what is the same in every event that looks like it, and the places for the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pravega_serde.json._slots import slot_reader

__all__ = ["Deriver", "Shape", "ShapelessError", "Slot", "type_at"]

_TOKENS: Final = re.compile(rb'"[^"]*"|[{}\[\]:,]|[ \t\r\n]+|[^"{}\[\]:, \t\r\n]+')


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a value."""

    path: tuple[int, ...] | None
    """Positions of the fields that lead to it; None if its value is not wanted."""
    quoted: bool


@dataclass(slots=True)
class Shape:
    """``literals[i]`` stands before ``slots[i]``, and the last one behind all."""

    literals: list[bytes] = field(default_factory=lambda: [b""])
    slots: list[Slot] = field(default_factory=list)
    present: set[tuple[int, ...]] = field(default_factory=set)
    """The structs that are there (not null)."""

    def add(self, text: bytes) -> None:
        """More text that is the same in every event."""
        self.literals[-1] += text

    def add_slot(self, slot: Slot) -> None:
        """A slot behind what is there."""
        self.slots.append(slot)
        self.literals.append(b"")

    def quotes(self) -> int:
        """How many quotes every event of the shape has."""
        return sum(literal.count(b'"') for literal in self.literals)


class ShapelessError(Exception):
    """The event has something that no shape has."""


class Deriver:
    """Takes one valid event apart."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._shape = Shape()

    def derive(self, event: bytes) -> Shape:
        """The event's shape; :class:`ShapelessError` if it has something that no shape has."""
        tokens = iter(_TOKENS.findall(event))
        self._value(tokens, ())
        for token in tokens:
            self._shape.add(token)
        return self._shape

    def _next(self, tokens: Iterator[bytes]) -> bytes:
        """The next token that is not space; space is part of the shape."""
        for token in tokens:
            if not token.isspace():
                return token
            self._shape.add(token)
        raise ShapelessError

    def _value(self, tokens: Iterator[bytes], path: tuple[int, ...] | None) -> None:
        token = self._next(tokens)
        kind = None if path is None else type_at(self._kind, path)
        nested = kind is not None and pa.types.is_struct(kind)
        if token == b"[":
            raise ShapelessError
        if token == b"{":
            self._shape.add(token)
            self._object(tokens, path)
        elif token[:1] == b'"':
            self._string(path)
        elif nested or (token == b"null" and (kind is None or slot_reader(kind, quoted=False) is None)):
            # A null in the place of a string or object makes a shape of its own; it has other quotes.
            self._shape.add(token)
        else:
            self._scalar(path)

    def _object(self, tokens: Iterator[bytes], path: tuple[int, ...] | None) -> None:
        names: set[bytes] = set()
        if path is not None:
            self._shape.present.add(path)
        while (token := self._next(tokens)) != b"}":
            self._shape.add(token)
            if token == b",":
                continue
            if token in names:
                raise ShapelessError
            names.add(token)
            self._shape.add(self._next(tokens))
            self._value(tokens, self._field(path, token[1:-1].decode()))
        self._shape.add(token)

    def _field(self, path: tuple[int, ...] | None, name: str) -> tuple[int, ...] | None:
        if path is None:
            return None
        index = type_at(self._kind, path).get_field_index(name)
        return None if index < 0 else (*path, index)

    def _string(self, path: tuple[int, ...] | None) -> None:
        if path is not None and slot_reader(type_at(self._kind, path), quoted=True) is None:
            raise ShapelessError
        self._shape.add(b'"')
        self._shape.add_slot(Slot(path, quoted=True))
        self._shape.add(b'"')

    def _scalar(self, path: tuple[int, ...] | None) -> None:
        if path is not None and slot_reader(type_at(self._kind, path), quoted=False) is None:
            raise ShapelessError
        self._shape.add_slot(Slot(path, quoted=False))


def type_at(kind: pa.DataType, path: tuple[int, ...]) -> pa.DataType:
    """The type at a path of field positions."""
    for index in path:
        kind = kind.field(index).type
    return kind
