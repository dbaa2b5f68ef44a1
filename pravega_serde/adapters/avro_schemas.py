"""Avro schemas of classes: the definition of a record, and the names of records in the values of unions."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from pravega_serde.adapters.classes import SCALARS, name_of
from pravega_serde.adapters.conversion import conversion_of
from pravega_serde.adapters.defaults import MISSING
from pravega_serde.adapters.forms import (
    Constants,
    Entries,
    Field,
    Form,
    Items,
    Record,
    Scalar,
    Slot,
    checked_columns,
    form_for,
    form_of,
)
from pravega_serde.adapters.plain import plain
from pravega_serde.columnar.bad_rows import MalformedError, has_surrogate
from pravega_serde.columnar.building import decimal_fitter
from pravega_serde.columnar.parsed import EXACT
from pravega_serde.errors import SchemaError

#: Derives the Avro schema of columns.
Derive = Callable[[pa.Schema, str], str]

#: Types that Arrow has not, or as which the text of their values would not be known.
_OWN: Final[dict[type, Any]] = {UUID: {"type": "string", "logicalType": "uuid"}, timedelta: "string"}


def avro_definition(kind: Any, name: str | None, derive: Derive) -> Any:
    """Return the parsed Avro schema of a class. ``derive`` returns the schema of columns.

    Raises :class:`SchemaError`, with the path of the field.
    """
    slot, space = form_of(kind, name)
    conversion_of(kind)  # raises SchemaError for a class whose objects cannot be read
    return _Writer(f"{space}." if space else "", derive).slot(slot)


class _NoDefaultError(Exception):
    """A default that the schema cannot have, because it is not of the first branch of a union inside it."""


class _Writer:
    def __init__(self, space: str, derive: Derive) -> None:
        self._space, self._derive = space, derive
        self._done: set[int] = set()

    def slot(self, slot: Slot, default: Any = MISSING) -> Any:
        """Return the schema of a place. The first branch of a union is that of the default.

        Integers come before wider numbers, because other writers choose the first branch that accepts a value.
        """
        first = form_for(slot.branches, default)
        forms: list[Form | None] = [*sorted(slot.branches, key=lambda form: (form is not first, _is_wide(form)))]
        if slot.nullable:
            forms.insert(0 if default is None or default is MISSING else 1, None)
        branches = ["null" if form is None else self._form(form, slot.path) for form in forms]
        labels = [_label(branch) for branch in branches]
        for label in labels:
            if labels.count(label) > 1:
                raise SchemaError(
                    f"two types of the union at {slot.path} are both {label} in Avro, which cannot tell them apart; "
                    "use one of them"
                )
        return branches if len(branches) != 1 else branches[0]

    def _form(self, form: Form, path: str) -> Any:
        if isinstance(form, Items):
            return {"type": "array", "items": self.slot(form.item)}
        if isinstance(form, Entries):
            if isinstance(form.key, Scalar) and form.key.kind not in (str, UUID):
                raise SchemaError(
                    f"the keys at {form.value.path} are of the type {name_of(form.key.kind)}, but Avro's are text; "
                    "use str"
                )
            return {"type": "map", "values": self.slot(form.value)}
        if isinstance(form, Scalar):
            return _OWN.get(form.kind) or self._columns(["value"], [SCALARS[form.kind]], "Value", path)[0]["type"]
        name = f"{self._space}{form.name}"
        if id(form) in self._done:
            return name
        self._done.add(id(form))
        if isinstance(form, Constants):
            symbols = [constant.name for constant in form.kind]
            self._columns(symbols, [pa.bool_()] * len(symbols), name, path)  # checks the names
            return {"type": "enum", "name": name, "symbols": symbols}
        names = [each.name for each in form.fields]
        self._columns(names, [pa.bool_()] * len(names), name, path)
        return {"type": "record", "name": name, "fields": [self._field(each) for each in form.fields]}

    def _columns(self, names: list[str], kinds: list[pa.DataType], name: str, path: str) -> Any:
        return json.loads(checked_columns(self._derive, names, kinds, name, path))["fields"]

    def _field(self, entry: Field) -> dict[str, Any]:
        made = {"name": entry.name, "type": self.slot(entry.slot, entry.default)}
        if entry.default is MISSING:
            return made
        try:
            return {**made, "default": _default(entry.slot, entry.default, first=False)}
        except _NoDefaultError:
            return made


def _is_wide(form: Form) -> bool:
    return isinstance(form, Scalar) and form.kind in (float, Decimal)


def _label(schema: Any) -> str:
    """Return the name of a branch, which must be the only one in a union."""
    if isinstance(schema, str):
        return schema
    return str(schema["name"] if "name" in schema else schema["type"])


def _default(slot: Slot, value: Any, *, first: bool = True) -> Any:
    """Return a default in JSON. Inside another default, it must be of the first branch of a union."""
    if value is None and slot.nullable:
        return None
    form = form_for(slot.branches, value)
    if form is None or (first and (slot.nullable or form is not slot.branches[0])):
        raise _NoDefaultError
    if isinstance(form, Items):
        return [_default(form.item, each) for each in value]
    if isinstance(form, Entries):
        return {key: _default(form.value, each) for key, each in value.items()}
    if isinstance(form, Record):
        if len(slot.branches) > 1 or not all(each.name in value for each in form.fields):
            raise _NoDefaultError
        return {each.name: _default(each.slot, value[each.name]) for each in form.fields}
    return value if isinstance(form, Constants) else _scalar(form.kind, value, slot.path)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def _scalar(kind: type, value: Any, path: str) -> Any:  # noqa: PLR0911 -- one for each type
    if kind is datetime:
        if value.tzinfo is None:
            raise SchemaError(f"the default {value} at {path} has no time zone; add one")
        return (value - _EPOCH) // _MICROSECOND
    if kind is date:
        return value.toordinal() - date(1970, 1, 1).toordinal()
    if kind is time:
        if value.tzinfo is not None:
            raise SchemaError(f"the default {value} at {path} has a time zone; remove it")
        return (datetime.combine(_EPOCH, value, UTC) - _EPOCH) // _MICROSECOND
    if kind is Decimal:
        return _unscaled(Decimal(value), SCALARS[Decimal], path).decode("latin-1")
    if kind is bytes:
        return value.decode("latin-1")
    if kind is timedelta:
        return plain(value)
    if (kind is int and not -(1 << 63) <= value < 1 << 63) or (kind is str and has_surrogate(value)):
        raise SchemaError(f"the default {value!r} at {path} does not fit Avro; correct it")
    if kind is not float:
        return value
    try:
        return float(value)
    except OverflowError:
        raise SchemaError(f"the default {str(value)[:20]}... at {path} is too large for a double; correct it") from None


def _unscaled(value: Decimal, kind: pa.DataType, path: str) -> bytes:
    try:
        exact = decimal_fitter(kind)(value)
    except MalformedError as error:
        raise SchemaError(f"the default {value} at {path} does not fit {kind}; use fewer digits") from error
    number = int(exact.scaleb(kind.scale, EXACT))
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
