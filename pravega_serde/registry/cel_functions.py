"""Functions that Confluent's clients add to CEL, with the meaning of its client in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from email.utils import parseaddr
from ipaddress import IPv4Address, IPv6Address
from types import ModuleType
from typing import Any, Final
from urllib.parse import urlparse
from uuid import UUID

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS: Final = frozenset("0123456789")
_LONGEST_HOST, _LONGEST_PART = 253, 63
_LONGEST_ADDRESS, _LONGEST_USER = 254, 64


def _is_parsed(parse: Callable[[Any], object], value: Any) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _is_hostname(host: str) -> bool:
    if not host or len(host) > _LONGEST_HOST:
        return False
    parts = host.removesuffix(".").split(".")
    if not all(0 < len(each) <= _LONGEST_PART and _LETTERS | _DIGITS | {"-"} >= set(each) for each in parts):
        return False
    return not any("-" in (each[0], each[-1]) for each in parts) and not set(parts[-1]) <= _DIGITS


def _is_email(address: str) -> bool:
    user, _, host = address.partition("@")
    if parseaddr(address)[1] != address or len(address) > _LONGEST_ADDRESS or address.count("@") != 1:
        return False
    return len(user) <= _LONGEST_USER and _is_hostname(host)


def _is_uri(text: str) -> bool:
    found = urlparse(text)
    return bool(found.scheme and found.netloc and found.path)


def _is_uri_reference(text: str) -> bool:
    found = urlparse(text)
    return bool(found.scheme and found.path) or not found.fragment


#: Name -> test of a text. Addresses may also be bytes.
_TESTS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "isEmail": _is_email,
    "isHostname": _is_hostname,
    "isIpv4": lambda value: _is_parsed(IPv4Address, value),
    "isIpv6": lambda value: _is_parsed(IPv6Address, value),
    "isUri": _is_uri,
    "isUriRef": _is_uri_reference,
    "isUuid": lambda value: _is_parsed(UUID, value),
}
_OF_BYTES: Final = frozenset({"isIpv4", "isIpv6"})


def cel_functions(celpy: ModuleType, types: ModuleType) -> dict[str, Callable[..., Any]]:
    """Return the functions by name. They raise an error of ``celpy`` for values of other types."""

    def function(name: str) -> Callable[..., Any]:
        kinds = (types.StringType, types.BytesType) if name in _OF_BYTES else types.StringType
        accepts = _TESTS[name]

        def test(value: Any) -> Any:
            if not isinstance(value, kinds):
                raise celpy.CELEvalError(f"{name} has an argument of another type")
            return types.BoolType(accepts(value))

        return test

    return {name: function(name) for name in _TESTS}
