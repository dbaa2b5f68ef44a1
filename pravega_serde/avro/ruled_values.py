"""Values of Avro payloads as the rules of a registered schema see them: natural values, and fields with tags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pravega_serde.avro.references import full_name
from pravega_serde.avro.schema import (
    Array,
    Enum,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    kind_of,
    label_of,
    load,
    parse_json,
)
from pravega_serde.avro.serializer import AvroSerializer
from pravega_serde.avro.write_rows import union_chooser
from pravega_serde.registry.interface import ChangeOf, RuledField

_TAGS: Final = "confluent:tags"
#: Changes a value; the second argument is the record that has it.
_Change = Callable[[Any, Any], Any]


class AvroRuledValues:
    """Natural values. Fields have the name of their record before their own."""

    def __init__(self, text: str, tags_of: Callable[[str], frozenset[str]]) -> None:
        serializer = AvroSerializer(text)
        self.read, self.write = serializer.deserialize, serializer.serialize
        self.imported = self.write
        self._schema, self._tags_of = load(text)[0], tags_of
        self._inline: dict[str, frozenset[str]] = {}
        _collect(parse_json(text, "schema"), "", self._inline)

    def plain(self, value: Any) -> Any:
        """Return the value."""
        return value

    exported = plain

    def changed(self, change_of: ChangeOf, *, decrypts: bool = False) -> Callable[[Any], Any]:
        """Return a function that changes fields inside a value, and returns a new one."""
        change = _Compiler(change_of, self._inline, self._tags_of).of(self._schema, None)
        return (lambda value: value) if change is None else lambda value: change(value, value)


def _collect(schema: Any, space: str, found: dict[str, frozenset[str]]) -> None:
    """Add the tags of all fields, by their full names."""
    if isinstance(schema, list):
        for each in schema:
            _collect(each, space, found)
    elif isinstance(schema, Mapping):
        if isinstance(schema.get("fields"), list):
            record = full_name(schema, space)
            for field in schema["fields"]:
                if isinstance(field, Mapping):
                    if isinstance(field.get(_TAGS), list):
                        found[f"{record}.{field.get('name')}"] = frozenset(map(str, field[_TAGS]))
                    _collect(field.get("type"), record.rpartition(".")[0], found)
        for inner in ("type", "items", "values"):
            if isinstance(schema.get(inner), Mapping | list):
                _collect(schema[inner], space, found)


class _Compiler:
    """Compiler of a change. The types without a field to change are skipped."""

    def __init__(
        self, change_of: ChangeOf, inline: Mapping[str, frozenset[str]], tags_of: Callable[[str], frozenset[str]]
    ) -> None:
        self._change_of, self._inline, self._tags_of = change_of, inline, tags_of
        self._records: dict[int, list[_Change | None]] = {}

    def of(self, schema: Type, field: tuple[str, str] | None) -> _Change | None:
        """Return the change of a type's values. ``field`` has the full name and the name of the field."""
        if isinstance(schema, Record):
            return self._record(schema)
        if isinstance(schema, Array):
            return _of_items(self.of(schema.items, field))
        if isinstance(schema, Map):
            return _of_values(self.of(schema.values, field))
        if isinstance(schema, Union):
            return self._union(schema, field)
        return self._leaf(schema, field)

    def _leaf(self, schema: Type, field: tuple[str, str] | None) -> _Change | None:
        if field is None:
            return None
        full, name = field
        tags = self._inline.get(full, frozenset()) | self._tags_of(full)
        kind = kind_of(schema).upper()
        if isinstance(schema, Primitive) and schema.logical is not None:
            kind = f"{kind} ({schema.logical.name})"
        return self._change_of(RuledField(full, name, "ENUM" if isinstance(schema, Enum) else kind, tags))

    def _union(self, schema: Union, field: tuple[str, str] | None) -> _Change | None:
        arms = [self.of(branch, field) for branch in schema.branches]
        if not any(arms):
            return None
        choose, labels = union_chooser(schema), list(map(label_of, schema.branches))

        def change(value: Any, record: Any) -> Any:
            index, inner = choose(value)
            arm = arms[index]
            if arm is None:
                return value
            made = arm(inner, record)
            return (labels[index], made) if isinstance(value, tuple) else made

        return change

    def _record(self, schema: Record) -> _Change | None:
        known = self._records.get(id(schema))
        if known is not None:  # it contains itself, or occurs again

            def later(value: Any, record: Any) -> Any:
                change = known[0]
                return value if change is None else change(value, record)

            return later
        cell = self._records[id(schema)] = [None]
        fields = [
            (each.name, change)
            for each in schema.fields
            if (change := self.of(each.type, (f"{schema.name}.{each.name}", each.name))) is not None
        ]
        if fields:
            cell[0] = _of_fields(fields)
        return cell[0]


def _of_items(change: _Change | None) -> _Change | None:
    return None if change is None else lambda value, record: [change(item, record) for item in value]


def _of_values(change: _Change | None) -> _Change | None:
    if change is None:
        return None
    return lambda value, record: {name: change(item, record) for name, item in value.items()}


def _of_fields(fields: Iterable[tuple[str, _Change]]) -> _Change:
    def change(value: Any, _record: Any) -> Any:
        made = dict(value)
        for name, change_field in fields:
            made[name] = change_field(value[name], value)
        return made

    return change
