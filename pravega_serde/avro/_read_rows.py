"""The plain path: one event at a time, by a tree of closures made from the plan. It is the authority on what is valid.

The values of a union are bare: the branch is known by the value's type. Only where two branches would give the same
Python type (two records, an enum and a string) is a named type's value the pair ``(full name, value)``, which the
writer takes, too.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from pravega_serde.avro._budget import Budget, TooMuchError, Weights
from pravega_serde.avro._model import Field
from pravega_serde.avro._nodes import (
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
)
from pravega_serde.avro._plan import plan
from pravega_serde.avro._read_values import PRIMITIVES, Read, converted, read_fixed, read_long, read_string
from pravega_serde.avro._values import (
    arrow_converter,
    natural_converter,
    promoter,
)
from pravega_serde.avro._write_rows import encode_default
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import DeserializationError, LimitExceededError

__all__ = ["RowReader", "row_reader"]

#: A record may contain itself this often. Each level takes Python frames, of which there are 1000 by default.
MAX_DEPTH: Final = 200

#: Memory of an item's place in a list; of an entry: its key, its place in a dict, and a tuple for a while.
_SLOT: Final = 8
_ENTRY: Final = 200

#: What stands between a reader's error and the event's: everything that reading beyond the end or wrong bytes cause.
_WRONG: Final = (IndexError, struct.error, MalformedError)


class RowReader:
    """Reads single events by a plan."""

    __slots__ = ("_budget", "_read", "_weight")

    def __init__(self, node: Node, *, arrow: bool = False) -> None:
        self._budget = Budget()
        compiler = _Compiler(self._budget, arrow=arrow)
        self._read = compiler.compile(node)
        self._weight = compiler.weights.of(node)

    def __call__(self, data: bytes) -> Any:
        """The value of an event. Zeros behind it are ignored: some of Java's writers pad; anything else is an error."""
        self._budget.start(len(data))
        try:
            self._budget.spend(self._weight)
            value, end = self._read(data, 0)
        except TooMuchError as error:
            raise LimitExceededError(error.reason, field_path=error.field_path()) from error
        except _WRONG as error:
            wrong = _as_malformed(error)
            raise DeserializationError(f"not Avro: {wrong.reason}", field_path=wrong.field_path()) from error
        except RecursionError as error:
            raise LimitExceededError("records inside records beyond the interpreter's recursion limit") from error
        if end < len(data) and data[end:].strip(b"\0"):
            raise DeserializationError(
                f"not Avro of this schema: {len(data) - end} bytes follow the value; written with another schema?"
            )
        return value


def _as_malformed(error: Exception) -> MalformedError:
    return error if isinstance(error, MalformedError) else MalformedError("the event ends too early")


class _Compiler:
    """Makes the closure of every node once, so that shared and recursive records share theirs."""

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
        read = read_fixed(target.size) if node.wire == "fixed" else PRIMITIVES[node.wire]  # type: ignore[union-attr]
        convert = arrow_converter if self._arrow else natural_converter
        return converted(converted(read, promoter(node.wire, target)), convert(target))

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
        spend = self._budget.for_items(_SLOT + self.weights.of(node.item), min_size(node.item))

        def read(data: bytes, at: int) -> tuple[list[Any], int]:
            items: list[Any] = []
            try:
                count, at = _block(data, at)
                while count:
                    if spend is not None:
                        spend(count, len(data) - at)
                    for _ in range(count):
                        item, at = read_item(data, at)
                        items.append(item)
                    if not data[at]:  # no further block: what _block says, without the call
                        return items, at + 1
                    count, at = _block(data, at)
            except _WRONG as error:
                raise _as_malformed(error).within(f"[{len(items)}]") from error
            return items, at

        return read

    def _map(self, node: MapNode) -> Read:
        read_value = self.compile(node.value)
        spend = self._budget.for_items(_ENTRY + self.weights.of(node.value), 1 + min_size(node.value))
        collect: Callable[[list[tuple[str, Any]]], Any] = _last_of_each if self._arrow else dict

        def read(data: bytes, at: int) -> tuple[Any, int]:
            entries: list[tuple[str, Any]] = []
            key = None
            try:
                count, at = _block(data, at)
                while count:
                    if spend is not None:
                        spend(count, len(data) - at)
                    for _ in range(count):
                        key = None
                        key, at = read_string(data, at)
                        value, at = read_value(data, at)
                        entries.append((key, value))
                    count, at = _block(data, at)
            except _WRONG as error:
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
        read = self.compile(plan(entry.type))
        # Made anew for each record: a list given to the caller is the caller's.
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
                raise MalformedError(f"the reader's schema has no place for {node.arms[index].label!r}")
            return read_arm(data, at)

        return read_union

    def _weighed(self, node: Node, counted: int) -> Read:
        """A branch of a union; what it takes beyond the lightest one is counted when it is chosen."""
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
    """A record inside itself: compiled when first met, with its depth counted."""

    def __init__(self, compiler: _Compiler, link: Link, budget: Budget) -> None:
        self._compiler, self._link, self._budget = compiler, link, budget
        self._depth = threading.local()

    def __call__(self, data: bytes, at: int) -> tuple[Any, int]:
        assert self._link.target is not None
        read = self._compiler.compile(self._link.target)
        depth = getattr(self._depth, "value", 0) + 1
        if depth > MAX_DEPTH:
            raise TooMuchError(f"{self._link.name} inside itself more than {MAX_DEPTH} times")
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
    """A record whose fields are the writer's, all of them."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        record = {}
        name = ""
        try:
            for name, read_field in fields:
                record[name], at = read_field(data, at)
        except _WRONG as error:
            raise _as_malformed(error).within(f".{name}") from error
        return record, at

    return read


def _read_resolved(
    names: tuple[str, ...], steps: list[tuple[str, str | None, Read]], defaults: list[tuple[str, Callable[[], Any]]]
) -> Read:
    """A record whose fields are the reader's: some skipped, some renamed, some by default."""

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        record: dict[str, Any] = dict.fromkeys(names)
        written = ""
        try:
            for written, name, read_field in steps:  # noqa: B007
                value, at = read_field(data, at)
                if name is not None:
                    record[name] = value
        except _WRONG as error:
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
    """Arrow would keep all entries of a key; Java's maps keep the last."""
    last = dict(entries)
    return entries if len(last) == len(entries) else list(last.items())


def _block(data: bytes, at: int) -> tuple[int, int]:
    """Number of items in the next block of an array or map; 0 at its end."""
    byte = data[at]
    if byte < 0x80 and not byte & 1:  # nearly always: less than 64 items, without the block's size
        return byte >> 1, at + 1
    count, at = read_long(data, at)
    if count < 0:
        # A negative count is followed by the block's size in bytes, for readers that skip it.
        _, at = read_long(data, at)
    return abs(count), at


def row_reader(node: Node, *, arrow: bool = False) -> Callable[[bytes], Any]:
    """The reader of single events: natural values, or those that pyarrow takes for the plan's Arrow type."""
    return RowReader(node, arrow=arrow)
