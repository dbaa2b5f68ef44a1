"""Conversion of objects to plain values and back, with msgspec or with pydantic for its own classes."""

from __future__ import annotations

import enum
import importlib
import itertools
import re
import typing
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

import msgspec

from pravega_serde.adapters.classes import classes_in, inherits_generic_keys, is_model, members_of, name_of, types_in
from pravega_serde.adapters.plain import NATURAL, Revise, differs, has_values, plain, revision_of
from pravega_serde.columnar import MalformedError
from pravega_serde.errors import (
    DeserializationError,
    LimitExceededError,
    SchemaError,
    SerializationError,
)
from pravega_serde.json.rows import is_slow, parse_plainly
from pravega_serde.json.write_rows import TOO_DEEP

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

    def check_json(self) -> None:
        """Raise :class:`SchemaError` for a class that could be written as JSON, but not read."""


def conversion_of(kind: Any) -> Conversion:
    """Return the conversion of a class. Raises :class:`SchemaError` for a type that cannot be converted."""
    for inner in classes_in(kind):
        _check_class(inner)
    return _ByPydantic(kind) if any(map(is_model, classes_in(kind))) else _ByMsgspec(kind)


def _check_class(kind: Any) -> None:
    """Raise :class:`SchemaError` for a class whose objects could be written, but not read."""
    if issubclass(kind, enum.Flag):
        raise SchemaError(f"{name_of(kind)} is a Flag, whose combinations have no names; use a set of an Enum")
    if is_model(kind):
        _check_model(kind)
        return
    if inherits_generic_keys(kind):
        raise SchemaError(f"{name_of(kind)} inherits keys of a generic TypedDict; declare all keys in {name_of(kind)}")
    for entry in getattr(kind, "__attrs_attrs__", ()):
        if getattr(entry.default, "takes_self", False):
            raise SchemaError(f"{name_of(kind)}.{entry.name} has a default with takes_self; use a factory without it")
    unset = [each for each in members_of(kind) or () if msgspec.UnsetType in typing.get_args(each.type)]
    if unset and not typing.is_typeddict(kind):
        needed = {each.name for each in msgspec.inspect.type_info(kind).fields if each.required}  # type: ignore[attr-defined]
        for member in unset:
            if member.attribute in needed:
                raise SchemaError(f"{name_of(kind)}.{member.attribute} can be UNSET, but it is required; add = UNSET")


def _check_model(kind: Any) -> None:
    config = _config(kind)
    for name, info in kind.__pydantic_fields__.items():
        if info.init is False:
            raise SchemaError(f"pydantic does not read {name_of(kind)}.{name}, which has init=False; remove init=False")
        written, alias = info.serialization_alias or name, info.validation_alias or name
        read = [*getattr(alias, "choices", [alias])]
        if config.get("populate_by_name") or config.get("validate_by_name"):
            read.append(name)
        if written not in read:
            raise SchemaError(
                f"pydantic writes {name_of(kind)}.{name} as {written!r}, but reads {alias!r}; set only alias="
            )
        if config.get("use_enum_values") and any(map(has_values, types_in(info.annotation))):
            raise SchemaError(
                f"{name_of(kind)}.{name} has the values of an enum, but events have the names; remove use_enum_values"
            )
    computed = kind.__pydantic_decorators__.computed_fields
    if computed and config.get("extra") == "forbid":
        raise SchemaError(f"{name_of(kind)} writes {next(iter(computed))}, but extra='forbid' refuses it; allow extra")


def _config(kind: Any) -> Any:
    return getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None) or {}


def _unknown_type(kind: Any) -> Any | None:
    """Return a type in a class that msgspec neither writes nor reads, such as a deque; None without any."""
    waiting: list[Any] = [msgspec.inspect.type_info(kind)]
    seen: dict[int, Any] = {}
    while waiting:
        found = waiting.pop()
        if isinstance(found, msgspec.inspect.CustomType):
            return found.cls
        if isinstance(found, msgspec.inspect.Field):
            waiting.append(found.type)
        elif isinstance(found, tuple):
            waiting += found
        elif isinstance(found, msgspec.inspect.Type) and id(found) not in seen:
            seen[id(found)] = found
            waiting += [getattr(found, name) for name in found.__struct_fields__]
    return None


class _ByMsgspec:
    def __init__(self, kind: Any) -> None:
        try:
            self._decode = msgspec.json.Decoder(kind).decode
        except TypeError as error:
            raise SchemaError(f"events cannot be read as {name_of(kind)}: {error}") from error
        if (unknown := _unknown_type(kind)) is not None:
            raise SchemaError(
                f"{name_of(kind)} has a value of type {name_of(unknown)}, which events do not have; use a list, a dict "
                "or a class"
            )
        self._kind = kind
        self._differs = differs(kind)
        self._revise, self._always = revision_of(kind)
        self._revise_json = revision_of(kind, json=True).revise

    def dump(self, value: Any) -> Any:
        return self._dump(value, NATURAL)

    def dump_with_durations(self, value: Any) -> Any:
        return self._dump(value, (*NATURAL, timedelta))

    def _dump(self, value: Any, natural: tuple[type, ...]) -> Any:
        try:
            return plain(value, natural) if self._differs else msgspec.to_builtins(value, builtin_types=natural)
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error
        except (TypeError, ValueError) as error:
            raise SerializationError(f"cannot write {name_of(type(value))}: {error}") from error

    def check_json(self) -> None:
        pass

    def load(self, value: Any) -> Any:
        return self._convert(_revised(self._revise, value, self._kind) if self._always else value)

    def _convert(self, value: Any, *, str_keys: bool = False) -> Any:
        try:
            return msgspec.convert(value, self._kind, str_keys=str_keys)
        except msgspec.ValidationError as error:
            raise self._located(error) from error
        except ValueError as error:
            # An unpaired surrogate, which Java's strings may have, in a field that is not text.
            raise _misfit(self._kind, str(error), "$") from error
        except RecursionError as error:
            raise _too_deep(self._kind) from error

    def load_json(self, text: bytes) -> Any:
        if self._always or is_slow(text):
            return self._load_parsed(text)
        try:
            # Passed as str, because msgspec does not validate the UTF-8 that it skips.
            return self._decode(text.decode())
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # msgspec may have stopped before the invalid part of the text, or at the text of a NaN.
            return self._load_parsed(text)

    def _load_parsed(self, text: bytes) -> Any:
        # The keys of JSON are text, as msgspec's own reader of JSON knows.
        value = _revised(self._revise_json, parse_plainly(text, decimals=True), self._kind)
        return self._convert(value, str_keys=True)

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
        self._revise, self._always = revision_of(kind)
        # Python's values are validated in place of JSON, and pydantic would read Base64 as the text.
        self._revise_json = revision_of(kind, json=True, base64=True).revise

    def dump(self, value: Any) -> Any:
        return self._dump(value, NATURAL)

    def dump_with_durations(self, value: Any) -> Any:
        return self._dump(value, (*NATURAL, timedelta))

    def _dump(self, value: Any, natural: tuple[type, ...]) -> Any:
        try:
            return plain(self._adapter.dump_python(value, by_alias=True, warnings="error"), natural)
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error
        except (TypeError, ValueError) as error:
            raise SerializationError(f"cannot write {name_of(type(value))}: {error}") from error

    def load(self, value: Any) -> Any:
        if self._always:
            value = _revised(self._revise, value, self._kind)
        return self._validated(self._adapter.validate_python, value)

    def load_json(self, text: bytes) -> Any:
        # Pydantic's parser converts all numbers with a point to floats, and accepts more than JSON.
        if self._decimals or self._always:
            value = _revised(self._revise_json, parse_plainly(text, decimals=True), self._kind)
            return self._validated(self._adapter.validate_python, value)
        parse_plainly(text)
        return self._validated(self._adapter.validate_json, text)

    def check_json(self) -> None:
        """Reject models whose bytes would silently become Base64 text. Pydantic decodes it only if configured."""
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
    if not is_model(kind) or _config(kind).get("val_json_bytes") == "base64":
        return False
    return any(bytes in _arguments(member.type) for member in members_of(kind) or ())


def _arguments(kind: Any) -> list[Any]:
    """Yield a type, its arguments and their arguments, but not the fields of classes."""
    return [kind, *itertools.chain.from_iterable(map(_arguments, typing.get_args(kind)))]


def _revised(revise: Revise, value: Any, kind: Any) -> Any:
    try:
        return revise(value)
    except MalformedError as error:
        raise _misfit(kind, error.reason, error.field_path()) from error
    except RecursionError as error:
        raise _too_deep(kind) from error


def _misfit(kind: Any, reason: str, path: str) -> DeserializationError:
    return DeserializationError(f"does not fit {name_of(kind)}: {reason}", field_path=path)


def _too_deep(kind: Any) -> LimitExceededError:
    return LimitExceededError(f"values nested beyond the interpreter's recursion limit do not fit {name_of(kind)}")
