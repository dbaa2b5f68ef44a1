"""Serializer of events with encrypted fields."""

from __future__ import annotations

import base64
import logging
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from pravega_serde.columnar import as_column, select, valid_rows
from pravega_serde.columnar.arrays import Int64s
from pravega_serde.encryption.keys import DataKeys
from pravega_serde.encryption.paths import FieldPath
from pravega_serde.encryption.values import FieldCipher
from pravega_serde.errors import DecryptionError, DeserializationError, SchemaError, SerdeError, SerializationError
from pravega_serde.serializer_interface import InnerColumns, OnError, Serializer, SerializerCalls, report

_log: Final = logging.getLogger(__name__)

#: Attributes of some serializers that hold as well for events with encrypted fields.
_SAME: Final = frozenset({"as_dict", "content_type", "message_class", "read_schema"})


class Encrypted(SerializerCalls, InnerColumns):
    """Serializer with encrypted fields: strings and bytes are encrypted before ``serializer`` writes the event.

    ``fields`` are paths such as ``card.number``. A path also goes through lists and maps, to all items and values.
    Encrypted strings are Base64 text, and encrypted bytes are bytes, so the schema of the events does not change. Nulls
    and empty values stay as they are.

    ``stream`` is the name of the stream, as ``scope/stream``. A value can be decrypted only with its own stream and
    field. The newest key of ``keys`` encrypts. Each value names its key.

    Equal values of a field are equal when encrypted, so an event has the same bytes each time. Exactly-once needs that.
    With ``deterministic=False`` they differ.

    A value whose key is missing is an error, or null with ``missing_key="null"``. A warning then names the key.

    Raises :class:`SchemaError` for a field that does not exist or cannot be encrypted, :class:`MissingExtraError`
    without the extra ``encryption``, and :class:`SerdeError` for other invalid arguments.
    """

    def __init__(
        self,
        serializer: Serializer[Any],
        fields: Iterable[str],
        keys: DataKeys,
        *,
        stream: str,
        deterministic: bool = True,
        missing_key: Literal["error", "null"] = "error",
    ) -> None:
        self._fields = (fields,) if isinstance(fields, str) else tuple(fields)
        super().__init__(serializer)
        self._keys, self._stream = keys, stream
        self._deterministic, self._missing_key = deterministic, missing_key
        _check(self._fields, keys, stream, missing_key)
        self._ciphers = {
            field: FieldCipher(keys, stream, field, deterministic=deterministic, missing_key=missing_key)
            for field in self._fields
        }
        #: True if a read or a write may wait for a key service or a registry.
        self.read_may_block = keys.may_wait or self.read_may_block
        self.write_may_block: bool = keys.may_wait or getattr(serializer, "write_may_block", False)
        #: True if equal values have equal events.
        self.is_deterministic: bool = deterministic and getattr(serializer, "is_deterministic", True)
        vars(self).update({name: getattr(serializer, name) for name in _SAME if hasattr(serializer, name)})
        self._known = _type_of(serializer)
        self._paths = [
            FieldPath.by_name(field) if self._known is None else FieldPath.in_type(field, self._known)
            for field in self._fields
        ]
        fault_of: Callable[[list[str]], str | None] = getattr(serializer, "text_fault", lambda _path: None)
        for field in self._fields:
            if (fault := fault_of(field.split("."))) is not None:
                raise SchemaError(f"the field {field!r} cannot be encrypted: it {fault}; use a plain string or bytes")
        self._warned: set[str] = set()
        self._of_types: dict[pa.DataType, list[FieldPath]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = (self._fields, self._keys, self._stream, self._deterministic, self._missing_key)
        return _rebuild, (self._inner, *arguments)

    def __repr__(self) -> str:
        return f"Encrypted({self._inner!r}, fields={list(self._fields)}, stream={self._stream!r})"

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of decoded columns: that of the inner serializer."""
        return self._inner.arrow_type

    @property
    def never_null(self) -> frozenset[str]:
        """Fields of a struct that are never null."""
        inner: frozenset[str] = getattr(self._inner, "never_null", frozenset())
        return inner if self._missing_key == "error" else inner - {each.partition(".")[0] for each in self._fields}

    # ---- rows ----

    def serialize(self, value: Any) -> bytes:
        """Return the event of a value. Raises :class:`SerializationError`, :class:`EncryptionKeyError`."""
        for path in self._paths:
            try:
                value = path.change_value(value, _sealing(self._ciphers[path.path], path), _refuse)
            except SerializationError as error:
                raise SerializationError(error.reason, field_path=f"$.{path.path}") from error
        return self._inner.serialize(value)

    def deserialize(self, data: bytes) -> Any:
        """Return the value of an event.

        Raises :class:`DeserializationError`, :class:`DecryptionError`, :class:`EncryptionKeyError`.
        """
        value = self._inner.deserialize(data)
        for path in self._paths:
            try:
                value = path.change_value(value, _opening(self._ciphers[path.path], path), self._warn)
            except DecryptionError as error:
                raise type(error)(error.reason, field_path=f"$.{path.path}") from error
            except SerializationError as error:
                raise DeserializationError(error.reason, field_path=f"$.{path.path}") from error
        return value

    def _warn(self, text: str) -> None:
        """Log a text once. The field may be optional, so the event is not refused."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    # ---- columns ----

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if columns of this type can never be encoded, or lack a field to encrypt."""
        self._paths_in(arrow_type)
        self._inner.check_encodable(arrow_type)

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Return the events of a column of structs, or of a batch. A null row stays null."""
        column = as_column(column)
        for path in self._paths_in(column.type):
            column = path.change_column(column, _sealing_column(self._ciphers[path.path]))
        return self._inner.encode_column(column)

    def _decode(self, column: pa.Array, on_error: OnError | None, decode: Callable[..., pa.Array]) -> pa.Array:
        found: dict[int, DeserializationError] = {}

        def note(error: DeserializationError) -> None:
            found.setdefault(error.row or 0, error)

        values = decode(column, on_error=note)
        for path in self._paths_in(values.type):
            values = path.change_column(values, _opening_column(self._ciphers[path.path], path, note))
        errors = [error for row, error in found.items() if row < len(values)]
        if not errors:
            return values
        report(errors, on_error)
        valid = valid_rows(values)
        valid[[error.row for error in errors if error.row is not None]] = False
        return select(values, np.arange(len(values)), valid=valid)

    def _paths_in(self, kind: pa.DataType) -> list[FieldPath]:
        """Return the paths in columns of a type. Only fields that the schema of the events knows may be absent."""
        found = self._of_types.get(kind)
        if found is None:
            optional = self._known is not None
            found = [FieldPath.in_type(each.path, kind) for each in self._paths if not optional or each.exists_in(kind)]
            self._of_types[kind] = found
        return found


def _check(fields: tuple[str, ...], keys: object, stream: object, missing_key: str) -> None:
    if not fields:
        raise SerdeError("no field to encrypt: pass fields=['card.number']")
    for field in fields:
        if not isinstance(field, str) or not all(field.split(".")):
            raise SerdeError(f"{field!r} is not the path of a field: write it as 'card.number'")
        if fields.count(field) > 1:
            raise SerdeError(f"the field {field!r} to encrypt is named twice")
    if not isinstance(keys, DataKeys):
        raise SerdeError(f"keys must be DataKeys, not {type(keys).__name__}: DataKeys.load(path, service)")
    if not isinstance(stream, str) or not stream or "\0" in stream:
        raise SerdeError(f"stream must be the name of the stream, as 'scope/stream', not {stream!r:.80}")
    if missing_key not in ("error", "null"):
        raise SerdeError(f"missing_key must be 'error' or 'null', not {missing_key!r:.80}")


def _type_of(serializer: Serializer[Any]) -> pa.DataType | None:
    """Return the type of the events, or None if the serializer does not know it."""
    try:
        kind = serializer.arrow_type
    except SchemaError:
        return None
    if not pa.types.is_struct(kind):
        raise SchemaError(f"{type(serializer).__name__} has events of {kind}: only fields of records can be encrypted")
    return kind


def _refuse(text: str) -> None:
    raise SerializationError(f"{text} If both names exist, pass arrow_type to the serializer")


def _sealing(cipher: FieldCipher, path: FieldPath) -> Callable[[Any], Any]:
    def seal(value: Any) -> Any:
        if path.leaf == "binary":
            if isinstance(value, bytes | bytearray | memoryview):
                return cipher.seal(bytes(value))
            if isinstance(value, str):  # JSON has bytes as Base64
                return base64.b64encode(cipher.seal(_from_base64(value))).decode()
        elif isinstance(value, str):
            return cipher.seal_text(value)
        wanted = {
            "string": "text",
            "binary": "bytes",
            "unknown": "text without a known type, pass arrow_type for bytes",
        }
        raise SerializationError(f"a {type(value).__name__} cannot be encrypted: the field must be {wanted[path.leaf]}")

    return seal


def _opening(cipher: FieldCipher, path: FieldPath) -> Callable[[Any], Any]:
    def open_(value: Any) -> Any:
        if path.leaf == "binary":
            if isinstance(value, bytes):
                return cipher.open(value)
            if isinstance(value, str):
                plain = cipher.open(_from_base64(value))
                return None if plain is None else base64.b64encode(plain).decode()
        elif isinstance(value, str):
            return cipher.open_text(value)
        raise DecryptionError(f"the value is not encrypted: it is a {type(value).__name__}")

    return open_


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise SerializationError("text in a field of bytes must be Base64") from None


def _sealing_column(cipher: FieldCipher) -> Callable[[pa.Array, Int64s], pa.Array]:
    return lambda column, _rows: cipher.seal_column(column)


def _opening_column(
    cipher: FieldCipher, path: FieldPath, note: Callable[[DeserializationError], None]
) -> Callable[[pa.Array, Int64s], pa.Array]:
    def open_column(column: pa.Array, rows: Int64s) -> pa.Array:
        opened, suspects = cipher.open_column(column)
        if not len(suspects):
            return opened
        read = cipher.open_text if path.leaf == "string" else cipher.open
        checked: list[Any] = []
        for row, value in zip(rows[suspects].tolist(), select(column, suspects).to_pylist(), strict=True):
            try:
                checked.append(read(value))
            except DecryptionError as error:
                note(type(error)(error.reason, field_path=f"$.{path.path}", row=row))
                checked.append(None)
        index = np.arange(len(column))
        index[suspects] = len(column) + np.arange(len(suspects))
        return select(pa.concat_arrays([opened, pa.array(checked, column.type)]), index)

    return open_column


def _rebuild(inner: Serializer[Any], fields: tuple[str, ...], keys: DataKeys, stream: str, *rest: Any) -> Encrypted:
    deterministic, missing_key = rest
    return Encrypted(inner, fields, keys, stream=stream, deterministic=deterministic, missing_key=missing_key)
