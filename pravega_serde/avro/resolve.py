"""Schema resolution: a plan to read a writer's events with a reader's schema, computed once per pair.

The plan is a tree over the writer's bytes. Every step holds its result in the reader's terms: the promotion, the member
of a union, the field, the default. Rows and columns are two interpreters of the same plan, so they resolve schemas
equally. A single schema is both writer and reader.

The rules are those of the Avro 1.12 specification, as ``org.apache.avro.Resolver`` applies them. A record outside a
union is resolved by its fields, with any name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro.schema import (
    MISSING,
    Array,
    Enum,
    Field,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    branches_of,
    kind_of,
    label_of,
)
from pravega_serde.avro.values import arrow_leaf_type, list_type, shape_of
from pravega_serde.columnar.limits import ColumnCount
from pravega_serde.errors import SchemaError


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """Primitive or fixed value."""

    wire: str
    """Written type: the name of a primitive, or ``fixed``."""
    target: Primitive | Fixed
    """Reader's type."""


@dataclass(frozen=True, slots=True, eq=False)
class EnumNode:
    """Symbol of an enum."""

    symbols: tuple[str | None, ...]
    """Reader's symbol for each of the writer's, or None if the reader lacks it."""


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
    """Field of the writer."""

    name: str
    node: Node
    slot: int | None
    """Index of the reader's field, or None to skip the field."""


@dataclass(frozen=True, slots=True, eq=False)
class RecordNode:
    """Fields in the writer's order, for slots in the reader's order."""

    name: str
    names: tuple[str, ...]
    steps: tuple[Step, ...]
    defaults: tuple[tuple[int, Field], ...]
    """Slots that the writer does not fill, and the reader's fields with the defaults for them."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """Branch of the writer's union, and its result."""

    node: Node | None
    """None if the reader does not have the branch. An event with it is then an error."""
    member: int | None
    """Index of the reader's member, or None for null and for a reader without a choice of members."""
    label: str
    """Name of the branch in the reader."""


@dataclass(frozen=True, slots=True, eq=False)
class UnionNode:
    """Choice of the writer (arms), of the reader (members), or of both."""

    indexed: bool
    """True if the event holds the arm's index. Otherwise there is only one arm."""
    arms: tuple[Arm, ...]
    members: tuple[Node, ...]
    """Branches of the reader other than null, if there are several. The value is then one of these members.

    Otherwise the value is bare: the only member's, or null.
    """


@dataclass(slots=True, eq=False)
class Link:
    """Record inside itself. Its target is set when the record is complete."""

    name: str
    target: RecordNode | None = None


Node = Leaf | EnumNode | ArrayNode | MapNode | RecordNode | UnionNode | Link


def min_size(node: Node) -> int:
    """Return the lower bound of a value's size in bytes: 1, or 0 for values that may have no bytes."""
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
    """Return True if a value can be null."""
    if isinstance(node, UnionNode):
        return any(arm.node is not None and may_be_null(arm.node) for arm in node.arms)
    return isinstance(node, Leaf) and node.wire == "null"


def ambiguous_labels(node: UnionNode) -> set[str]:
    """Return the names of the arms with tagged values.

    These are named types that share a Python type with another arm.
    """
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


#: Writer's type -> other types that the reader may have for it.
PROMOTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


def resolve(writer: Type, reader: Type | None = None) -> Node:
    """Return the plan for reading events of ``writer`` as ``reader``.

    Raises :class:`SchemaError` if no event could be read.
    """
    return _Resolver().resolve(writer, writer if reader is None else reader, "$")


class _Resolver:
    def __init__(self) -> None:
        self._records: dict[tuple[int, int, bool], RecordNode | Link] = {}
        self._skipping = False

    def resolve(self, writer: Type, reader: Type, path: str) -> Node:
        if isinstance(writer, Union):
            return self._from_union(writer, reader, path)
        if isinstance(reader, Union):
            return self._to_union(writer, reader, path)
        if isinstance(writer, Primitive):
            leaf = _leaf(writer, reader, path)
            return Leaf(leaf.wire, Primitive(leaf.wire)) if self._skipping else leaf
        if type(writer) is not type(reader):
            raise _mismatch(writer, reader, path)
        return _RESOLVERS[type(writer)](self, writer, reader, path)

    def _fixed(self, writer: Fixed, reader: Fixed, path: str) -> Node:
        if not _same_name(writer, reader) or writer.size != reader.size:
            raise _mismatch(writer, reader, path)
        _check_meaning(writer, reader, path)
        return Leaf("fixed", dataclasses.replace(reader, logical=None) if self._skipping else reader)

    def _enum(self, writer: Enum, reader: Enum, path: str) -> Node:
        if not _same_name(writer, reader):
            raise _mismatch(writer, reader, path)
        known = frozenset(reader.symbols)
        return EnumNode(tuple(symbol if symbol in known else reader.default for symbol in writer.symbols))

    def _array(self, writer: Array, reader: Array, path: str) -> Node:
        return ArrayNode(self.resolve(writer.items, reader.items, f"{path}[]"))

    def _map(self, writer: Map, reader: Map, path: str) -> Node:
        return MapNode(self.resolve(writer.values, reader.values, f"{path}{{}}"))

    def _record(self, writer: Record, reader: Record, path: str) -> Node:
        key = (id(writer), id(reader), self._skipping)
        if key in self._records:
            return self._records[key]
        known = len(self._records)
        self._records[key] = link = Link(reader.name)
        try:
            link.target = self._steps(writer, reader, path)
        except SchemaError:
            # Plans inside this record may link to it, so they are discarded too.
            for inside in list(self._records)[known:]:
                del self._records[inside]
            raise
        self._records[key] = link.target
        return link.target

    def _steps(self, writer: Record, reader: Record, path: str) -> RecordNode:
        steps = []
        matches = match_fields(writer, reader)
        for entry in writer.fields:
            slot = matches.get(entry.name)
            if slot is None:
                node = self._skip(entry.type, f"{path}.{entry.name}")
            else:
                node = self.resolve(entry.type, reader.fields[slot].type, f"{path}.{entry.name}")
            steps.append(Step(entry.name, node, slot))
        names = tuple(entry.name for entry in reader.fields)
        return RecordNode(reader.name, names, tuple(steps), _defaults(writer, reader, set(matches.values()), path))

    def _skip(self, writer: Type, path: str) -> Node:
        """Plan a skipped field, with its own schema, without logical types."""
        outer, self._skipping = self._skipping, True
        try:
            return self.resolve(writer, writer, path)
        finally:
            self._skipping = outer

    def _from_union(self, writer: Union, reader: Type, path: str) -> Node:
        arms = [self._arm(branch, reader, path) for branch in writer.branches]
        if all(arm.node is None for arm in arms):
            raise _mismatch(writer, reader, path)
        return UnionNode(indexed=True, arms=tuple(arms), members=self._members(reader, path))

    def _arm(self, branch: Type, reader: Type, path: str) -> Arm:
        """Plan one branch of the writer's union. A branch that the reader lacks is an error only when it occurs."""
        try:
            if not isinstance(reader, Union):
                return Arm(self.resolve(branch, reader, path), None, label_of(branch))
            chosen = self._choose(branch, reader, path)
            node = self.resolve(branch, reader.branches[chosen], path)
            return Arm(node, _member_index(reader, chosen), label_of(reader.branches[chosen]))
        except SchemaError:
            return Arm(None, None, label_of(branch))

    def _to_union(self, writer: Type, reader: Union, path: str) -> Node:
        chosen = self._choose(writer, reader, path)
        node = self.resolve(writer, reader.branches[chosen], path)
        members = self._members(reader, path)
        if not members:
            return node
        arm = Arm(node, _member_index(reader, chosen), label_of(reader.branches[chosen]))
        return UnionNode(indexed=False, arms=(arm,), members=members)

    def _members(self, reader: Type, path: str) -> tuple[Node, ...]:
        if not isinstance(reader, Union):
            return ()
        others = branches_of(reader)
        return tuple(self.resolve(branch, branch, path) for branch in others) if len(others) > 1 else ()

    def _choose(self, writer: Type, reader: Union, path: str) -> int:
        """Return the index of the reader's branch for the writer's type.

        The same kind precedes promotions, in Java's order.
        """
        same = [index for index, branch in enumerate(reader.branches) if kind_of(branch) == kind_of(writer)]
        named = isinstance(writer, Record | Enum | Fixed)
        for exact in (True, False):
            for index in same:
                branch = reader.branches[index]
                if not named or label_of(branch) == label_of(writer) or (not exact and _same_name(writer, branch)):
                    return index
        if isinstance(writer, Record):
            return self._first_that_resolves(writer, reader, same, path)
        for index, branch in enumerate(reader.branches):
            if kind_of(branch) in PROMOTIONS.get(kind_of(writer), ()):
                return index
        raise _mismatch(writer, reader, path)

    def _first_that_resolves(self, writer: Record, reader: Union, candidates: list[int], path: str) -> int:
        for index in candidates:
            try:
                self.resolve(writer, reader.branches[index], path)
            except SchemaError:
                continue
            return index
        raise _mismatch(writer, reader, path)


_RESOLVERS: Final[Mapping[type, Callable[[_Resolver, Any, Any, str], Node]]] = {
    Array: _Resolver._array,
    Enum: _Resolver._enum,
    Fixed: _Resolver._fixed,
    Map: _Resolver._map,
    Record: _Resolver._record,
}


def _leaf(writer: Primitive, reader: Type, path: str) -> Leaf:
    if not isinstance(reader, Primitive) or reader.name not in (writer.name, *PROMOTIONS.get(writer.name, ())):
        raise _mismatch(writer, reader, path)
    _check_meaning(writer, reader, path)
    return Leaf(writer.name, reader)


def _check_meaning(writer: Primitive | Fixed, reader: Primitive | Fixed, path: str) -> None:
    """Reject values that would change: milliseconds as microseconds, a decimal of another scale.

    Java reads such values wrongly, without an error.
    """
    here, there = reader.logical, writer.logical
    if here is not None and there is not None and (here.name, here.scale) != (there.name, there.scale):
        scales = f" of scale {there.scale} -> {here.scale}" if here.name == there.name else ""
        raise SchemaError(
            f"the reader's schema would change the writer's values at {path}: {there.name} -> {here.name}{scales}"
        )


def _same_name(writer: Type, reader: Type) -> bool:
    """Return True if two named types are the same: by their last names, or by an alias of the reader."""
    assert isinstance(writer, Fixed | Enum | Record)
    assert isinstance(reader, Fixed | Enum | Record)
    last = writer.name.rpartition(".")[2]
    return reader.name.rpartition(".")[2] == last or bool(reader.aliases & {writer.name, last})


def match_fields(writer: Record, reader: Record) -> dict[str, int]:
    """Return the reader's slots by the names of the writer's fields. A field's own name precedes its aliases.

    Aliases of fields belong to a record with its full name, as in ``org.apache.avro.Schema.applyAliases``. They do not
    apply between matching records with different names.
    """
    written = {entry.name for entry in writer.fields}
    renaming = _takes_aliases(writer, reader)
    matches: dict[str, int] = {}
    for slot, entry in enumerate(reader.fields):
        own = entry.name in written
        aliases = entry.aliases if renaming else ()
        name = entry.name if own else next((alias for alias in aliases if alias in written), None)
        if name is not None and (own or name not in {other.name for other in reader.fields}):
            matches.setdefault(name, slot)
    return matches


def _takes_aliases(writer: Record, reader: Record) -> bool:
    space = reader.name.rpartition(".")[0]
    aliases = (alias.removeprefix(".") if "." in alias or not space else f"{space}.{alias}" for alias in reader.aliases)
    return writer.name == reader.name or writer.name in aliases


def _defaults(writer: Record, reader: Record, filled: set[int], path: str) -> tuple[tuple[int, Field], ...]:
    rest = [(slot, entry) for slot, entry in enumerate(reader.fields) if slot not in filled]
    for _, entry in rest:
        if entry.default is MISSING:
            unused = ""
            if entry.aliases and not _takes_aliases(writer, reader):
                unused = f", or add the alias {writer.name} to {reader.name}, which the aliases of its fields require"
            raise SchemaError(
                f"the reader's field {path}.{entry.name} is not in the writer's schema and has no default; add a "
                f"default{unused}"
            )
    return tuple(rest)


def _member_index(reader: Union, chosen: int) -> int | None:
    """Return the index among the branches other than null, or None for null and for a single branch."""
    others = [index for index, branch in enumerate(reader.branches) if kind_of(branch) != "null"]
    return others.index(chosen) if chosen in others and len(others) > 1 else None


def _mismatch(writer: Type, reader: Type, path: str) -> SchemaError:
    return SchemaError(f"the reader's schema does not fit the writer's at {path}: {_show(writer)} -> {_show(reader)}")


def _show(schema: Type) -> str:
    if isinstance(schema, Union):
        return f"[{', '.join(_show(branch) for branch in schema.branches)}]"
    size = f" of {schema.size} bytes" if isinstance(schema, Fixed) else ""
    return f"{kind_of(schema)} {schema.name}{size}" if isinstance(schema, Fixed | Enum | Record) else kind_of(schema)


def arrow_type(node: Node) -> pa.DataType:
    """Return the Arrow type of a plan's values. Its writer is its reader.

    Raises SchemaError for recursive types and for types that are too wide.
    """
    return _Types().of(node)


class _Types:
    def __init__(self) -> None:
        self._columns = ColumnCount()

    def of(self, node: Node) -> pa.DataType:
        self._columns.add()
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
            raise SchemaError(
                f"the Avro record {node.name} contains itself, which Arrow does not support; read it by rows"
            )
        if isinstance(node, UnionNode):
            return self._union(node)
        inner: list[pa.DataType | None] = [None] * len(node.names)
        for step in node.steps:
            assert step.slot is not None, "only plans with the same writer and reader have types"
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
