"""JSON Schema keywords whose cost does not depend on whom the event came from.

jsonschema applies patterns with Python's backtracking ``re``, compares all pairs for ``uniqueItems``, and visits a
value once for each branch of each union around it. Here patterns are RE2's (pyarrow has it), which take linear time;
unique items are told apart by their text; and each event has a budget of steps.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from jsonschema import ValidationError, validators

from pravega_serde.errors import LimitExceededError, SchemaError

__all__ = ["MAX_STEPS", "bounded", "budget", "check_pattern"]

MAX_STEPS: Final = 100_000
"""Checks that one event may take: one for each keyword that is applied to a value, more where it looks at many."""

_ERROR_STEPS: Final = 20
"""An error takes about as long as so many checks; unions collect those of all their branches."""

_LETTERS_A_STEP: Final = 100
"""The text of an error has the whole value in it."""

#: Keywords that look at each item or member.
_EACH: Final = frozenset({"additionalItems", "contains", "items", "prefixItems", "propertyNames", "unevaluatedItems"})

#: Keywords that may have to reckon with fractions.
_EXACT: Final = frozenset({"divisibleBy", "multipleOf"})

_EXACT_STEPS: Final = 5

Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]

_left: ContextVar[list[int]] = ContextVar("left")


@contextlib.contextmanager
def budget() -> Iterator[None]:
    """Allow MAX_STEPS checks inside the block."""
    token = _left.set([MAX_STEPS])
    try:
        yield
    finally:
        _left.reset(token)


def _spend(steps: int) -> None:
    left = _left.get()
    left[0] -= steps
    if left[0] < 0:
        raise LimitExceededError(f"its JSON schema takes more than {MAX_STEPS} checks")


@cache
def bounded(draft: Any) -> Any:
    """A draft's validator class with the keywords of this module, all of them counted."""
    keywords = {name: check for name, check in {**draft.VALIDATORS, **_LINEAR}.items() if name in draft.VALIDATORS}
    return validators.extend(draft, {name: _counted(name, check) for name, check in keywords.items()})


def _counted(name: str, check: Keyword) -> Keyword:
    steps, each = _EXACT_STEPS if name in _EXACT else 1, name in _EACH

    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        _spend(steps + len(instance) if each and isinstance(instance, list | dict) else steps)
        for error in check(validator, value, instance, schema) or ():
            _spend(_ERROR_STEPS + len(error.message) // _LETTERS_A_STEP)
            yield error

    return keyword


def check_pattern(pattern: str) -> None:
    """Raise :class:`SchemaError` for a pattern that is none, or cannot be matched in linear time."""
    try:
        _matching(pattern, [""])
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"the pattern {pattern[:100]!r} of the JSON schema is not one of RE2, the only ones whose time is bounded "
            f"(no look-around, no back references): {error}"
        ) from error


def _matching(pattern: str, texts: Iterable[str]) -> list[str]:
    """The texts in which the pattern is found."""
    every = list(texts)
    # JSON may have half a character; RE2 reads UTF-8, which may not.
    column = pa.array([text.encode("utf-8", "replace") for text in every], pa.binary()).cast(pa.string())
    found = pc.match_substring_regex(column, _as_re2(pattern)).to_pylist()
    return [text for text, there in zip(every, found, strict=True) if there]


def _as_re2(pattern: str) -> str:
    r"""ECMAScript's ``\u00e9`` as RE2 writes it."""
    return re.sub(r"\\u([0-9a-fA-F]{4})", r"\\x{\1}", pattern)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if isinstance(instance, str) and not _matching(pattern, [instance]):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if isinstance(instance, dict):
        for pattern, inner in patterns.items():
            _spend(len(instance))
            for name in _matching(pattern, instance):
                yield from validator.descend(instance[name], inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    _spend(len(instance))
    extras = {name: None for name in instance if name not in schema.get("properties", ())}
    for pattern in schema.get("patternProperties", ()):
        for name in _matching(pattern, extras):
            del extras[name]
    if isinstance(inner, Mapping):
        for name in extras:
            yield from validator.descend(instance[name], inner, path=name)
    elif not inner and extras:
        yield ValidationError(f"no other members are allowed than those of the schema: {', '.join(extras)[:200]}")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:  # noqa: ARG001
    if wanted and isinstance(instance, list):
        _spend(_size(instance) // 8)
        if len({_text(item) for item in instance}) < len(instance):
            yield ValidationError("an item of the array comes twice")


def _size(value: Any) -> int:
    """How many values a value consists of."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inside))


def _text(value: Any) -> str:
    """The same text for equal values only. Text, because numbers that have one hash are easily made."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{name!r}:{_text(inner)}" for name, inner in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


_LINEAR: Final[dict[str, Keyword]] = {
    "additionalProperties": _additional_properties,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
