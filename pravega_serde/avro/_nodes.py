"""The steps that a plan is made of, and what can be told from them."""

from __future__ import annotations

from dataclasses import dataclass

from pravega_serde.avro._model import Field, Fixed, Primitive
from pravega_serde.avro._values import shape_of

__all__ = [
    "Arm",
    "ArrayNode",
    "EnumNode",
    "Leaf",
    "Link",
    "MapNode",
    "Node",
    "RecordNode",
    "Step",
    "UnionNode",
    "ambiguous_labels",
    "may_be_null",
    "min_size",
]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A primitive or fixed value."""

    wire: str
    """What is written: a primitive's name, or ``fixed``."""
    target: Primitive | Fixed
    """What it becomes."""


@dataclass(frozen=True, slots=True, eq=False)
class EnumNode:
    """A symbol."""

    symbols: tuple[str | None, ...]
    """The reader's symbol for each of the writer's; None where the reader has none."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayNode:
    """Blocks of items."""

    item: Node


@dataclass(frozen=True, slots=True, eq=False)
class MapNode:
    """Blocks of keys and values."""

    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One of the writer's fields."""

    name: str
    node: Node
    slot: int | None
    """Which of the reader's fields it becomes; None to skip it."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordNode:
    """Fields in the writer's order, for slots in the reader's order."""

    name: str
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    defaults: tuple[tuple[int, Field], ...]
    """Slots that the writer does not fill, and the fields whose defaults do."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """What becomes of one branch of the writer's union."""

    node: Node | None
    """None if the reader has no place for it: an event with this branch is an error."""
    member: int | None
    """Which of the reader's members it is; None for null, and where the reader has no choice of members."""
    label: str
    """The branch's name in the reader."""


@dataclass(frozen=True, slots=True, eq=False)
class UnionNode:
    """A choice, made by the writer (arms) or by the reader (members) or by both."""

    indexed: bool
    """Whether the writer wrote which arm it is; otherwise there is just one."""
    arms: tuple[Arm, ...]
    members: tuple[Node, ...]
    """The reader's own branches other than null, if they are more than one: then the value is one of these members.
    Otherwise it is bare: the only member's, or null."""


@dataclass(slots=True, eq=False)
class Link:
    """A record inside itself. Its target is set when that is complete."""

    name: str
    target: RecordNode | None = None


Node = Leaf | EnumNode | ArrayNode | MapNode | RecordNode | UnionNode | Link


def min_size(node: Node) -> int:
    """Whether a value takes at least one byte (1), or may take none (0)."""
    if isinstance(node, Leaf):
        empty = node.wire == "null" or (node.wire == "fixed" and node.target.size == 0)  # type: ignore[union-attr]
        return 0 if empty else 1
    if isinstance(node, RecordNode):
        return max((min_size(step.node) for step in node.steps), default=0)
    if isinstance(node, UnionNode) and not node.indexed:
        only = node.arms[0].node
        assert only is not None
        return min_size(only)
    return 1


def may_be_null(node: Node) -> bool:
    """Whether a value can be null; one that is something else inside is not."""
    if isinstance(node, UnionNode):
        return any(arm.node is not None and may_be_null(arm.node) for arm in node.arms)
    return isinstance(node, Leaf) and node.wire == "null"


def ambiguous_labels(node: UnionNode) -> set[str]:
    """Names of the arms whose values need their name: those of named types that share a Python type with another."""
    shapes: dict[str, int] = {}
    for member in node.members:
        shapes[_shape(member)] = shapes.get(_shape(member), 0) + 1
    return {
        arm.label
        for arm in node.arms
        if arm.node is not None and _is_named(arm.node) and shapes.get(_shape(arm.node), 0) > 1
    }


def _is_named(node: Node) -> bool:
    return isinstance(node, RecordNode | Link | EnumNode) or (isinstance(node, Leaf) and node.wire == "fixed")


def _shape(node: Node) -> str:
    if isinstance(node, Leaf):
        return shape_of(node.target)
    if isinstance(node, EnumNode):
        return "str"
    return "list" if isinstance(node, ArrayNode) else "dict"
