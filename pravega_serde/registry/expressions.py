"""Expressions of rules: CEL, the Common Expression Language, and JSONata (extra ``rules``)."""

from __future__ import annotations

import importlib
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import ModuleType
from typing import Any, Final
from uuid import UUID

from pravega_serde.errors import MissingExtraError, UnsupportedRuleError
from pravega_serde.registry.cel_functions import cel_functions
from pravega_serde.registry.rule_set import Rule

#: Type of a rule -> names in its expression whose values change from one run to the next.
_CHANGING: Final = {
    "CEL": re.compile(r"\bnow\b"),
    "CEL_FIELD": re.compile(r"\bnow\b"),
    "JSONATA": re.compile(r"\$(now|millis|random|shuffle|eval)\b"),
}
_limit_lock: Final = threading.Lock()
_FIRST_DAY: Final = date(1970, 1, 1).toordinal()


def is_deterministic(rule: Rule) -> bool:
    """Return True if the expression of a rule has the same result each time for the same value."""
    return _CHANGING[rule.type].search(rule.expr) is None


def cel_function(rule: Rule) -> Callable[[Mapping[str, Any], Any], Any]:
    """Return the function of a rule: its variables and the value that it keeps if the guard is false.

    The expression may have a guard before a semicolon. Raises :class:`UnsupportedRuleError` for an invalid expression,
    and :class:`MissingExtraError` without ``cel-python``.
    """
    celpy = _required("celpy", "cel-python", rule)
    types = importlib.import_module("celpy.celtypes")
    guard, found, rest = rule.expr.partition(";")
    expression = rest if found else guard
    functions = cel_functions(celpy, types)
    programs = [
        _program(celpy, rule, each, functions)
        for each in ((guard, expression) if found and guard.strip() else (expression,))
    ]
    uses_now = not is_deterministic(rule)

    def run(variables: Mapping[str, Any], otherwise: Any) -> Any:
        activation = {name: _to_cel(types, value) for name, value in variables.items()}
        if uses_now:
            activation["now"] = types.TimestampType(datetime.now(UTC))
        for each in programs[:-1]:
            if not each.evaluate(activation):
                return otherwise
        return _from_cel(types, programs[-1].evaluate(activation))

    return run


def jsonata_function(rule: Rule) -> Callable[[Any], Any]:
    """Return the function of a rule. Raises as :func:`cel_function`; the package is ``jsonata-python``."""
    jsonata = _required("jsonata", "jsonata-python", rule)
    try:
        compiled = _Jsonata(jsonata, rule.expr)
    except Exception as error:
        raise UnsupportedRuleError(f"{rule.title} has an invalid expression: {error}") from error

    return lambda value: compiled.evaluate(value)  # looked up in each thread


class _Jsonata(threading.local):
    """Compiled expression. Each thread has its own, because the variables of a run are stored in it."""

    def __init__(self, jsonata: ModuleType, expression: str) -> None:
        with _same_recursion_limit():
            self.evaluate: Callable[[Any], Any] = jsonata.Jsonata(expression).evaluate


def _required(module: str, package: str, rule: Rule) -> ModuleType:
    try:
        with _same_recursion_limit():
            return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, "rules", purpose=rule.title) from error


@contextmanager
def _same_recursion_limit() -> Iterator[None]:
    """Restore the recursion limit of the process: both packages raise it, and then a deep event can end the process."""
    with _limit_lock:  # or another thread would restore a raised limit
        limit = sys.getrecursionlimit()
        try:
            yield
        finally:
            sys.setrecursionlimit(limit)


def _program(celpy: ModuleType, rule: Rule, expression: str, functions: Mapping[str, Callable[..., Any]]) -> Any:
    with _same_recursion_limit():
        environment = celpy.Environment()
    try:
        return environment.program(environment.compile(expression), functions=functions)
    except Exception as error:
        raise UnsupportedRuleError(f"{rule.title} has an invalid expression: {error}") from error


def _to_cel(types: ModuleType, value: Any) -> Any:
    if isinstance(value, Mapping):
        return types.MapType({types.StringType(name): _to_cel(types, each) for name, each in value.items()})
    if isinstance(value, list):
        return types.ListType([_to_cel(types, each) for each in value])
    if isinstance(value, tuple):  # a branch of a union with its name
        return _to_cel(types, value[1])
    for kind, name in _CEL_TYPES:
        if isinstance(value, kind):
            return getattr(types, name)(value)
    if isinstance(value, date):
        return types.IntType(value.toordinal() - _FIRST_DAY)
    return types.StringType(value) if isinstance(value, UUID) else value


#: Type of a value -> CEL's type. A bool is an int, and a datetime is a date.
_CEL_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "BoolType"),
    (str, "StringType"),
    (bytes, "BytesType"),
    (int, "IntType"),
    (float, "DoubleType"),
    (Decimal, "DoubleType"),
    (datetime, "TimestampType"),
    (timedelta, "DurationType"),
)


def _from_cel(types: ModuleType, value: Any) -> Any:
    if isinstance(value, types.BoolType):
        return bool(value)
    if isinstance(value, Mapping):
        return {str(name): _from_cel(types, each) for name, each in value.items()}
    if isinstance(value, list):
        return [_from_cel(types, each) for each in value]
    kinds: tuple[Callable[[Any], Any], ...] = (str, bytes, int, float)
    return next((kind(value) for kind in kinds if isinstance(value, kind)), value)  # type: ignore[arg-type]
