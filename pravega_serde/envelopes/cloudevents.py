"""Rules of CloudEvents 1.0 that all its event formats share: attributes, content types, times and ids."""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pravega_serde.columnar import (
    MalformedError,
    expand,
    map_entries,
    number_column,
    numbers_of,
    text_column,
    to_micros,
    valid_rows,
)
from pravega_serde.columnar.arrays import Bools, UInt8s
from pravega_serde.columnar.building import build_scalars, parse_times
from pravega_serde.columnar.lowering import check_between
from pravega_serde.columnar.types import is_family
from pravega_serde.envelopes.attributes import attribute
from pravega_serde.json.write_columns import escaped, join_texts, joined_items
from pravega_serde.json.write_rows import quoted

VERSION: Final = "1.0"
#: Attributes that each event has, in addition to ``specversion``.
REQUIRED: Final = ("id", "source", "type")
#: Attributes of the key (an extension of the specification) and of the time.
KEY, TIME, CONTENT_TYPE = "partitionkey", "time", "datacontenttype"
#: Type of a time.
MOMENT: Final = pa.timestamp("us", "UTC")

#: Kinds of data, by its content type. Java's SDK accepts data of ``VENDOR_JSON`` only in Base64.
JSON, TEXT, BINARY, VENDOR_JSON = 0, 1, 2, 3

#: Maximum bytes of the attributes of an event. Consumers must accept 64 KiB, including the data.
LARGEST_ATTRIBUTES: Final = 64 << 10

_NAME: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_RESERVED: Final = frozenset({"data", "specversion"})
_MEDIA: Final = re.compile(r"\s*([^/;]+)/([^;]*?)\s*(?:;.*)?", re.DOTALL)
_PLAIN_JSON: Final = re.compile(r"([a-z]+\+)?json", re.ASCII)
#: First and last microsecond of the years 0 to 9999, which RFC 3339 can express.
_FIRST, _LAST = -62_167_219_200_000_000, 253_402_300_799_999_999
_BEYOND: Final = "a time beyond the years 0 to 9999 of RFC 3339"


class EventFormat(Protocol):
    """Event format of CloudEvents: attributes and data as one event.

    Attributes are texts, without ``specversion``. They have been checked before writing. Reading raises
    :class:`MalformedError`; by column, it may also raise other errors of the values, and then the rows decide.
    """

    def read(self, event: bytes) -> tuple[Mapping[str, str], bytes | None]:
        """Return the attributes and the data of one event."""

    def read_column(self, events: pa.BinaryArray) -> tuple[pa.MapArray, pa.BinaryArray]:
        """Return the attributes and the data of events without nulls."""

    def write(self, attributes: Mapping[str, str], data: bytes | None) -> bytes:
        """Return one event."""

    def write_column(self, attributes: pa.MapArray, data: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events."""


def kind_of_data(content_type: str | None) -> int:
    """Return the kind of data with a content type; data without one is JSON."""
    if content_type is None:
        return JSON
    media = _MEDIA.fullmatch(content_type.lower())
    if media is None:
        return BINARY
    if media[1] in ("application", "text") and _PLAIN_JSON.fullmatch(media[2]) is not None:
        return JSON
    if media[2].endswith("+json"):
        return VENDOR_JSON
    return TEXT if media[1] == "text" else BINARY


def kinds_of_data(attributes: pa.MapArray) -> UInt8s:
    """Return the kind of data of each event."""
    found = attribute(attributes, CONTENT_TYPE).dictionary_encode()
    kinds = [kind_of_data(each) for each in found.dictionary.to_pylist()]
    places = np.where(valid_rows(found), numbers_of(found.indices), len(kinds))
    return np.array([*kinds, JSON], np.uint8)[places]


def check_names(names: Iterable[str | None]) -> None:
    """Raise :class:`MalformedError` for a name that a header cannot have."""
    for name in names:
        if name in (KEY, TIME):
            member = "key" if name == KEY else "time"
            raise MalformedError(f"the attribute {name!r} is the {member} of the envelope, not one of its headers")
        if name is None or name in _RESERVED or _NAME.fullmatch(name) is None:
            raise MalformedError(f"invalid header {name!r}: its name must be lower-case letters and digits")


def check_required(attributes: Mapping[str, str]) -> None:
    """Raise :class:`MalformedError` unless an event has all required attributes."""
    for name in REQUIRED:
        if not attributes.get(name):
            raise MalformedError(f"a CloudEvent requires the attribute {name!r}")


def check_required_column(attributes: pa.MapArray) -> None:
    """Raise :class:`MalformedError` unless each event has all required attributes."""
    for name in REQUIRED:
        values = attribute(attributes, name)
        if values.null_count or pc.any(pc.equal(values, text_column([""])[0])).as_py():
            raise MalformedError(f"an event lacks the attribute {name!r}")


def times_of(texts: pa.StringArray) -> pa.TimestampArray:
    """Parse times of RFC 3339; digits beyond microseconds are cut off."""
    return parse_times(pc.ascii_upper(texts), MOMENT)


def texts_of(times: pa.TimestampArray) -> pa.StringArray:
    """Return times as text in UTC. Raises :class:`SerializationError` beyond the years 0 to 9999."""
    micros = to_micros(times, times.type.unit, noun="time")
    check_between(micros, _FIRST, _LAST, _BEYOND)
    texts = pc.replace_substring(micros.cast(pa.timestamp("us")).cast(pa.string()), " ", "T")
    return pc.binary_join_element_wise(texts, text_column(["Z"])[0], text_column([""])[0])


def text_of_time(micros: int) -> str:
    """Return a time as text in UTC. Raises :class:`MalformedError` beyond the years 0 to 9999."""
    if not _FIRST <= micros <= _LAST:
        raise MalformedError(_BEYOND)
    text: str = texts_of(number_column(np.array([micros]), MOMENT))[0].as_py()
    return text


def attribute_text(attributes: Mapping[str, str]) -> str:
    """Return the members of attributes, each after a comma."""
    return "".join(f",{quoted(name)}:{quoted(value)}" for name, value in attributes.items())


def attribute_texts(attributes: pa.MapArray) -> pa.StringArray:
    """Return the members of each row's attributes, each after a comma."""
    lengths, names, values = map_entries(attributes)
    members = join_texts([',"', escaped(names), '":"', escaped(values), '"'], len(names))
    return joined_items(lengths, members, "")


def content_id(attributes: Mapping[str, str], data: bytes | None) -> str:
    """Return the id of an event that has none: a hash of its content.

    Equal events have equal ids, so that a repeated write has the id of the first one.
    """
    return _digest(attribute_text(attributes), data)


def _digest(attributes: str, data: bytes | None) -> str:
    content = hashlib.blake2b(attributes.encode(), digest_size=16)
    content.update(b"" if data is None else b"\0" + data)
    return content.hexdigest()


def content_ids(attributes: pa.MapArray, data: pa.BinaryArray, missing: Bools) -> pa.StringArray:
    """Return the ids of the events where one is missing, null elsewhere."""
    mask = number_column(missing)
    pairs = zip(attribute_texts(attributes).filter(mask).to_pylist(), data.filter(mask).to_pylist(), strict=True)
    return expand(text_column([_digest(*each) for each in pairs]), missing)


def text_of(value: bool | int | str | bytes) -> str:
    """Return the text of an attribute's value: of bytes Base64, of booleans ``true`` or ``false``."""
    if isinstance(value, bytes):
        return binascii.b2a_base64(value, newline=False).decode()
    return value if isinstance(value, str) else str(value).lower()


def texts_of_values(columns: Sequence[pa.Array]) -> pa.StringArray:
    """Return the texts of values, each in one of the columns and null in the others; null if it is null in all."""
    texts = [_as_text(column) for column in columns if column.null_count < len(column)]
    return pc.coalesce(*texts) if texts else pa.nulls(len(columns[0]), pa.string())


def _as_text(column: pa.Array) -> pa.StringArray:
    if is_family(column.type, "timestamp"):
        return texts_of(column)
    if pa.types.is_binary(column.type):
        return build_scalars([None if value is None else text_of(value) for value in column.to_pylist()], pa.string())
    return column.cast(pa.string())
