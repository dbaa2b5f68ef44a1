"""Which branch of a union a value belongs to."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from pravega_serde.avro._model import MISSING, Enum, Fixed, Primitive, Record, Type, Union, kind_of, label_of
from pravega_serde.avro._write_values import wrong
from pravega_serde.columnar import MalformedError

__all__ = ["Choose", "chooser"]

#: The branch of a value, and what to write with it.
Choose = Callable[[Any], tuple[int, Any]]


def chooser(schema: Union, *, arrow: bool) -> Choose:
    """How values choose their branch: bare ones by their type, those of an Arrow column by the member that is set."""
    others = [index for index, branch in enumerate(schema.branches) if kind_of(branch) != "null"]
    null = next((index for index in range(len(schema.branches)) if index not in others), None)
    if len(others) == 1:
        return _choose_optional(null, others[0])
    return _choose_member(null, others) if arrow else _choose_natural(schema, null, others)


def _choose_optional(null: int | None, other: int) -> Choose:
    def choose(value: Any) -> tuple[int, Any]:
        return (null if value is None and null is not None else other), value

    return choose


def _choose_member(null: int | None, others: list[int]) -> Choose:
    """Of an Arrow struct of members, the one that is there."""
    members = [(f"member{position}", index) for position, index in enumerate(others)]

    def choose(value: Any) -> tuple[int, Any]:
        there = [] if value is None else [(index, value[name]) for name, index in members if value[name] is not None]
        if not there and null is not None:
            return null, None
        if len(there) != 1:
            raise MalformedError(f"{len(there)} members of the union are set where one is needed")
        return there[0]

    return choose


def _choose_natural(schema: Union, null: int | None, others: list[int]) -> Choose:
    """By a label, ``(name, value)``, or else the first branch that takes the value's Python type."""
    labels: dict[str, int] = {}
    for index in others:
        label = label_of(schema.branches[index])
        labels.setdefault(label, index)
        labels.setdefault(label.rpartition(".")[2], index)
    # A Python float is a double: it is no float where a double is there to take it.
    double = any(_test_name(schema.branches[index]) == "double" for index in others)
    tests = [(index, _test(schema.branches[index])) for index in others]
    tests.sort(key=lambda each: double and _test_name(schema.branches[each[0]]) == "float")

    def choose(value: Any) -> tuple[int, Any]:
        if value is None and null is not None:
            return null, None
        if isinstance(value, tuple) and len(value) == 2 and value[0] in labels:
            return labels[value[0]], value[1]
        for strict in (True, False):
            for index, fits in tests:
                if fits(value, strict):
                    return index, value
        raise wrong(f"member of the union of {', '.join(map(label_of, schema.branches))}", value)

    return choose


def _test(branch: Type) -> Callable[[Any, bool], bool]:
    """Whether a value is of a branch's type: strictly, or with an int where a float is wanted."""
    if isinstance(branch, Record):
        names = frozenset(entry.name for entry in branch.fields)
        needed = frozenset(entry.name for entry in branch.fields if entry.default is MISSING)
        return lambda value, strict: _is_record(value, names, needed, strict)
    if isinstance(branch, Enum):
        return lambda value, strict: isinstance(value, str) and value in branch.symbols  # noqa: ARG005
    if isinstance(branch, Fixed) and branch.logical is None:
        return lambda value, strict: isinstance(value, bytes) and len(value) == branch.size  # noqa: ARG005
    return _TESTS[_test_name(branch)]


def _test_name(branch: Type) -> str:
    if isinstance(branch, Primitive | Fixed) and branch.logical is not None:
        logical = branch.logical.name.removesuffix("-millis").removesuffix("-micros")
        if logical in _TESTS:
            return logical
    return "bytes" if isinstance(branch, Fixed) else kind_of(branch)


def _is_record(value: Any, names: frozenset[str], needed: frozenset[str], strict: bool) -> bool:
    if isinstance(value, Mapping):
        return needed <= value.keys() <= names
    return not strict and bool(names) and all(hasattr(value, name) for name in needed)


def _is_int(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


_TESTS: Final[Mapping[str, Callable[[Any, bool], bool]]] = {
    "array": lambda value, strict: isinstance(value, list | tuple),  # noqa: ARG005
    "boolean": lambda value, strict: isinstance(value, bool),  # noqa: ARG005
    "bytes": lambda value, strict: isinstance(value, bytes | bytearray | memoryview),  # noqa: ARG005
    "date": lambda value, strict: isinstance(value, date) and not isinstance(value, datetime),  # noqa: ARG005
    "decimal": lambda value, strict: isinstance(value, Decimal),  # noqa: ARG005
    "double": lambda value, strict: isinstance(value, float) or (not strict and _is_int(value, 1024)),
    "float": lambda value, strict: isinstance(value, float) or (not strict and _is_int(value, 64)),
    "int": lambda value, strict: _is_int(value, 32),  # noqa: ARG005
    "local-timestamp": lambda value, strict: isinstance(value, datetime) and value.tzinfo is None,  # noqa: ARG005
    "long": lambda value, strict: _is_int(value, 64),  # noqa: ARG005
    "map": lambda value, strict: isinstance(value, Mapping),  # noqa: ARG005
    "string": lambda value, strict: isinstance(value, str),  # noqa: ARG005
    "time": lambda value, strict: isinstance(value, time),  # noqa: ARG005
    "timestamp": lambda value, strict: isinstance(value, datetime) and value.tzinfo is not None,  # noqa: ARG005
    "uuid": lambda value, strict: isinstance(value, uuid.UUID),  # noqa: ARG005
}
