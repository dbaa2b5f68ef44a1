"""Row reader: reads one event at a time, with a tree of closures compiled from the plan.

It is the authority on valid events. The values of a union are bare: the value's type identifies the branch. If two
branches have the same Python type (two records, an enum and a string), a named type's value is the pair ``(full name,
value)``, which the writer accepts too. The writer prefers the other branches for a bare value.

An item of one byte may be a record of many fields: nulls, defaults, nested records. A mebibyte of them would need
gigabytes. The minimum memory of a value follows from the plan. It is counted (:class:`Budget`, :class:`Weights`) before
the items of a block are read, at the branches of unions, and at records inside themselves.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from pravega_serde.avro.resolve import (
    ArrayNode,
    EnumNode,
    Leaf,
    Link,
    MapNode,
    Node,
    RecordNode,
    Step,
    UnionNode,
    ambiguous_labels,
    min_size,
    resolve,
)
from pravega_serde.avro.schema import Field
from pravega_serde.avro.values import Converter, arrow_converter, natural_converter, promoter
from pravega_serde.avro.write_rows import encode_default
from pravega_serde.columnar import MalformedError, MemoryLimit
from pravega_serde.columnar.bad_rows import invalid_utf8
from pravega_serde.errors import DeserializationError, LimitExceededError

#: Function of the data and a position. It returns the value, and the position after it.
Read = Callable[[bytes, int], tuple[Any, int]]

#: Maximum depth of a record inside itself. Each level uses several of Python's frames, by default limited to 1000.
MAX_DEPTH: Final = 200

#: Memory of an item's slot in a list. For an entry: its key, its slot in a dict, and a temporary tuple.
_SLOT: Final = 8
_ENTRY: Final = 200

#: Errors of reading malformed bytes, or bytes after the end of the event.
WRONG: Final = (IndexError, struct.error, MalformedError)


class RowReader:
    """Reader of single events with a plan."""

    __slots__ = ("_budget", "_read", "_weight")

    def __init__(self, node: Node, *, arrow: bool = False) -> None:
        self._budget = Budget()
        compiler = _Compiler(self._budget, arrow=arrow)
        self._read = compiler.compile(node)
        self._weight = compiler.weights.of(node)

    def __call__(self, data: bytes) -> Any:
        """Return the value of an event.

        Zeros after it are ignored, because some Java writers pad. Other bytes are an error.
        """
        self._budget.start(len(data))
        try:
            self._budget.spend(self._weight)
            value, end = self._read(data, 0)
        except WRONG as error:
            raise _as_malformed(error).in_event("Avro") from error
        except RecursionError as error:
            raise LimitExceededError("records nested beyond the interpreter's recursion limit") from error
        if end < len(data) and data[end:].strip(b"\0"):
            raise DeserializationError(
                f"invalid Avro: {len(data) - end} bytes follow the value; written with another schema?"
            )
        return value


def _as_malformed(error: Exception) -> MalformedError:
    return error if isinstance(error, MalformedError) else MalformedError("the event ends too early")


class _Compiler:
    """Compiler of nodes to closures. Each node is compiled once, so shared and recursive records share a closure."""

    def __init__(self, budget: Budget, *, arrow: bool) -> None:
        self._budget = budget
        self._arrow = arrow
        self._done: dict[Node, Read] = {}
        self.weights = Weights(arrow=arrow)

    def compile(self, node: Node) -> Read:
        if node not in self._done:
            self._done[node] = _BUILDERS[type(node)](self, node)
        return self._done[node]

    def _leaf(self, node: Leaf) -> Read:
        target = node.target
        read = _read_fixed(target.size) if node.wire == "fixed" else _PRIMITIVES[node.wire]  # type: ignore[union-attr]
        convert = arrow_converter if self._arrow else natural_converter
        return _converted(_converted(read, promoter(node.wire, target)), convert(target))

    def _enum(self, node: EnumNode) -> Read:
        symbols = node.symbols

        def read(data: bytes, at: int) -> tuple[str, int]:
            index, at = read_long(data, at)
            symbol = symbols[index] if 0 <= index < len(symbols) else None
            if symbol is None:
                raise MalformedError(f"the enum has no symbol {index}")
            return symbol, at

        return read

    def _array(self, node: ArrayNode) -> Read:
        read_item = self.compile(node.item)
        spend = self._budget.for_items(*_item(node, self.weights))

        def read(data: bytes, at: int) -> tuple[list[Any], int]:
            items: list[Any] = []
            try:
                count, at = read_block(data, at)
                while count:
                    if spend is not None:
                        spend(count, len(data) - at)
                    for _ in range(count):
                        item, at = read_item(data, at)
                        items.append(item)
                    if not data[at]:  # no further block: the result of read_block, without the call
                        return items, at + 1
                    count, at = read_block(data, at)
            except WRONG as error:
                raise _as_malformed(error).within(f"[{len(items)}]") from error
            return items, at

        return read

    def _map(self, node: MapNode) -> Read:
        read_value = self.compile(node.value)
        spend = self._budget.for_items(*_item(node, self.weights))
        collect: Callable[[list[tuple[str, Any]]], Any] = _last_of_each if self._arrow else dict

        def read(data: bytes, at: int) -> tuple[Any, int]:
            entries: list[tuple[str, Any]] = []
            key = None
            try:
                count, at = read_block(data, at)
                while count:
                    if spend is not None:
                        spend(count, len(data) - at)
                    for _ in range(count):
                        key = None
                        key, at = read_string(data, at)
                        value, at = read_value(data, at)
                        entries.append((key, value))
                    count, at = read_block(data, at)
            except WRONG as error:
                raise _as_malformed(error).within(f"[{key!r}]" if key else f"{{{len(entries)}}}") from error
            return collect(entries), at

        return read

    def _record(self, node: RecordNode) -> Read:
        steps = [(step.name, self._name(node, step), self.compile(step.node)) for step in node.steps]
        defaults = [(node.names[slot], self._default(entry)) for slot, entry in node.defaults]
        if [name for _, name, _ in steps] != list(node.names) or any(name != read for name, read, _ in steps):
            return _read_resolved(node.names, steps, defaults)
        return _read_as_written([(name, read) for name, _, read in steps])

    def _name(self, node: RecordNode, step: Step) -> str | None:
        return None if step.slot is None else node.names[step.slot]

    def _default(self, entry: Field) -> Callable[[], Any]:
        data = encode_default(entry)
        read = self.compile(resolve(entry.type))
        # Created for each record, because the caller owns a returned list.
        return lambda: read(data, 0)[0]

    def _union(self, node: UnionNode) -> Read:
        tagged = set() if self._arrow else ambiguous_labels(node)
        arms = []
        counted = self.weights.least(node)
        for arm in node.arms:
            read = None if arm.node is None else self._weighed(arm.node, counted)
            if read is not None and self._arrow and arm.member is not None:
                read = _wrapped(read, f"member{arm.member}")
            elif read is not None and arm.label in tagged:
                read = _tagged(read, arm.label)
            arms.append(read)
        if not node.indexed:
            assert arms[0] is not None
            return arms[0]

        def read_union(data: bytes, at: int) -> tuple[Any, int]:
            index, at = read_long(data, at)
            if not 0 <= index < len(arms):
                raise MalformedError(f"the union has no branch {index}")
            read_arm = arms[index]
            if read_arm is None:
                raise MalformedError(f"the reader's schema has no branch for {node.arms[index].label!r}")
            return read_arm(data, at)

        return read_union

    def _weighed(self, node: Node, counted: int) -> Read:
        """Compile a branch of a union. Its memory beyond the lightest branch is counted when it is chosen."""
        read_value = self.compile(node)
        spend = self._budget.for_value(self.weights.of(node) - counted, 1 + min_size(node))
        if spend is None:
            return read_value

        def read(data: bytes, at: int) -> tuple[Any, int]:
            spend()
            return read_value(data, at)

        return read

    def _link(self, node: Link) -> Read:
        return _Linked(self, node, self._budget)


class _Linked:
    """Record inside itself. It is compiled on first use, and its depth is counted."""

    def __init__(self, compiler: _Compiler, link: Link, budget: Budget) -> None:
        self._compiler, self._link, self._budget = compiler, link, budget
        self._depth = threading.local()

    def __call__(self, data: bytes, at: int) -> tuple[Any, int]:
        assert self._link.target is not None
        read = self._compiler.compile(self._link.target)
        depth = getattr(self._depth, "value", 0) + 1
        if depth > MAX_DEPTH:
            raise MalformedError(f"{self._link.name} inside itself more than {MAX_DEPTH} times", limit=True)
        self._budget.spend(self._compiler.weights.of(self._link.target))
        self._depth.value = depth
        try:
            return read(data, at)
        finally:
            self._depth.value = depth - 1


_BUILDERS: Final[Mapping[type, Callable[[_Compiler, Any], Read]]] = {
    ArrayNode: _Compiler._array,
    EnumNode: _Compiler._enum,
    Leaf: _Compiler._leaf,
    Link: _Compiler._link,
    MapNode: _Compiler._map,
    RecordNode: _Compiler._record,
    UnionNode: _Compiler._union,
}


def _read_as_written(fields: list[tuple[str, Read]]) -> Read:
    """Compile a record with exactly the writer's fields."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        record = {}
        name = ""
        try:
            for name, read_field in fields:
                record[name], at = read_field(data, at)
        except WRONG as error:
            raise _as_malformed(error).within(f".{name}") from error
        return record, at

    return read


def _read_resolved(
    names: tuple[str, ...], steps: list[tuple[str, str | None, Read]], defaults: list[tuple[str, Callable[[], Any]]]
) -> Read:
    """Compile a record with the reader's fields: some skipped, some renamed, some with defaults."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        record: dict[str, Any] = dict.fromkeys(names)
        written = ""
        try:
            for written, name, read_field in steps:  # noqa: B007
                value, at = read_field(data, at)
                if name is not None:
                    record[name] = value
        except WRONG as error:
            raise _as_malformed(error).within(f".{written}") from error
        for name, default in defaults:
            record[name] = default()
        return record, at

    return read


def _wrapped(read_value: Read, member: str) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        value, at = read_value(data, at)
        return {member: value}, at

    return read


def _tagged(read_value: Read, label: str) -> Read:
    def read(data: bytes, at: int) -> tuple[tuple[str, Any], int]:
        value, at = read_value(data, at)
        return (label, value), at

    return read


def _last_of_each(entries: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Keep the last entry of each key, like Java's maps. Arrow would keep all."""
    last = dict(entries)
    return entries if len(last) == len(entries) else list(last.items())


def read_block(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the number of items in the next block of an array or map, or 0 at its end."""
    byte = data[at]
    if byte < 0x80 and not byte & 1:  # the usual case: less than 64 items, without the block's size
        return byte >> 1, at + 1
    count, at = read_long(data, at)
    if count < 0:
        # A negative count is followed by the block's size in bytes, for readers that skip it.
        _, at = read_long(data, at)
    return abs(count), at


def default_array(entry: Field, kind: pa.DataType) -> pa.Array:
    """Return the default of a field as an array of one value."""
    return pa.array([RowReader(resolve(entry.type), arrow=True)(encode_default(entry))], kind)


_unpack_float: Final = struct.Struct("<f").unpack_from
_unpack_double: Final = struct.Struct("<d").unpack_from


def read_long(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Read a zigzag varint of up to 64 bits."""
    byte = data[at]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at + 1
    value = byte & 0x7F
    shift = 7
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise MalformedError("invalid number: more than ten bytes")
    if value >> 64:
        raise MalformedError("invalid number: more than 64 bits")
    return (value >> 1) ^ -(value & 1), at + 1


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_long(data, at)
    if not -0x80000000 <= value <= 0x7FFFFFFF:
        raise MalformedError(f"invalid 32-bit int {value}")
    return value, at


def _read_null(data: bytes, at: int) -> tuple[None, int]:
    return None, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    # Java reads any other byte as false. That would hide a wrong schema.
    byte = data[at]
    if byte > 1:
        raise MalformedError(f"invalid boolean {byte}")
    return byte == 1, at + 1


def _read_float(data: bytes, at: int) -> tuple[float, int]:
    return _unpack_float(data, at)[0], at + 4


def _read_double(data: bytes, at: int) -> tuple[float, int]:
    return _unpack_double(data, at)[0], at + 8


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise MalformedError(f"{size} bytes are announced, but {len(data) - at} remain")
    return data[at:end], end


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """Read a string, after its length in bytes."""
    raw, end = _read_bytes(data, at)
    try:
        return raw.decode(), end
    except UnicodeDecodeError as error:
        raise invalid_utf8(error) from error


_PRIMITIVES: Final[Mapping[str, Read]] = {
    "null": _read_null,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": read_long,
    "float": _read_float,
    "double": _read_double,
    "bytes": _read_bytes,
    "string": read_string,
}


def _read_fixed(size: int) -> Read:
    """Return a reader of a fixed number of bytes."""

    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size
        if end > len(data):
            raise MalformedError(f"{size} bytes are expected, but {len(data) - at} remain")
        return data[at:end], end

    return read


def _converted(read_raw: Read, convert: Converter | None) -> Read:
    """Return a reader that also converts."""
    if convert is None:
        return read_raw

    def read(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read_raw(data, at)
        return convert(value), at

    return read


#: Maximum items without bytes (nulls, empty records). Otherwise a few bytes could claim any number of them.
MAX_EMPTY_ITEMS: Final = 65_536

#: 60 MiB for an event of 1 MiB.
MEMORY: Final = MemoryLimit(36, base=24 << 20)
# Separate names, because every event uses them and takes only some microseconds.
_BASE, _PER_BYTE = MEMORY.base, MEMORY.per_byte

#: Memory of CPython's values of logical types. Numbers and texts use little, or in proportion to their bytes.
_LOGICAL: Final = {"decimal": 112, "uuid": 80, "timestamp": 56, "local-timestamp": 56, "time": 48, "date": 40}
_LIST: Final = 88
_MAP: Final = 128
_MEMBER: Final = 184
_PAIR: Final = 64
#: Memory of a value in an Arrow column, whether it is null or not.
_CELL: Final = 16


class Budget(threading.local):
    """Items without bytes, and bytes of memory, that the current event may still use."""

    _items = 0
    _memory = 0
    _size = 0

    def start(self, size: int) -> None:
        """Start an event of ``size`` bytes."""
        self._items, self._memory, self._size = MAX_EMPTY_ITEMS, _BASE + _PER_BYTE * size, size

    def spend(self, weight: int) -> None:
        """Use memory. Raises MalformedError if not enough is left."""
        self._memory -= weight
        if self._memory < 0:
            raise MEMORY.exceeded(self._size)

    def for_items(self, weight: int, size: int) -> Callable[[int, int], None] | None:
        """Return a check of a block, or None if its bytes are a sufficient limit.

        The check accepts the number of items and the number of bytes left. ``weight`` and ``size`` are the minimum
        memory and bytes of an item.
        """
        if size and weight <= _PER_BYTE * size:
            return None

        def spend(count: int, left: int) -> None:
            if not size:
                self._spend_empty(count)
            elif count > left // size:
                count = left // size + 1  # items after the event's end are never read
            memory = self._memory = self._memory - weight * count
            if memory < 0:
                self.spend(0)

        return spend

    def for_value(self, weight: int, size: int) -> Callable[[], None] | None:
        """Return a check of a single value, or None if its bytes are a sufficient limit."""
        return None if weight <= _PER_BYTE * size else lambda: self.spend(weight)

    def _spend_empty(self, count: int) -> None:
        self._items -= count
        if self._items < 0:
            raise MalformedError(f"{count} items without bytes; the limit is {MAX_EMPTY_ITEMS}", limit=True)


class Weights:
    """Minimum memory of values, in bytes. For Arrow, it includes the columns that hold the value."""

    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        # Records are shared: a small schema may expand to a very large tree.
        self._known: dict[Node, int] = {}
        self._cells: dict[Node, int] = {}

    def of(self, node: Node) -> int:
        """Return the weight of a value, without items, chosen branches and records inside themselves."""
        if node not in self._known:
            self._known[node] = self._weigh(node)
        return self._known[node]

    def _weigh(self, node: Node) -> int:
        if isinstance(node, Leaf):
            return _leaf_weight(node) + _CELL * self._arrow
        if isinstance(node, RecordNode):
            return self._record(node)
        if isinstance(node, UnionNode):
            return self.least(node) + self._choice(node)
        return {ArrayNode: _LIST, MapNode: _MAP}.get(type(node), 0)

    def _record(self, node: RecordNode) -> int:
        own = sys.getsizeof(dict.fromkeys(node.names))
        return (
            own + sum(self.of(step.node) for step in node.steps) + sum(_deep(each.default) for _, each in node.defaults)
        )

    def least(self, node: UnionNode) -> int:
        """Return the weight of the lightest branch."""
        return min((self.of(arm.node) for arm in node.arms if arm.node is not None), default=0)

    def _choice(self, node: UnionNode) -> int:
        """Return the weight of a union's member index or label."""
        if self._arrow:
            return _MEMBER + _CELL * self._width(node) if node.members else 0
        return _PAIR if ambiguous_labels(node) else 0

    def _width(self, node: Node) -> int:
        """Return the number of columns of a value. For a union, count those of all members."""
        if node not in self._cells:
            self._cells[node] = sum(map(self._width, _parts(node))) or 1
        return self._cells[node]


def _item(node: ArrayNode | MapNode, weights: Weights) -> tuple[int, int]:
    """Return the minimum memory of an item, and its minimum bytes in the event."""
    if isinstance(node, ArrayNode):
        return _SLOT + weights.of(node.item), min_size(node.item)
    return _ENTRY + weights.of(node.value), 1 + min_size(node.value)


def item_weight(node: ArrayNode | MapNode) -> int:
    """Return the minimum memory of an item in a column, or 0 if its bytes are a sufficient limit."""
    weight, size = _item(node, Weights(arrow=True))
    return weight if weight > _PER_BYTE * size else 0


def surely_fits(node: Node) -> int:
    """Return a size in bytes: no event up to it exceeds the memory limit. 0 for items that may have no bytes."""
    weights = Weights(arrow=True)
    per_byte = 0.0
    waiting, seen = [node], set[Node]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        waiting += _inside(at)
        if isinstance(at, ArrayNode | MapNode):
            weight, size = _item(at, weights)
            if not size:
                return 0
            per_byte += weight / size if weight > _PER_BYTE * size else 0
        elif isinstance(at, UnionNode):
            heaviest = max(weights.of(arm.node) for arm in at.arms if arm.node is not None) - weights.least(at)
            per_byte += heaviest
    left = _BASE - weights.of(node)
    return max(0, int(left / (per_byte - _PER_BYTE))) if per_byte > _PER_BYTE else 2**31 - 1


def _inside(node: Node) -> list[Node]:
    if isinstance(node, ArrayNode):
        return [node.item]
    if isinstance(node, MapNode):
        return [node.value]
    if isinstance(node, UnionNode):
        return [arm.node for arm in node.arms if arm.node is not None]
    return [step.node for step in node.steps] if isinstance(node, RecordNode) else []


def _leaf_weight(node: Leaf) -> int:
    logical = node.target.logical
    return _LOGICAL.get(logical.name.removesuffix("-millis").removesuffix("-micros"), 0) if logical else 0


def _parts(node: Node) -> list[Node]:
    if isinstance(node, RecordNode):
        return [step.node for step in node.steps]
    return list(node.members) if isinstance(node, UnionNode) else []


def _deep(default: Any) -> int:
    """Return the memory of a default, which is JSON."""
    size = sys.getsizeof(default)
    if isinstance(default, dict):
        return size + sum(map(_deep, default.values()))
    return size + sum(map(_deep, default)) if isinstance(default, list) else size
