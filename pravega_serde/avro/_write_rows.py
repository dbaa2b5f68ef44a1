"""The plain way to write: one value at a time, by a tree of closures made from the schema.

An unknown field of a record is an error; a missing one is, too, if it has no default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pravega_serde.avro._choose import chooser
from pravega_serde.avro._defaults import default_value
from pravega_serde.avro._model import MISSING, Array, Enum, Field, Fixed, Map, Primitive, Record, Type, Union
from pravega_serde.avro._write_values import (
    PRIMITIVES,
    Write,
    columnar,
    natural,
    varint,
    write_fixed,
    write_long,
    write_string,
    wrong,
)
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import SchemaError, SerializationError

__all__ = ["RowWriter", "encode_default"]


class RowWriter:
    """Writes single values of a schema.

    With ``arrow``, the values are those of an Arrow column whose timestamps were made numbers: microseconds, members of
    unions in a dict, maps as pairs.
    """

    __slots__ = ("_write",)

    def __init__(self, schema: Type, *, arrow: bool = False) -> None:
        self._write = _Compiler(arrow=arrow).compile(schema)

    def __call__(self, value: Any) -> bytes:
        """The event of a value; :class:`SerializationError` names the field that does not fit."""
        out = bytearray()
        try:
            self._write(value, out)
        except MalformedError as error:
            raise SerializationError(f"cannot write as Avro: {error.reason}", field_path=error.field_path()) from error
        except RecursionError as error:
            raise SerializationError(
                "cannot write as Avro: the value is nested too deeply, or contains itself"
            ) from error
        return bytes(out)


class _Compiler:
    """Makes the closure of every type once; a recursive record's is found when it is first written."""

    def __init__(self, *, arrow: bool) -> None:
        self._arrow = arrow
        self._done: dict[Type, Write] = {}

    def compile(self, schema: Type) -> Write:
        if schema not in self._done:
            if isinstance(schema, Record):
                self._done[schema] = self._later(schema)
            self._done[schema] = _BUILDERS[type(schema)](self, schema)
        return self._done[schema]

    def _later(self, schema: Record) -> Write:
        """Stands in for a record inside itself while its writer is being made."""

        def write(value: Any, out: bytearray) -> None:
            self._done[schema](value, out)

        return write

    def _leaf(self, schema: Primitive | Fixed) -> Write:
        write_raw = write_fixed(schema.size) if isinstance(schema, Fixed) else PRIMITIVES[schema.name]
        convert = (columnar if self._arrow else natural)(schema)
        if convert is None:
            return write_raw
        return lambda value, out: write_raw(value if value is None else convert(value), out)

    def _enum(self, schema: Enum) -> Write:
        codes = {symbol: varint(index) for index, symbol in enumerate(schema.symbols)}

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, str) or value not in codes:
                raise wrong(f"symbol of {schema.name}", value)
            out += codes[value]

        return write

    def _array(self, schema: Array) -> Write:
        write_item = self.compile(schema.items)

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, list | tuple):
                raise wrong("array", value)
            _write_blocks(value, write_item, out)

        return write

    def _map(self, schema: Map) -> Write:
        write_value = self.compile(schema.values)

        def write_entry(entry: tuple[Any, Any], out: bytearray) -> None:
            if not isinstance(entry, tuple) or len(entry) != 2:
                raise wrong("entry of a map", entry)
            write_string(entry[0], out)
            write_value(entry[1], out)

        def write(value: Any, out: bytearray) -> None:
            if isinstance(value, Mapping):
                value = list(value.items())
            elif not isinstance(value, list):
                raise wrong("map", value)
            _write_blocks(value, write_entry, out)

        return write

    def _record(self, schema: Record) -> Write:
        fields = [(entry.name, self.compile(entry.type), entry) for entry in schema.fields]
        names = frozenset(name for name, _, _ in fields)

        def write(value: Any, out: bytearray) -> None:
            record = value if isinstance(value, Mapping) else _attributes(value, names, schema.name)
            found = 0
            for name, write_field, entry in fields:
                try:
                    if name in record:
                        found += 1
                        write_field(record[name], out)
                    elif entry.default is MISSING:
                        raise MalformedError("no value and no default")
                    else:
                        # Made when needed: a wrong default that nobody uses is no error.
                        write_field(default_value(entry.type, entry.default), out)
                except MalformedError as error:
                    raise error.within(f".{name}") from error
            if found < len(record):
                extra = next(name for name in record if name not in names)
                raise MalformedError(f"{schema.name} has no field {extra!r}; leave it out or add it to the schema")

        return write

    def _union(self, schema: Union) -> Write:
        arms = [(varint(index), self.compile(branch)) for index, branch in enumerate(schema.branches)]
        choose = chooser(schema, arrow=self._arrow)

        def write(value: Any, out: bytearray) -> None:
            index, value = choose(value)
            code, write_arm = arms[index]
            out += code
            write_arm(value, out)

        return write


_BUILDERS: Final[Mapping[type, Callable[[_Compiler, Any], Write]]] = {
    Array: _Compiler._array,
    Enum: _Compiler._enum,
    Fixed: _Compiler._leaf,
    Map: _Compiler._map,
    Primitive: _Compiler._leaf,
    Record: _Compiler._record,
    Union: _Compiler._union,
}


def _write_blocks(items: Iterable[Any], write_item: Write, out: bytearray) -> None:
    """One block of all items, as Java writes them, and the empty block."""
    items = list(items)
    if items:
        write_long(len(items), out)
    for index, item in enumerate(items):
        try:
            write_item(item, out)
        except MalformedError as error:
            raise error.within(f"[{index}]") from error
    out.append(0)


def _attributes(value: Any, names: frozenset[str], record: str) -> Mapping[str, Any]:
    """An object's attributes as a record's fields: dataclasses and their like."""
    found = {name: getattr(value, name) for name in names if hasattr(value, name)}
    if not found and names:
        raise wrong(f"record {record}", value)
    return found


def encode_default(entry: Field) -> bytes:
    """The bytes of a field's default, as its writer would have written it; :class:`SchemaError` if it does not fit."""
    try:
        return RowWriter(entry.type)(default_value(entry.type, entry.default))
    except (SerializationError, MalformedError) as error:
        raise SchemaError(f"the default of field {entry.name!r} does not fit its type: {error.reason}") from error
