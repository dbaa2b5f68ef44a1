"""Reads the JSON of the registry's answers: what is missing or of another type is a protocol error."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from pravega_serde.errors import RegistryProtocolError

T = TypeVar("T")


def member(body: object, name: str, kind: type[T]) -> T:
    """The member of that name of a JSON object; a boolean is no number. Raises RegistryProtocolError."""
    if not isinstance(body, Mapping):
        raise RegistryProtocolError(f"the registry's answer has {_kind(body)} where an object is expected")
    value = body.get(name)
    if type(value) is not kind:
        raise RegistryProtocolError(f"the registry's answer has {_kind(value)} for {name!r}")
    return value


def text(body: object, name: str) -> str:
    """A member that is a string."""
    return member(body, name, str)


def integer(body: object, name: str) -> int:
    """A member that is an integer."""
    return member(body, name, int)


def boolean(body: object, name: str) -> bool:
    """A member that is true or false."""
    return member(body, name, bool)


def data(body: object, name: str) -> bytes:
    """A member that holds bytes, as base64."""
    try:
        return base64.b64decode(text(body, name), validate=True)
    except binascii.Error as error:
        raise RegistryProtocolError(f"the registry's answer has text that is not base64 for {name!r}") from error


def properties(body: object) -> dict[str, str]:
    """The member ``properties``, empty where it is left out."""
    found = optional(body, "properties", lambda value: value)
    return {key: text(found, key) for key in found} if found else {}


def items(body: object, name: str, read: Callable[[Any], T]) -> list[T]:
    """A member that is a list, each element read by ``read``."""
    return [read(element) for element in member(body, name, list)]


def optional(body: object, name: str, read: Callable[[dict[str, Any]], T]) -> T | None:
    """A member that is an object and may be left out or null."""
    if isinstance(body, Mapping) and body.get(name) is None:
        return None
    return read(member(body, name, dict))


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "nothing")
