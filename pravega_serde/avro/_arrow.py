"""The Arrow type of a plan's values: what ``arrow_type`` promises before any event is read."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pravega_serde.avro._nodes import ArrayNode, EnumNode, Leaf, Link, MapNode, Node, RecordNode, UnionNode
from pravega_serde.avro._values import arrow_leaf_type
from pravega_serde.errors import SchemaError

__all__ = ["arrow_type"]

#: A small schema that names its records often can unfold into an enormous type; so many columns are allowed.
MAX_ARROW_FIELDS: Final = 10_000


def arrow_type(node: Node) -> pa.DataType:
    """Arrow type of the values of a plan whose writer is its reader; :class:`SchemaError` if Arrow has none."""
    return _Types().of(node)


class _Types:
    def __init__(self) -> None:
        self._count = 0

    def of(self, node: Node) -> pa.DataType:
        self._count += 1
        if self._count > MAX_ARROW_FIELDS:
            raise SchemaError(f"the Avro schema unfolds into more than {MAX_ARROW_FIELDS} columns; read it by rows")
        if isinstance(node, Leaf):
            return arrow_leaf_type(node.target)
        if isinstance(node, EnumNode):
            return pa.string()
        if isinstance(node, ArrayNode):
            return list_type(self.of(node.item))
        if isinstance(node, MapNode):
            return pa.map_(pa.string(), self.of(node.value))
        return self._nested(node)

    def _nested(self, node: RecordNode | UnionNode | Link) -> pa.DataType:
        if isinstance(node, Link):
            raise SchemaError(f"the Avro record {node.name} contains itself; Arrow cannot hold that, read it by rows")
        if isinstance(node, UnionNode):
            return self._union(node)
        inner: list[pa.DataType | None] = [None] * len(node.names)
        for step in node.steps:
            assert step.slot is not None, "only plans whose writer is their reader have types"
            inner[step.slot] = self.of(step.node)
        return pa.struct([pa.field(name, kind) for name, kind in zip(node.names, inner, strict=True)])

    def _union(self, node: UnionNode) -> pa.DataType:
        if node.members:
            kinds = [self.of(member) for member in node.members]
            return pa.struct([pa.field(f"member{index}", kind) for index, kind in enumerate(kinds)])
        for arm in node.arms:
            if arm.node is not None and not (isinstance(arm.node, Leaf) and arm.node.wire == "null"):
                return self.of(arm.node)
        return pa.null()


def list_type(item: pa.DataType) -> pa.DataType:
    """A list as Spark spells it."""
    return pa.list_(pa.field("element", item))
