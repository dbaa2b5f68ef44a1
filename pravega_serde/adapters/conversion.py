"""Conversion of objects to plain values and back, with msgspec or with pydantic for its own classes."""

from __future__ import annotations

import enum
import importlib
import itertools
import re
import typing
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec

from pravega_serde.adapters.classes import classes_in, is_model, members_of, name_of, types_in
from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    SchemaError,
    SerializationError,
)
from pravega_serde.json.rows import is_slow, parse_plainly
from pravega_serde.json.write_rows import TOO_DEEP

#: Types that the formats convert. UUIDs become text, which every format with UUIDs accepts.
_NATURAL: Final = (bytes, bytearray, memoryview, datetime, date, time, Decimal)

#: End of msgspec's messages: ``Expected `int`, got `str` - at `key` in `$.a[0]` ``.
_PLACE: Final = re.compile(r" - at (?:`key` in )?`([^`]*)`$")


class Conversion(Protocol):
    """Conversion of objects of one type to plain values and back."""

    def dump(self, value: Any) -> Any:
        """Convert an object to dicts, lists and scalars. Raises :class:`SerializationError`."""

    def dump_with_durations(self, value: Any) -> Any:
        """Convert an object, but keep durations for formats that have them. :meth:`dump` makes them text."""

    def load(self, value: Any) -> Any:
        """Return the object of plain values. Raises :class:`DeserializationError` with the field's path."""

    def load_json(self, text: bytes) -> Any:
        """Return the object of JSON text. Raises :class:`DeserializationError` with the field's path."""


def conversion_of(kind: Any) -> Conversion:
    """Return the conversion of a class. Raises :class:`SchemaError` for a type that cannot be converted."""
    for inner in classes_in(kind):
        if issubclass(inner, enum.Enum) and not all(isinstance(member.value, str) for member in inner):
            raise SchemaError(
                f"the constants of {inner.__qualname__} have values that are not text; Java writes a constant's name: "
                "use a StrEnum with the names as values"
            )
    return _ByPydantic(kind) if any(map(is_model, classes_in(kind))) else _ByMsgspec(kind)


class _ByMsgspec:
    def __init__(self, kind: Any) -> None:
        try:
            self._decode = msgspec.json.Decoder(kind).decode
        except TypeError as error:
            raise SchemaError(f"events cannot be read as {name_of(kind)}: {error}") from error
        self._kind = kind

    def dump(self, value: Any) -> Any:
        return self._dump(value, _NATURAL)

    def dump_with_durations(self, value: Any) -> Any:
        return self._dump(value, (*_NATURAL, timedelta))

    def _dump(self, value: Any, natural: tuple[type, ...]) -> Any:
        try:
            return msgspec.to_builtins(value, builtin_types=natural)
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error
        except (TypeError, ValueError) as error:
            raise SerializationError(f"cannot write {name_of(type(value))}: {error}") from error

    def load(self, value: Any) -> Any:
        try:
            return msgspec.convert(value, self._kind)
        except msgspec.ValidationError as error:
            raise self._located(error) from error
        except ValueError as error:
            # An unpaired surrogate, which Java's strings may have, in a field that is not text.
            raise _misfit(self._kind, str(error), "$") from error
        except RecursionError as error:
            raise _too_deep(self._kind) from error

    def load_json(self, text: bytes) -> Any:
        if is_slow(text):
            return self.load(parse_plainly(text, decimals=True))
        try:
            # Passed as str, because msgspec does not validate the UTF-8 that it skips.
            return self._decode(text.decode())
        except msgspec.ValidationError as error:
            # msgspec may have stopped before the invalid part of the text.
            parse_plainly(text)
            raise self._located(error) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self.load(parse_plainly(text, decimals=True))

    def _located(self, error: Exception) -> DeserializationError:
        text = str(error)
        place = _PLACE.search(text)
        reason = text[: place.start()] if place else text
        return _misfit(self._kind, reason, place.group(1) if place else "$")


class _ByPydantic:
    def __init__(self, kind: Any) -> None:
        # Imported here: the import is slow, and only models need it.
        pydantic = importlib.import_module("pydantic")
        self._kind = kind
        self._adapter = pydantic.TypeAdapter(kind)
        self._invalid = pydantic.ValidationError
        self._decimals = Decimal in types_in(kind)
        self._bytes_as_text = next((each for each in classes_in(kind) if _reads_bytes_as_text(each)), None)
        self._has_bytes = bytes in types_in(kind)

    def dump(self, value: Any) -> Any:
        try:
            return _plain(self._adapter.dump_python(value, by_alias=True, warnings="error"))
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error
        except (TypeError, ValueError) as error:
            raise SerializationError(f"cannot write {name_of(type(value))}: {error}") from error

    def dump_with_durations(self, value: Any) -> Any:
        return self.dump(value)

    def load(self, value: Any) -> Any:
        return self._validated(self._adapter.validate_python, value)

    def load_json(self, text: bytes) -> Any:
        if self._has_bytes:
            self._check_bytes()
        # Pydantic's parser converts all numbers with a point to floats, and accepts more than JSON.
        if self._decimals:
            return self._validated(self._adapter.validate_python, parse_plainly(text, decimals=True))
        parse_plainly(text)
        return self._validated(self._adapter.validate_json, text)

    def _check_bytes(self) -> None:
        """Reject models whose bytes would silently become Base64 text.

        Only pydantic's own JSON can decode it, and only if configured.
        """
        if self._decimals:
            raise SchemaError(
                f"{name_of(self._kind)} has bytes and decimals, and pydantic reads JSON correctly for only one of "
                "them; use a dataclass, or str instead of bytes"
            )
        if self._bytes_as_text is not None:
            raise SchemaError(
                f"{name_of(self._bytes_as_text)} reads bytes as text, and JSON has them in Base64: "
                'set val_json_bytes="base64" in its model_config'
            )

    def _validated(self, validate: Callable[[Any], Any], value: Any) -> Any:
        try:
            return validate(value)
        except self._invalid as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
            place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
            raise _misfit(self._kind, first["msg"] + more, "$" + place) from error
        except RecursionError as error:
            raise _too_deep(self._kind) from error


def _reads_bytes_as_text(kind: type) -> bool:
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}
    if not is_model(kind) or config.get("val_json_bytes") == "base64":
        return False
    return any(bytes in _arguments(member.type) for member in members_of(kind) or ())


def _arguments(kind: Any) -> list[Any]:
    """Yield a type, its arguments and their arguments, but not the fields of classes."""
    return [kind, *itertools.chain.from_iterable(map(_arguments, typing.get_args(kind)))]


def _plain(value: Any) -> Any:
    """Convert values that pydantic dumps to plain form: enums to their values, sets to lists, UUIDs to text."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {_plain(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, UUID) else value


def _misfit(kind: Any, reason: str, path: str) -> DeserializationError:
    return DeserializationError(f"does not fit {name_of(kind)}: {reason}", field_path=path)


def _too_deep(kind: Any) -> LimitExceededError:
    return LimitExceededError(f"values nested beyond the interpreter's recursion limit do not fit {name_of(kind)}")
