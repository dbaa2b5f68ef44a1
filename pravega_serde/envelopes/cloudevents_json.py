"""JSON event format of CloudEvents (structured mode).

The data is the member ``data`` if the content type says that it is JSON or text, and else ``data_base64``. Attributes
that are numbers or booleans are read as text.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from pravega_serde.columnar import MalformedError
from pravega_serde.columnar.arrays import UInt8s, offsets_of
from pravega_serde.columnar.bad_rows import invalid_utf8
from pravega_serde.columnar.building import build_scalars
from pravega_serde.envelopes.attributes import attributes_of
from pravega_serde.envelopes.cloudevents import (
    CONTENT_TYPE,
    JSON,
    LARGEST_ATTRIBUTES,
    VENDOR_JSON,
    VERSION,
    attribute_text,
    attribute_texts,
    check_required,
    kind_of_data,
    kinds_of_data,
    text_of,
)
from pravega_serde.json.rows import strip
from pravega_serde.json.write_columns import join_texts
from pravega_serde.json.write_rows import quoted

_VERSION, _DATA, _BASE64 = "specversion", "data", "data_base64"

#: Events that are decoded together: the members of an event use up to forty times its bytes.
_ROWS_AT_ONCE, _BYTES_AT_ONCE = 4096, 1 << 20

_REFUSALS: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class _Data(msgspec.Struct):
    """Members with data. To find them needs no memory for the other members."""

    data: msgspec.Raw = msgspec.Raw()
    data_base64: msgspec.Raw = msgspec.Raw()


_data_in: Final = msgspec.json.Decoder(_Data).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_raw: Final = msgspec.json.Decoder(msgspec.Raw).decode
_text: Final = msgspec.json.Decoder(str).decode
_bytes: Final = msgspec.json.Decoder(bytes).decode
_value: Final = msgspec.json.Decoder(str | int | bool | None).decode
_texts: Final = msgspec.json.Decoder(list[str]).decode
_values: Final = msgspec.json.Decoder(list[str | int | bool | None]).decode


class JsonEvents:
    """Reader and writer of CloudEvents in JSON."""

    def read(self, event: bytes) -> tuple[dict[str, str], bytes | None]:
        """Return the attributes and the data of one event."""
        text = strip(event)
        try:
            _check_size(text)
            members = _members(text)
            version = members.pop(_VERSION, b"null")
            if _value(version) != VERSION:
                raise MalformedError(f"specversion is {bytes(version).decode()[:20]}, not {VERSION!r}")
            data, base64 = members.pop(_DATA, None), members.pop(_BASE64, None)
            attributes = {name: text_of(value) for name, raw in members.items() if (value := _value(raw)) is not None}
            check_required(attributes)
            return attributes, _data_of(data, base64, kind_of_data(attributes.get(CONTENT_TYPE)))
        except MalformedError:
            raise
        except _REFUSALS as error:
            raise MalformedError(str(error)) from error

    def read_column(self, events: pa.BinaryArray) -> tuple[pa.MapArray, pa.BinaryArray]:
        """Return the attributes and the data of events without nulls."""
        try:
            parts = [_read_slice(part) for part in _slices(events)]
        except msgspec.MsgspecError as error:
            raise MalformedError(str(error)) from error
        attributes, data = zip(*parts, strict=True)
        return pa.concat_arrays(attributes), pa.concat_arrays(data)

    def write(self, attributes: Mapping[str, str], data: bytes | None) -> bytes:
        """Return one event."""
        kind = kind_of_data(attributes.get(CONTENT_TYPE))
        member = "" if data is None else _MEMBERS[kind](data)
        return f'{{"specversion":"1.0"{attribute_text(attributes)}{member}}}'.encode()

    def write_column(self, attributes: pa.MapArray, data: pa.BinaryArray) -> pa.BinaryArray:
        """Return the events."""
        members = _data_members(data, kinds_of_data(attributes))
        return join_texts(['{"specversion":"1.0"', attribute_texts(attributes), members, "}"], len(data)).view(
            pa.binary()
        )


# ---- reading ----


def _check_size(event: bytes) -> None:
    if len(event) <= LARGEST_ATTRIBUTES:
        return
    found = _data_in(event)
    size = len(event) - len(memoryview(found.data)) - len(memoryview(found.data_base64))
    if size > LARGEST_ATTRIBUTES:
        raise MalformedError(f"the attributes have {size} bytes, more than {LARGEST_ATTRIBUTES >> 10} KiB", limit=True)


def _data_of(data: Any, base64: Any, kind: int) -> bytes | None:
    if base64 is not None:
        if data is not None:
            raise MalformedError("both data and data_base64 are set")
        return _bytes(base64)
    if data is None or kind in (JSON, VENDOR_JSON):
        return None if data is None else bytes(data)
    return _text(data).encode()


def _slices(events: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
    offsets = offsets_of(events).astype(np.int64)
    start = 0
    while start < len(events) or not start:
        bytes_end = int(np.searchsorted(offsets, offsets[start] + _BYTES_AT_ONCE, "right")) - 1
        stop = min(max(bytes_end, start + 1), start + _ROWS_AT_ONCE)
        yield events.slice(start, stop - start)
        start = stop


def _read_slice(events: pa.BinaryArray) -> tuple[pa.MapArray, pa.BinaryArray]:
    texts = events.to_pylist()
    if max(map(len, texts), default=0) > LARGEST_ATTRIBUTES:
        for text in texts:
            _check_size(text)
    rows = list(map(_members, texts))
    if {bytes(row.pop(_VERSION, b"")) for row in rows} - {b'"1.0"'}:
        raise MalformedError("the specversion of an event is not 1.0, or has escapes")
    data, base64 = [row.pop(_DATA, None) for row in rows], [row.pop(_BASE64, None) for row in rows]
    attributes = _attributes(rows)
    kinds = kinds_of_data(attributes)
    if any(each is not None for each in base64) or (kinds != JSON).any():
        values: Sequence[Any] = [_data_of(*each) for each in zip(data, base64, kinds.tolist(), strict=True)]
    else:
        values = [None if each is None else bytes(each) for each in data]
    return attributes, build_scalars(values, pa.binary())


def _attributes(rows: Sequence[Mapping[str, Any]]) -> pa.MapArray:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    names = list(chain.from_iterable(rows))
    raw = b"[%b]" % b",".join(chain.from_iterable(row.values() for row in rows))
    try:
        values = _texts(raw)
    except msgspec.ValidationError:  # some are numbers, booleans or null
        found = _values(raw)
        there = np.array([value is not None for value in found], np.bool_)
        lengths = np.bincount(np.repeat(np.arange(len(rows)), lengths)[there], minlength=len(rows))
        names = [name for name, value in zip(names, found, strict=True) if value is not None]
        values = [text_of(value) for value in found if value is not None]
    return attributes_of(lengths, build_scalars(names, pa.string()), build_scalars(values, pa.string()))


# ---- writing ----


def _check_json(data: bytes) -> None:
    try:
        _raw(data)
    except _REFUSALS as error:
        raise MalformedError(f"the content type is JSON, but the data is not: {error}") from error


def _json_member(data: bytes) -> str:
    _check_json(data)
    try:
        return f',"data":{data.decode()}'
    except UnicodeDecodeError as error:
        raise invalid_utf8(error) from error


def _text_member(data: bytes) -> str:
    try:
        return f',"data":{quoted(data.decode())}'
    except UnicodeDecodeError:
        return _base64_member(data)


def _base64_member(data: bytes) -> str:
    return f',"data_base64":"{binascii.b2a_base64(data, newline=False).decode()}"'


#: By the kind of data.
_MEMBERS: Final[Sequence[Callable[[bytes], str]]] = (_json_member, _text_member, _base64_member, _base64_member)


def _data_members(data: pa.BinaryArray, kinds: UInt8s) -> pa.StringArray:
    if not (kinds != JSON).any() and not data.null_count:
        for value in data.to_pylist():
            _check_json(value)
        texts = data.cast(pa.string())
        return join_texts([',"data":', texts], len(texts))
    members = [
        "" if value is None else _MEMBERS[kind](value)
        for value, kind in zip(data.to_pylist(), kinds.tolist(), strict=True)
    ]
    return build_scalars(members, pa.string())
