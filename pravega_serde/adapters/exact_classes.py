"""Refusal of objects of subclasses inside a value: a reader would return objects of the declared classes.

A class has no list of its future subclasses, and few classes have any. So each write only asks the classes of the type
for subclasses. If there are some, it looks at the objects.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pravega_serde.adapters.classes import class_of, classes_in, is_model, members_of, name_of, unwrapped
from pravega_serde.errors import SerializationError
from pravega_serde.json.write_rows import TOO_DEEP

#: Raises SerializationError for an object of a subclass in a value, which has a path.
_Check = Callable[[Any, str], None]


def exact_classes(kind: Any) -> Callable[[Any], None] | None:
    """Return the function that raises SerializationError for an object of a subclass in a value of a type.

    None if no value of the type has such objects.
    """
    checks, kind = _Checks(), unwrapped(kind)
    check, members = checks.of(kind), members_of(kind)
    # The serializer knows the class of the value itself.
    if check is None or (members is not None and all(checks.of(each.type) is None for each in members)):
        return None
    classes = dict.fromkeys(each for each in classes_in(kind) if members_of(each) is not None)
    listings: list[Callable[[], list[type]]] = [each.__subclasses__ for each in classes]

    def check_value(value: Any) -> None:
        for subclasses in listings:
            if subclasses():
                break
        else:
            return
        try:
            check(value, "$")
        except RecursionError as error:
            raise SerializationError(TOO_DEEP) from error

    return check_value


class _Checks:
    """Compiler of a type. A class is compiled once, because it may contain itself."""

    def __init__(self) -> None:
        self._of_classes: list[tuple[Any, _Check]] = []

    def of(self, kind: Any) -> _Check | None:
        """Return the check of a type's values. None for a type without classes."""
        kind = unwrapped(kind)
        if members_of(kind) is not None:
            return self._class(kind)
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if origin in (typing.Union, types.UnionType):
            return self._union(arguments)
        if not isinstance(origin, type):
            return None
        if issubclass(origin, Mapping) and len(arguments) == 2:
            return _of_entries(self.of(arguments[1]))
        if issubclass(origin, tuple) and arguments[-1:] != (Ellipsis,):
            return _of_parts([self.of(each) for each in arguments])
        return _of_items(self.of(arguments[0])) if arguments and issubclass(origin, Iterable) else None

    def _class(self, kind: Any) -> _Check:
        for known, check in self._of_classes:
            if known == kind:
                return check
        declared, fields = class_of(kind), dict[str, tuple[str, _Check]]()
        check = _of_keys(fields) if typing.is_typeddict(declared) else _of_object(declared, fields)
        self._of_classes.append((kind, check))
        for attribute, name, inner in members_of(kind) or ():
            is_written = not is_model(kind) or kind.__pydantic_fields__[attribute].exclude is not True
            if is_written and (of_field := self.of(inner)) is not None:
                fields[attribute] = name, of_field
        return check

    def _union(self, arguments: tuple[Any, ...]) -> _Check | None:
        kinds = [unwrapped(each) for each in arguments]
        checks = [(class_of(each), check) for each in kinds if (check := self.of(each)) is not None]
        if len(checks) < 2:
            return checks[0][1] if checks else None

        def check_union(value: Any, path: str) -> None:
            # A class that is declared next to its parent.
            exact = [check for kind, check in checks if is_exactly(value, kind)]
            for check in exact or [check for _, check in checks]:
                check(value, path)

        return check_union


def is_exactly(value: Any, declared: Any) -> bool:
    """Return True for an object of a class itself, not of a subclass."""
    found = type(value)
    # Pydantic's classes with arguments, such as Box[int], equal those without.
    return declared in (found, getattr(found, "__pydantic_generic_metadata__", {}).get("origin"))


def _of_object(declared: type, fields: Mapping[str, tuple[str, _Check]]) -> _Check:
    def check_object(value: Any, path: str) -> None:
        if is_exactly(value, declared):
            for attribute, (name, check) in fields.items():
                check(getattr(value, attribute, None), f"{path}.{name}")
        elif isinstance(value, declared):
            raise SerializationError(
                f"expected a {name_of(declared)} at {path}, not a {name_of(type(value))}, which no reader would "
                "return; declare the field with its class, or with a union of both"
            )

    return check_object


def _of_keys(fields: Mapping[str, tuple[str, _Check]]) -> _Check:
    def check_keys(value: Any, path: str) -> None:
        for key, (name, check) in fields.items() if isinstance(value, Mapping) else ():
            check(value.get(key), f"{path}.{name}")

    return check_keys


def _of_entries(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def check_entries(value: Any, path: str) -> None:
        for key, inner in value.items() if isinstance(value, Mapping) else ():
            check(inner, f"{path}[{key!r}]")

    return check_entries


def _of_items(check: _Check | None) -> _Check | None:
    if check is None:
        return None

    def check_items(value: Any, path: str) -> None:
        for index, inner in enumerate(value) if _is_list(value) else ():
            check(inner, f"{path}[{index}]")

    return check_items


def _of_parts(checks: list[_Check | None]) -> _Check | None:
    def check_parts(value: Any, path: str) -> None:
        for index, (check, inner) in enumerate(zip(checks, value, strict=False)) if _is_list(value) else ():
            if check is not None:
                check(inner, f"{path}[{index}]")

    return None if all(check is None for check in checks) else check_parts


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
