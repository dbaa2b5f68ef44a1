"""Scalar search for the start of each item of a list or map, one after the other, in plain Python.

It reads only the lengths of values, not the values. For most values, the first byte is enough: a text's length, a
one-byte number, a union's branch without bytes, an empty list. So a value needs one table lookup, and a call if the
first byte is not enough. All items are then read at once, which also checks them. The search itself checks only that it
stays inside the event.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pravega_serde.avro.resolve import ArrayNode, EnumNode, Leaf, MapNode, Node, RecordNode, UnionNode
from pravega_serde.avro.rows import read_block, read_long
from pravega_serde.avro.schema import Fixed, Primitive

#: Function of the event, up to its end, and a position. It returns the position after a value. Raises one of ``WRONG``.
#: A position after the event's end causes an IndexError at the next read, at the latest at the end of its list.
Skip = Callable[[memoryview, int], int]

#: Function of the event, up to its end, the position of an item, and the number of items left in its block. It returns
#: the position after the list or map, and appends the positions of the items. Raises one of ``WRONG``, like a ``Skip``.
Walk = Callable[[memoryview, int, int, "array[int]"], int]


@dataclass(frozen=True, slots=True)
class Part:
    """Value, optionally followed by bytes of fixed size."""

    sizes: tuple[int, ...]
    """Total bytes by the first byte. 0 if the first byte does not determine them."""
    skip: Skip
    """Function that finds the end of such a value. ``more`` bytes follow."""
    more: int = 0
    is_number: bool = False
    """True for a number. False for the length of the bytes after it."""
    arms: Sequence[Layout] = ()
    """Branches of a union."""
    items: Items | None = None
    """Items of a list or map."""

    def and_more(self, size: int) -> Part:
        """Return the part with ``size`` more bytes after it."""
        return replace(self, sizes=tuple(each and each + size for each in self.sizes), more=self.more + size)


#: Bytes of fixed size, and the parts after them, of consecutive values.
Layout = tuple[int, list[Part]]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of lists, or the keys and values of maps."""

    layout: Layout
    walk: Walk

    @classmethod
    def of(cls, node: ArrayNode | MapNode) -> Items:
        """Return the items of a plan."""
        layout = _layout([node.item] if isinstance(node, ArrayNode) else [_KEY, node.value])
        return cls(layout, _walk_of(layout))

    def depth(self) -> int:
        """Return the number of nested lists and maps, including this one."""
        return 1 + _depth(self.layout)


def _depth(layout: Layout) -> int:
    inside = [0]
    for part in layout[1]:
        inside += [_depth(arm) for arm in part.arms] if part.items is None else [part.items.depth()]
    return max(inside)


def _walk_of(layout: Layout) -> Walk:
    head, parts = layout
    if not parts:
        return _fixed_walk(head)
    looks = _looks(parts)

    def walk(data: memoryview, at: int, left: int, starts: array[int]) -> int:
        add = starts.append
        while left:
            for _ in range(left):
                add(at)
                at += head
                for sizes, skip, more in looks:
                    size = sizes[data[at]]
                    at = at + size if size else skip(data, at) + more
            left, at = read_block(data, at)
        return at

    return walk


_KEY: Final = Leaf("string", Primitive("string"))
_NULL: Final = Leaf("null", Primitive("null"))


def _fixed_walk(size: int) -> Walk:
    """Return a walk through items of ``size`` bytes each."""

    def walk(data: memoryview, at: int, left: int, starts: array[int]) -> int:
        while left:
            end = at + left * size
            if end > len(data):
                raise IndexError
            starts.extend(range(at, end, size))
            left, at = read_block(data, end)
        return at

    return walk


def _skip_of(layout: Layout) -> Skip:
    head, parts = layout
    looks = _looks(parts)
    if len(looks) == 1:  # the usual case; a third faster without the loop
        ((sizes, skip_part, more),) = looks

        def skip_one(data: memoryview, at: int) -> int:
            at += head
            size = sizes[data[at]]
            return at + size if size else skip_part(data, at) + more

        return skip_one

    def skip(data: memoryview, at: int) -> int:
        at += head
        for sizes, skip_part, more in looks:
            size = sizes[data[at]]
            at = at + size if size else skip_part(data, at) + more
        return at

    return skip


def _looks(parts: list[Part]) -> list[tuple[tuple[int, ...], Skip, int]]:
    return [(part.sizes, part.skip, part.more) for part in parts]


def _layout(nodes: Iterable[Node]) -> Layout:
    head = 0
    parts: list[Part] = []
    for part in (part for node in nodes for part in _parts(node)):
        if isinstance(part, Part):
            parts.append(part)
        elif parts:
            parts[-1] = parts[-1].and_more(part)
        else:
            head += part
    return head, parts


def _parts(node: Node) -> Iterator[Part | int]:
    """Yield the parts of a value in order, or the number of bytes for a fixed size."""
    if isinstance(node, RecordNode):
        for step in node.steps:
            yield from _parts(step.node)
    elif isinstance(node, UnionNode):
        yield from _union(node)
    elif isinstance(node, Leaf):
        yield node.target.size if isinstance(node.target, Fixed) else _LEAVES[node.wire]
    elif isinstance(node, EnumNode):
        yield _NUMBER
    else:
        assert isinstance(node, ArrayNode | MapNode), "a record that contains itself cannot be read by column"
        yield _list(node)


def _table(sizes: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sizes.get(byte, 0) for byte in range(256))


def _skip_number(data: memoryview, at: int) -> int:
    while data[at] > 0x7F:
        at += 1
    return at + 1


def _skip_bytes(data: memoryview, at: int) -> int:
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise IndexError
    return at + size


# A byte below 128 is a whole number. It is twice a length or branch, which is therefore below this.
_SHORT: Final = 64
_NUMBER: Final = Part(_table(dict.fromkeys(range(2 * _SHORT), 1)), _skip_number, is_number=True)
_BYTES: Final = Part(_table({2 * length: 1 + length for length in range(_SHORT)}), _skip_bytes)
_NO_ITEMS: Final = _table({0: 1})

_LEAVES: Final[Mapping[str, Part | int]] = {
    "null": 0,
    "boolean": 1,
    "int": _NUMBER,
    "long": _NUMBER,
    "float": 4,
    "double": 8,
    "bytes": _BYTES,
    "string": _BYTES,
}


def _union(node: UnionNode) -> Iterator[Part | int]:
    # A branch that the reader does not have makes the event malformed, with any length.
    nodes = [_NULL if arm.node is None else arm.node for arm in node.arms]
    if not node.indexed:
        yield from _parts(nodes[0])
        return
    arms = [_layout([arm]) for arm in nodes]
    skips = [_skip_of(arm) for arm in arms]

    def skip_long(data: memoryview, at: int) -> int:
        """Skip a branch after its first byte, if its index has more bytes or does not exist."""
        branch, at = read_long(data, at - 1)
        if not 0 <= branch < len(skips):
            raise IndexError
        return skips[branch](data, at)

    short = range(min(len(arms), _SHORT))
    behind: list[Skip] = [skip_long] * 256
    for branch in short:
        behind[2 * branch] = skips[branch]
    fixed = {2 * branch: 1 + arms[branch][0] for branch in short if not arms[branch][1]}
    yield Part(_table(fixed), lambda data, at: behind[data[at]](data, at + 1), arms=arms)


def _list(node: ArrayNode | MapNode) -> Part:
    """Return the part of a list or map inside an item."""
    items = Items.of(node)

    def skip(data: memoryview, at: int) -> int:
        left, at = read_block(data, at)
        return items.walk(data, at, left, array("q"))

    return Part(_NO_ITEMS, skip, items=items)
