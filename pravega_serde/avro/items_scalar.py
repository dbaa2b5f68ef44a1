"""Find where the items of a list or map begin, one after the other, in plain Python.

What the values are is not looked at, only how far they reach. For most values their first byte says that: a text's
length, a number's single byte, a union's branch without bytes, an empty list. So a value is a look into a table, and a
call where that does not tell. All the items that are found can then be read at once, which also checks them: a walk
checks no more than that it stays inside the event.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pravega_serde.avro.resolve import ArrayNode, EnumNode, Leaf, MapNode, Node, RecordNode, UnionNode
from pravega_serde.avro.rows import read_block, read_long
from pravega_serde.avro.schema import Fixed, Primitive

#: From the event, up to its end, and a position in it, to the position behind a value. Raises one of ``WRONG``; what
#: passes the event's end finds an IndexError there when it reads on, at the latest at the end of its list.
Skip = Callable[[memoryview, int], int]

#: From the event, up to its end, the position of an item, and the number of items left in its block, to the position
#: behind the list or map; the positions of the items are appended. Raises one of ``WRONG``, as a ``Skip`` does.
Walk = Callable[[memoryview, int, int, "array[int]"], int]


@dataclass(frozen=True, slots=True)
class Part:
    """A value, or bytes of fixed size behind it, too."""

    sizes: tuple[int, ...]
    """Bytes in all, by the first one; 0 where that does not say it."""
    skip: Skip
    """What finds the end of such a value; ``more`` bytes follow."""
    more: int = 0
    is_number: bool = False
    """Whether it is a number, and not the length of bytes behind it."""
    arms: Sequence[Layout] = ()
    """Of a union."""
    items: Items | None = None
    """Of a list or map."""

    def and_more(self, size: int) -> Part:
        """The same with so many bytes behind it."""
        return replace(self, sizes=tuple(each and each + size for each in self.sizes), more=self.more + size)


#: Bytes of fixed size, and what follows them, of values one behind the other.
Layout = tuple[int, list[Part]]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of lists, or the keys and values of maps."""

    layout: Layout
    walk: Walk

    @classmethod
    def of(cls, node: ArrayNode | MapNode) -> Items:
        """Those of a plan."""
        layout = _layout([node.item] if isinstance(node, ArrayNode) else [_KEY, node.value])
        return cls(layout, _walk_of(layout))

    def depth(self) -> int:
        """Number of lists and maps inside each other, this one among them."""
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
    """Walk through items of that many bytes each."""

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
    if len(looks) == 1:  # mostly; a third faster without the loop
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
    """Parts of a value in order; of fixed size its bytes."""
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
        assert isinstance(node, ArrayNode | MapNode), "a record inside itself is not read by column"
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


# A byte below 128 is all of a number: twice a length or branch, which so is below this.
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
    # A branch that the reader has no place for makes the event a bad one, whatever its length.
    nodes = [_NULL if arm.node is None else arm.node for arm in node.arms]
    if not node.indexed:
        yield from _parts(nodes[0])
        return
    arms = [_layout([arm]) for arm in nodes]
    skips = [_skip_of(arm) for arm in arms]

    def skip_long(data: memoryview, at: int) -> int:
        """After the first byte of a branch that takes more of them, or that is not there."""
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
    """A list or map inside an item."""
    items = Items.of(node)

    def skip(data: memoryview, at: int) -> int:
        left, at = read_block(data, at)
        return items.walk(data, at, left, array("q"))

    return Part(_NO_ITEMS, skip, items=items)
