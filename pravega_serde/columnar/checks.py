"""Check columns for values that no format writes. Neither Arrow nor Spark checks for them.

- Texts that are not UTF-8: a format would write the bytes unchanged, and no reader could read the event.
- Maps with a key twice: readers, and some formats, keep only one of the entries.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from pravega_serde.columnar.arrays import as_text, dictionary_values, list_items, map_entries, with_repeated_key
from pravega_serde.columnar.types import family

#: Path of a value (``.name[]``), and the reason why no format writes it.
Fault = tuple[str, str]
#: Returns a fault in a column, or None.
Check = Callable[[pa.Array], Fault | None]


def write_check(kind: pa.DataType) -> Check | None:
    """Return the check of columns of a type, which has no views; None for a type without texts and maps."""
    match family(kind):
        case "text":
            return _check_texts
        case "dictionary":
            return _dictionary_check(kind)
        case "items":
            return _items_check(kind)
        case "entries":
            return _entries_check(kind)
        case "fields":
            return _fields_check(kind)
    return None


def first_not_utf8(column: pa.Array) -> int | None:
    """Return the first row of a column of strings or large strings that is not UTF-8, if there is one."""
    _, offsets, data = column.buffers()
    if data is None:
        return None
    size, binary = (np.int32, pa.binary()) if column.type == pa.string() else (np.int64, pa.large_binary())
    bounds = np.frombuffer(offsets, size)
    used = np.frombuffer(data, np.uint8)[bounds[column.offset] : bounds[column.offset + len(column)]]
    if not len(used) or used.max() < 0x80:
        return None
    wrong = as_text(column.view(binary))[1]
    return None if wrong is None else int(np.argmax(wrong))


def _check_texts(column: pa.Array) -> Fault | None:
    return None if first_not_utf8(column) is None else ("", "a text is not UTF-8")


def _dictionary_check(kind: pa.DictionaryType) -> Check | None:
    inner = write_check(kind.value_type)
    if inner is None:
        return None
    # The dictionary may have values that no row refers to.
    return lambda column: None if inner(column.dictionary) is None else inner(dictionary_values(column))


def _items_check(kind: pa.DataType) -> Check | None:
    inner = write_check(kind.value_type)
    if inner is None:
        return None
    return lambda column: _below("[]", inner(list_items(column)[1]))


def _entries_check(kind: pa.MapType) -> Check:
    key, item = write_check(kind.key_type), write_check(kind.item_type)

    def check(column: pa.Array) -> Fault | None:
        lengths, keys, items = map_entries(column)
        found = None if key is None else key(keys)
        if found is None and with_repeated_key(lengths, keys).any():
            found = "", "a map has a key twice: keep one of the two entries"
        return _below("{}", found if found is not None or item is None else item(items))

    return check


def _fields_check(kind: pa.StructType) -> Check | None:
    checks = [(place, f".{entry.name}", write_check(entry.type)) for place, entry in enumerate(kind)]
    inside = [(place, step, check) for place, step, check in checks if check is not None]
    if not inside:
        return None

    def check_fields(column: pa.Array) -> Fault | None:
        fields = column.flatten()
        found = (_below(step, check(fields[place])) for place, step, check in inside)
        return next((fault for fault in found if fault is not None), None)

    return check_fields


def _below(step: str, fault: Fault | None) -> Fault | None:
    return None if fault is None else (step + fault[0], fault[1])
