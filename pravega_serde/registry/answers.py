"""Parsers of the registry's JSON answers. A missing member or one of another type is a protocol error."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pravega_serde.columnar.bad_rows import has_surrogate
from pravega_serde.errors import RegistryProtocolError

T = TypeVar("T")


def member(body: object, name: str, kind: type[T]) -> T:
    """Return a member of a JSON object. A boolean is not accepted as a number. Raises RegistryProtocolError."""
    if not isinstance(body, Mapping):
        raise RegistryProtocolError(f"the registry's answer has {_kind(body)} where an object is expected")
    value = body.get(name)
    if type(value) is not kind:
        raise RegistryProtocolError(f"the registry's answer has {_kind(value)} for {name!r}")
    return value


def text(body: object, name: str) -> str:
    """Return a member that is a string."""
    found = member(body, name, str)
    if has_surrogate(found):
        raise RegistryProtocolError(f"the registry's answer has an unpaired surrogate in {name!r}")
    return found


def integer(body: object, name: str) -> int:
    """Return a member that is an integer."""
    return member(body, name, int)


def boolean(body: object, name: str) -> bool:
    """Return a member that is true or false."""
    return member(body, name, bool)


def data(body: object, name: str) -> bytes:
    """Return a member that holds bytes as base64."""
    try:
        return base64.b64decode(text(body, name), validate=True)
    except binascii.Error as error:
        raise RegistryProtocolError(f"the registry's answer has text that is not base64 for {name!r}") from error


def properties(body: object) -> dict[str, str]:
    """Return the member ``properties``, or an empty mapping if it is missing."""
    found = optional(body, "properties", lambda value: value)
    return {key: text(found, key) for key in found} if found else {}


def items(body: object, name: str, read: Callable[[Any], T]) -> list[T]:
    """Return a member that is a list. ``read`` parses each element."""
    return [read(element) for element in member(body, name, list)]


def optional(body: object, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
    """Return a member that is an object, or None if it is missing or null."""
    if isinstance(body, Mapping) and body.get(name) is None:
        return None
    return read(member(body, name, dict))


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")
