"""What a reader with one Avro schema cannot read of what was written with another: what resolution says."""

from __future__ import annotations

from collections.abc import Iterator

from pravega_serde.avro.resolve import ArrayNode, EnumNode, Link, MapNode, Node, RecordNode, UnionNode, resolve
from pravega_serde.avro.schema import load
from pravega_serde.errors import SchemaError
from pravega_serde.registry._models import SchemaInfo

__all__ = ["faults", "inside"]


def faults(writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:  # noqa: ARG001 - as all formats
    """Reasons, none if everything can be read; SchemaError for a schema that is none.

    Stricter than the server in one thing: an enum symbol that the reader does not know is a fault here, although it is
    one only when it turns up.
    """
    written, read = (load(schema.data.decode(errors="replace"))[0] for schema in (writer, reader))
    try:
        node = resolve(written, read)
    except SchemaError as error:
        # Nothing of the writer's could be read at all.
        yield error.message
    else:
        yield from _lacking(node, "$", set())


def _lacking(node: Node, path: str, seen: set[int]) -> Iterator[str]:
    """What is an error only when it turns up: branches and symbols that the reader does not have."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, EnumNode) and None in node.symbols:
        yield f"the reader's enum at {path} lacks {node.symbols.count(None)} of the writer's symbols and has no default"
    if isinstance(node, UnionNode):
        yield from (f"the reader has no place for {arm.label} at {path}" for arm in node.arms if arm.node is None)
    for each, place in inside(node, path):
        if each is not None:
            yield from _lacking(each, place, seen)


def inside(node: Node, path: str) -> list[tuple[Node | None, str]]:
    """The nodes right inside one, and where they stand."""
    if isinstance(node, Link):
        return [(node.target, path)]
    if isinstance(node, ArrayNode):
        return [(node.item, f"{path}[]")]
    if isinstance(node, MapNode):
        return [(node.value, f"{path}{{}}")]
    if isinstance(node, RecordNode):
        return [(step.node, f"{path}.{step.name}") for step in node.steps if step.slot is not None]
    return [(arm.node, path) for arm in node.arms] if isinstance(node, UnionNode) else []
