"""Conversion of objects to plain values and back, with msgspec or with pydantic for its own classes."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import re
import types
import typing
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence, Set
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

import msgspec

from pravega_serde.adapters.classes import (
    SCALARS,
    annotations_in,
    class_of,
    classes_in,
    inherits_generic_keys,
    is_enum,
    is_model,
    members_of,
    name_of,
    places_in,
    types_in,
    unwrapped,
)
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

    def check(self, *, json: bool) -> None:
        """Raise :class:`SchemaError` for a class that the format could write, but not read."""


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
    config, fields = _config(kind), kind.__pydantic_fields__.items()
    computed = kind.__pydantic_decorators__.computed_fields
    names = [info.serialization_alias or name for name, info in fields if info.exclude is not True]
    names += [each.info.alias or name for name, each in computed.items()]
    for name, info in fields:
        if info.init is False:
            raise SchemaError(f"pydantic does not read {name_of(kind)}.{name}, which has init=False; remove init=False")
        written, alias = info.serialization_alias or name, info.validation_alias or name
        read = [*getattr(alias, "choices", [alias])] if config.get("validate_by_alias") is not False else []
        if config.get("populate_by_name") or config.get("validate_by_name"):
            read.append(name)
        if written not in read:
            raise SchemaError(
                f"pydantic writes {name_of(kind)}.{name} as {written!r}, but reads {alias!r}; set only alias="
            )
        first = [getattr(each, "path", [each])[0] for each in read[: read.index(written) + 1]]
        if any(names.count(each) > (each == written and info.exclude is not True) for each in first):
            raise SchemaError(f"pydantic reads {name_of(kind)}.{name} from the name of another field; rename one")
        if info.exclude is True and info.is_required():
            raise SchemaError(f"{name_of(kind)}.{name} is required, but excluded from events; add a default")
        if config.get("use_enum_values") and any(map(has_values, types_in(info.annotation))):
            raise SchemaError(
                f"{name_of(kind)}.{name} has the values of an enum, but events have the names; remove use_enum_values"
            )
    extra = config.get("extra")
    if computed and extra in ("forbid", "allow"):
        raise SchemaError(
            f"{name_of(kind)} writes the computed {next(iter(computed))}, but extra={extra!r} "
            f"{'refuses' if extra == 'forbid' else 'adds'} it when it is read; set extra='ignore'"
        )


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
        except (TypeError, NotImplementedError) as error:
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

    def check(self, *, json: bool) -> None:
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
        except Exception as error:  # of a function of the class
            raise _failed(self._kind, error) from error

    def load_json(self, text: bytes) -> Any:
        if self._always or is_slow(text):
            return self._load_parsed(text)
        try:
            # Passed as str, because msgspec does not validate the UTF-8 that it skips.
            return self._decode(text.decode())
        except Exception:  # noqa: BLE001 -- read again, which names it
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
        _check_types(kind)
        try:
            self._adapter = pydantic.TypeAdapter(kind)
        except Exception as error:
            reason = str(error).partition("\n")[0]
            raise SchemaError(f"events cannot be read as {name_of(kind)}: {reason}") from error
        self._invalid = pydantic.ValidationError
        self._strict = _is_strict(kind)
        self._revise, always = revision_of(kind, python=True)
        self._always = always or self._strict
        self._revise_json = revision_of(kind, json=True, python=True).revise
        # Pydantic's parser converts all numbers with a point to floats, reads Base64 as text, and accepts more than
        # JSON. A strict float does not accept the text of a NaN.
        own = [Decimal, bytes, float] if self._strict else [Decimal, bytes]
        self._parses = always or any(each in own for each in types_in(kind))

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
        if self._parses:
            value = _revised(self._revise_json, parse_plainly(text, decimals=True), self._kind)
            return self._validated(self._adapter.validate_python, value)
        parse_plainly(text)
        return self._validated(self._adapter.validate_json, text)

    def check(self, *, json: bool) -> None:
        for path, inner in places_in(self._kind):
            if json and (unread := _unread_in_json(inner)) is not None:
                raise SchemaError(f"pydantic cannot read {name_of(unread)} (at {path}) from JSON; use its type, or str")
            if self._strict and (self._parses or not json) and _is_made_by_class(inner):
                raise SchemaError(
                    f"pydantic cannot read {name_of(inner)} (at {path}) in strict mode from events; use a model or a "
                    "list, or set strict=False"
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
        except Exception as error:  # of a function of the class
            raise _failed(self._kind, error) from error


#: Types that pydantic reads from the values of events, in addition to models and types with their own functions.
_READ: Final = frozenset(
    {
        *SCALARS,
        *(Any, object, list, dict, set, frozenset, tuple, Sequence, MutableSequence, Set, MutableSet),
        *(Mapping, MutableMapping, OrderedDict, defaultdict, typing.Union, types.UnionType),
    }
)


def _check_types(kind: Any) -> None:
    """Raise :class:`SchemaError` for a type that pydantic reads only from objects, or writes as another."""
    if any(getattr(each, "__name__", type(each).__name__) == "Json" for each in annotations_in(kind)):
        raise SchemaError(f"{name_of(kind)} has a pydantic.Json, which is written as its value; use that type")
    for path, inner in places_in(kind):
        one = class_of(inner)
        known = one in _READ or is_enum(one) or hasattr(one, "__get_pydantic_core_schema__")
        if isinstance(one, type) and not (known or dataclasses.is_dataclass(one) or typing.is_typeddict(one)):
            raise SchemaError(
                f"pydantic cannot read {name_of(inner)} (at {path}) from events; use a model, a dataclass or a list"
            )


def _is_strict(kind: Any) -> bool:
    return any(
        getattr(each, "strict", None) is True or (is_model(each) and _config(each).get("strict"))
        for each in annotations_in(kind)
    )


def _unread_in_json(kind: Any) -> Any:
    """Return the Literal of a type that is bytes, or keys that are not text: pydantic compares the text of JSON."""
    key = unwrapped(typing.get_args(kind)[0]) if len(typing.get_args(kind)) == 2 else None
    for one, allowed in ((kind, (str, int, enum.Enum, type(None))), (key, (str, enum.Enum))):
        if typing.get_origin(one) is typing.Literal and not all(isinstance(e, allowed) for e in typing.get_args(one)):
            return one
    return None


def _is_made_by_class(kind: Any) -> bool:
    """Return True for a type that a strict model reads only from objects, which events do not have."""
    one = class_of(kind)
    if is_model(one):
        return dataclasses.is_dataclass(one) and bool(_config(one).get("strict"))
    if not isinstance(one, type) or is_enum(one):
        return False
    if issubclass(one, Set):
        return any(members_of(unwrapped(each)) is not None for each in typing.get_args(kind))
    custom = dataclasses.is_dataclass(one) or hasattr(one, "__get_pydantic_core_schema__")
    return custom or one in (OrderedDict, defaultdict)


def _revised(revise: Revise, value: Any, kind: Any) -> Any:
    try:
        return revise(value)
    except MalformedError as error:
        raise _misfit(kind, error.reason, error.field_path()) from error
    except RecursionError as error:
        raise _too_deep(kind) from error


def _misfit(kind: Any, reason: str, path: str) -> DeserializationError:
    return DeserializationError(f"does not fit {name_of(kind)}: {reason}", field_path=path)


def _failed(kind: Any, error: Exception) -> DeserializationError:
    return _misfit(kind, f"{type(error).__name__}: {error}", "$")


def _too_deep(kind: Any) -> LimitExceededError:
    return LimitExceededError(f"values nested beyond the interpreter's recursion limit do not fit {name_of(kind)}")
