"""Fields by their path, such as ``card.number``, in values, Protobuf messages and columns.

A path has the names of fields. Lists and maps on the way have no name: the path goes to each item, or each value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import list_items, list_offsets, map_entries, valid_rows
from pravega_serde.columnar.arrays import Int64s
from pravega_serde.columnar.types import family, is_family
from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.suggestions import did_you_mean

#: Converts a string or binary column; the second argument has the row of each value.
ChangeColumn = Callable[[pa.Array, Int64s], pa.Array]
ChangeValue = Callable[[Any], Any]

# Steps without a name.
_ITEMS: Final = 0
_VALUES: Final = 1
_Steps = tuple[str | int, ...]
_LISTS: Final = (list, tuple)


@dataclass(frozen=True, slots=True)
class FieldPath:
    """Path to string or binary values inside a type."""

    path: str
    steps: _Steps
    leaf: Literal["string", "binary", "unknown"]
    """``unknown`` if the type is unknown: lists on the way are then found in the values."""

    @classmethod
    def in_type(cls, path: str, kind: pa.DataType) -> FieldPath:
        """Return the path inside a type. Raises :class:`SchemaError` if it does not lead to strings or bytes."""
        steps: list[str | int] = []
        names = path.split(".")
        while (name := family(kind)) in ("fields", "items", "entries"):
            if name == "items":
                steps.append(_ITEMS)
                kind = kind.value_type
            elif name == "entries":
                steps.append(_VALUES)
                kind = kind.item_type
            elif not names:
                break
            else:
                field = names.pop(0)
                place = kind.get_field_index(field)
                if place < 0:
                    known = [each.name for each in kind]
                    raise SchemaError(
                        f"there is no field {path!r} to encrypt: no {field!r}{did_you_mean(field, known)}; "
                        f"fields: {', '.join(known)}"
                    )
                steps.append(field)
                kind = kind.field(place).type
        while name == "dictionary":
            kind = kind.value_type
            name = family(kind)
        if names or not steps:
            raise SchemaError(
                f"there is no field {path!r} to encrypt: {'.'.join(map(str, steps)) or 'an event'} is {kind}"
            )
        if is_family(kind, "text"):
            return cls(path, tuple(steps), "string")
        if is_family(kind, "binary") and not pa.types.is_fixed_size_binary(kind):
            return cls(path, tuple(steps), "binary")
        raise SchemaError(f"the field {path!r} is {kind}: only strings and bytes can be encrypted")

    @classmethod
    def by_name(cls, path: str) -> FieldPath:
        """Return the path inside values of an unknown type."""
        return cls(path, tuple(path.split(".")), "unknown")

    def exists_in(self, kind: pa.DataType) -> bool:
        """Return True if a type has the field."""
        try:
            FieldPath.in_type(self.path, kind)
        except SchemaError:
            return False
        return True

    def change_value(self, value: Any, change: ChangeValue, misspelled: Callable[[str], None]) -> Any:
        """Return a copy of a value, or of a Protobuf message, with other values of the field.

        ``misspelled`` receives a text if the type is unknown, and a value has only a field of a similar name.
        """
        if hasattr(value, "DESCRIPTOR"):
            copy = type(value)()
            copy.CopyFrom(value)
            _change_message(copy, self.steps, change)
            return copy
        return self._changed(value, self.steps, change, misspelled)

    def _changed(
        self, value: Any, steps: Sequence[str | int], change: ChangeValue, misspelled: Callable[[str], None]
    ) -> Any:
        if value is None:
            return None
        if self.leaf == "unknown" and isinstance(value, _LISTS):
            return [self._changed(each, steps, change, misspelled) for each in value]
        if not steps:
            return change(value)
        step, rest = steps[0], steps[1:]
        if step == _ITEMS and isinstance(value, _LISTS):
            return [self._changed(each, rest, change, misspelled) for each in value]
        if isinstance(value, Mapping):
            if step == _VALUES:
                return {name: self._changed(each, rest, change, misspelled) for name, each in value.items()}
            if isinstance(step, str):
                if step in value:
                    value = {**value, step: self._changed(value[step], rest, change, misspelled)}
                elif self.leaf == "unknown" and (hint := _similar(step, tuple(value))):
                    misspelled(f"there is no field {self.path!r} to encrypt: no {step!r}{hint}")
                return value
        raise SerializationError(
            f"a {type(value).__name__} has no field {self.path!r} to encrypt: pass mappings or Protobuf messages; "
            "for objects of a class, write typed(Encrypted(…), …)"
        )

    def change_column(self, column: pa.Array, change: ChangeColumn) -> pa.Array:
        """Return a column with other values of the field."""
        return _change_column(column, np.arange(len(column)), self.steps, self.leaf, change)


@lru_cache(maxsize=1024)
def _similar(name: str, known: tuple[Any, ...]) -> str:
    """Return the hint for a name that is absent. Events often have the same names."""
    return did_you_mean(name, [each for each in known if isinstance(each, str)])


def _change_message(message: Any, steps: Sequence[str | int], change: ChangeValue) -> None:
    name, rest = steps[0], steps[1:]
    assert isinstance(name, str)
    field = message.DESCRIPTOR.fields_by_name[name]
    inside = getattr(message, name)
    if rest and isinstance(rest[0], int):
        step, rest = rest[0], rest[1:]
        for key in list(range(len(inside)) if step == _ITEMS else inside):
            if rest:
                _change_message(inside[key], rest, change)
            else:
                made = change(inside[key])
                inside[key] = type(inside[key])() if made is None else made
        return
    if field.has_presence and not message.HasField(name):
        return
    if rest:
        _change_message(inside, rest, change)
    elif (made := change(inside)) is None:
        message.ClearField(name)
    else:
        setattr(message, name, made)


def _change_column(column: pa.Array, rows: Int64s, steps: _Steps, leaf: str, change: ChangeColumn) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not steps:
        kind = pa.string() if leaf == "string" else pa.binary()
        return change(column if column.type == kind else column.cast(kind), rows)
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        place = column.type.get_field_index(step)
        if place < 0:
            return column
        # flatten() and not field(): nothing is decrypted inside a null.
        fields, columns = list(column.type), column.flatten()
        columns[place] = _change_column(columns[place], rows, rest, leaf, change)
        fields[place] = fields[place].with_type(columns[place].type)
        return pa.StructArray.from_arrays(columns, fields=fields, mask=_nulls(column))
    if step == _ITEMS:
        if not pa.types.is_list(column.type):
            column = column.cast(pa.list_(column.type.value_field))
        lengths, items = list_items(column)
        items = _change_column(items, np.repeat(rows, lengths), rest, leaf, change)
        kind = pa.list_(column.type.value_field.with_type(items.type))
        return pa.ListArray.from_arrays(list_offsets(lengths), items, kind, mask=_nulls(column))
    lengths, keys, items = map_entries(column)
    items = _change_column(items, np.repeat(rows, lengths), rest, leaf, change)
    kind = pa.map_(column.type.key_field, column.type.item_field.with_type(items.type))
    return pa.MapArray.from_arrays(list_offsets(lengths), keys, items, kind, mask=_nulls(column))


def _nulls(column: pa.Array) -> pa.BooleanArray | None:
    return pa.array(~valid_rows(column)) if column.null_count else None
