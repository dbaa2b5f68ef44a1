"""Fields of JSON and CBOR events: types, optionality, logical types, and the columns that follow from them.

Memory is bounded by the number of fields and by their depth. Beyond these limits, an object is a map.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pravega_serde.columnar.bad_rows import has_surrogate
from pravega_serde.sniffing.fields import MILLIS, SniffedField

_DEPTH: Final = 12
_MOST_FIELDS: Final = 1000
#: Names in one object, beyond which it is a map.
_MOST_NAMES: Final = 200
#: Characters of a name that are shown.
_LONGEST_NAME: Final = 100
#: Distinct texts that a decimal logical type needs.
_FEWEST_VALUES: Final = 5
#: Items of one array that are examined.
_ITEMS: Final = 50

_NAMES: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "decimal",
    str: "string",
    bytes: "bytes",
    datetime: "timestamp",
    date: "date",
    UUID: "uuid",
    dict: "object",
    list: "array",
    type(None): "null",
}

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LOCAL: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?"
#: Logical type of a text -> its form.
_FORMS: Final = {
    "decimal": re.compile(r"-?(?:0|[1-9]\d{0,18})\.\d{1,18}"),
    "uuid": _UUID,
    "date": re.compile(r"\d{4}-\d\d-\d\d"),
    "local-timestamp": re.compile(_LOCAL),
    "timestamp": re.compile(_LOCAL + r"(?:Z|[+-]\d\d:\d\d)"),
}
_SECONDS: Final = range(978_307_200, 2_208_988_800)
#: Names whose whole numbers can be times.
_TIME_NAME: Final = re.compile(
    r"(?i)(?:^|_)(?:ts|time|timestamp|date|at)(?:$|_)|time(?:stamp)?$|(?:_at|At|Date|Time)$|^ts"
)

_INT64: Final = range(-(1 << 63), 1 << 63)
_UTC: Final = pa.timestamp("us", "UTC")
_LOGICAL: Final = {"date": pa.date32(), "timestamp": _UTC, "local-timestamp": pa.timestamp("us")}
_SCALARS: Final = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "timestamp": _UTC,
    "date": pa.date32(),
}


class DocumentFields:
    """Tree of the fields of many values."""

    def __init__(self) -> None:
        self._budget = [_MOST_FIELDS]
        self._root = _Node("", self._budget)

    def add(self, value: Any) -> None:
        """Add the value of an event."""
        self._root.add(value, _DEPTH)

    @property
    def is_complete(self) -> bool:
        """False if the events have more fields than are kept."""
        return self._budget[0] > 0

    def fields(self) -> tuple[SniffedField, ...]:
        """Return all fields, depth first."""
        return tuple(self._root.described("", optional=False))

    def columns(self) -> tuple[pa.Schema | None, tuple[str, ...]]:
        """Return the columns of events that are objects, and the paths of fields with several types or only null."""
        left_out: list[str] = []
        kind = self._root.arrow_type("", left_out)
        return (pa.schema(list(kind)) if kind is not None and pa.types.is_struct(kind) else None), tuple(left_out)


class _Node:
    """Value at a path."""

    __slots__ = ("_budget", "count", "inside", "is_map", "items", "logical", "name", "out_of_range", "types", "values")

    def __init__(self, name: str, budget: list[int]) -> None:
        self.name, self._budget = name, budget
        self.count = 0
        self.types: Counter[str] = Counter()
        self.logical: Counter[str] = Counter()
        self.inside: dict[str, _Node] = {}
        self.items: _Node | None = None
        self.is_map = False
        self.out_of_range = False
        self.values: set[str] = set()

    def add(self, value: Any, depth: int) -> None:
        self.count += 1
        kind = _NAMES.get(type(value), "other")
        self.types[kind] += 1
        if kind == "string":
            self._text(value)
        elif kind == "integer":
            self._integer(value)
        elif depth > 0 and kind == "object":
            self._object(value, depth)
        elif depth > 0 and kind == "array":
            for each in value[:_ITEMS]:
                self._items().add(each, depth - 1)

    def _text(self, value: str) -> None:
        logical = _logical_text(value)
        if logical and len(self.values) < _FEWEST_VALUES:
            self.values.add(value)
        self.logical[logical] += 1

    def _integer(self, value: int) -> None:
        self.out_of_range |= value not in _INT64
        if value in MILLIS:
            self.logical["epoch-millis"] += 1
        elif value in _SECONDS:
            self.logical["epoch-seconds"] += 1

    def _items(self) -> _Node:
        if self.items is None:
            self.items = _Node(self.name, self._budget)
        return self.items

    def _object(self, value: dict[Any, Any], depth: int) -> None:
        for name, each in value.items():
            key = name if isinstance(name, str) else repr(name)[:_LONGEST_NAME]
            if not self.is_map and key not in self.inside:
                self._take(key)
            if self.is_map:
                self._items().add(each, depth - 1)
            else:
                self.inside[key].add(each, depth - 1)

    def _take(self, key: str) -> None:
        """Make room for a name, or become a map: for too many names, and for names that are not words."""
        if len(self.inside) >= _MOST_NAMES or self._budget[0] <= 0 or len(key) > _LONGEST_NAME or _UUID.fullmatch(key):
            self.is_map = True
            self._budget[0] += len(self.inside)
            self.inside = {}
            return
        self._budget[0] -= 1
        self.inside[key] = _Node(key, self._budget)

    # Results

    def described(self, path: str, *, optional: bool) -> Iterator[SniffedField]:
        if path:
            types = tuple(name for name, _ in self.types.most_common() if name != "null") or ("null",)
            yield SniffedField(path, types, optional or self.types["null"] > 0, self.logical_type())
        before = f"{path}." if path else ""
        objects = self.types["object"]
        for name, node in self.inside.items():
            yield from node.described(f"{before}{_shown(name)}", optional=node.count < objects)
        if self.items is not None:
            yield from self.items.described(path + ("{}" if self.is_map else "[]"), optional=False)

    def logical_type(self) -> str:
        """Return the logical type that all values have, or an empty string."""
        values = self.count - self.types["null"]
        if values == 0 or len(self.logical) != 1:
            return ""
        ((name, count),) = self.logical.items()
        if name == "decimal" and len(self.values) < _FEWEST_VALUES:
            return ""  # a version such as 2.7
        if count != values or (name.startswith("epoch") and not _TIME_NAME.search(self.name)):
            return ""
        return name

    def arrow_type(self, path: str, left_out: list[str]) -> pa.DataType | None:
        """Return the column type that reads all values, or None after adding the path to ``left_out``."""
        kinds = set(self.types) - {"null"}
        found = self._numbers(kinds) if kinds <= {"integer", "number", "decimal"} else None
        if found is None and len(kinds) == 1:
            (kind,) = kinds
            found = self._single(kind, path, left_out)
        if found is None and (not left_out or not left_out[-1].startswith(path)):
            left_out.append(path or "$")
        return found

    def _numbers(self, kinds: set[str]) -> pa.DataType | None:
        if "decimal" in kinds:
            return None
        if "number" in kinds:
            return pa.float64()
        return pa.decimal128(38, 0) if self.out_of_range else pa.int64()

    def _single(self, kind: str, path: str, left_out: list[str]) -> pa.DataType | None:
        logical = self.logical_type()
        if kind == "string":
            return _LOGICAL.get(logical, pa.string())
        if kind == "array":
            item = pa.string() if self.items is None else self.items.arrow_type(f"{path}[]", left_out)
            return None if item is None else pa.list_(item)
        if kind != "object":
            return _SCALARS.get(kind)
        if self.is_map:
            value = self._items().arrow_type(f"{path}{{}}", left_out)
            return None if value is None else pa.map_(pa.string(), value)
        before = f"{path}." if path else ""
        fields = {name: node.arrow_type(f"{before}{_shown(name)}", left_out) for name, node in self.inside.items()}
        known = [pa.field(name, kind) for name, kind in fields.items() if kind is not None and _is_column_name(name)]
        left_out += [f"{before}{_shown(name)}" for name in fields if not _is_column_name(name)]
        return pa.struct(known) if known else None


def _is_column_name(name: str) -> bool:
    """True for names other than the empty one, and those with unpaired surrogates."""
    return bool(name) and not has_surrogate(name)


def _shown(name: str) -> str:
    return name if name.isprintable() and "." not in name else repr(name)


def _logical_text(value: str) -> str:
    """Return the logical type of a text, or an empty string."""
    if not 3 <= len(value) <= 40:
        return ""
    for name, form in _FORMS.items():
        if form.fullmatch(value):
            return name if _is_valid(name, value) else ""
    return ""


def _is_valid(name: str, value: str) -> bool:
    if name in ("decimal", "uuid"):
        return True
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
