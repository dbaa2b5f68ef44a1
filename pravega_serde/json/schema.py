"""Validation of events with a JSON Schema, in bounded time for any event. Requires the ``json-schema`` extra.

Drafts 3, which Jackson's schema module writes, to 2020-12 are supported; ``$schema`` selects the draft. Without it, a
schema is Jackson's if its ``id`` begins with ``urn:jsonschema:``, and of draft 2020-12 otherwise. References to other
documents are refused, never fetched. ``format`` is an annotation, as in the newer drafts.

By default, jsonschema applies patterns with Python's backtracking ``re`` and compares all pairs for ``uniqueItems``. It
also visits a value once for each branch of each union around it. This module bounds all three:

- Patterns use RE2 (from pyarrow), which needs linear time.
- Unique items are compared by their text.
- Each event has a budget of steps.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final

import jsonschema
import pyarrow as pa
import pyarrow.compute as pc
import referencing.jsonschema
from jsonschema import ValidationError, validators
from jsonschema_specifications import REGISTRY

from pravega_serde.errors import DeserializationError, LimitExceededError, SchemaError

#: JSON text, parsed JSON, or the path of a file. True accepts every event, False none.
SchemaLike = str | Mapping[str, Any] | Path | bool

#: Prefix of the ids of schemas from ``jackson-module-jsonSchema``, which are of draft 3.
_JACKSON: Final = "urn:jsonschema:"

_LONGEST_REASON: Final = 300

#: Raised by jsonschema for numbers larger than Python's floats, and for invalid parts of schemas that its check skips.
_UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class JsonSchema:
    """Checked and compiled schema; ``text`` is its compact JSON.

    Raises :class:`SchemaError` for a schema that is invalid or refers to another document. A pattern whose time cannot
    be bounded (look-around, back references) also raises it.
    """

    def __init__(self, schema: SchemaLike) -> None:
        try:
            self.definition = _definition(schema)
            self.text = json.dumps(self.definition, separators=(",", ":"))
            self._validator = _compile(self.definition)
        except RecursionError as error:
            raise SchemaError("the JSON schema is nested too deeply") from error

    def text_fault(self, path: Sequence[str]) -> str | None:
        """Return the reason why the field at a path cannot hold every text; None if nothing at that place forbids it.

        References and combined schemas are not followed.
        """
        node: Any = self.definition
        for name in path:
            node = _without_items(node)
            node = node.get("properties", {}).get(name) if isinstance(node, Mapping) else None
        node = _without_items(node)
        limits = [each for each in _LIMITS if isinstance(node, Mapping) and each in node]
        return f"has {limits[0]!r} in its JSON schema" if limits else None

    def check(self, value: Any) -> None:
        """Raise :class:`DeserializationError`, with the field's path, for an invalid value.

        Raises :class:`LimitExceededError` if validation needs more than ``MAX_STEPS`` checks.
        """
        try:
            with _budget():
                error = next(self._validator.iter_errors(value), None)
        except RecursionError as unbounded:
            raise LimitExceededError("nested too deeply for its JSON schema") from unbounded
        except _UNEXPECTED as odd:
            raise DeserializationError(f"its JSON schema cannot be applied to it: {odd}"[:_LONGEST_REASON]) from odd
        if error is not None:
            raise DeserializationError(
                f"does not satisfy its JSON schema: {error.message[:_LONGEST_REASON]}", field_path=error.json_path
            )


#: Keywords that restrict texts.
_LIMITS: Final = ("const", "enum", "format", "maxLength", "pattern")


def _without_items(node: Any) -> Any:
    """Return the schema of the items of a list, or of the values of a map, else the schema itself."""
    while isinstance(node, Mapping) and "properties" not in node:
        inside = node.get("items", node.get("additionalProperties"))
        if not isinstance(inside, Mapping):
            return node
        node = inside
    return node


def _definition(schema: SchemaLike) -> Mapping[str, Any] | bool:
    if isinstance(schema, Mapping | bool):
        return schema
    if not isinstance(schema, str | Path):
        raise SchemaError(f"a JSON schema must be an object, true or false, not {schema!r:.80}")
    try:
        inline = isinstance(schema, str) and (schema.lstrip().startswith("{") or schema.strip() in ("true", "false"))
        definition = json.loads(str(schema) if inline else Path(schema).read_text("utf-8"))
    except OSError as error:
        raise SchemaError(f"the JSON schema is neither JSON nor the path of a file: {error}") from error
    except ValueError as error:
        raise SchemaError(f"the JSON schema is not JSON: {error}") from error
    if not isinstance(definition, dict | bool):
        raise SchemaError("a JSON schema must be an object, true or false")
    return definition


def _compile(definition: Mapping[str, Any] | bool) -> Any:
    draft = _draft(definition)
    try:
        # Without formats: RE2 decides if a pattern is valid.
        draft.check_schema(definition, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        raise SchemaError(f"invalid JSON schema: {error.message[:_LONGEST_REASON]} (at {error.json_path})") from error
    if draft is jsonschema.Draft3Validator:
        definition = _with_listed_extends(definition)
    specification = referencing.jsonschema.specification_with(draft.META_SCHEMA["$schema"])
    root = specification.create_resource(definition)
    try:
        keywords = set(_keywords(REGISTRY.resolver_with_root(root), root))
    except referencing.exceptions.Unresolvable as error:
        reason = f"the JSON schema refers to {error.ref}, which it does not contain; other documents are never fetched"
        raise SchemaError(reason) from error
    if keywords >= {"patternProperties", "unevaluatedProperties"}:
        raise SchemaError("patternProperties and unevaluatedProperties in one JSON schema are not supported")
    # This registry has the drafts' own schemas and no way to fetch others, which jsonschema's default has.
    return _bounded(draft)(definition, registry=REGISTRY)


def _with_listed_extends(schema: Any) -> Any:
    """Return the schema of draft 3 with every ``extends`` as a list.

    ``referencing`` finds references in lists only.
    """
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = dict(schema)
    for name, inner in schema.items():
        if name == "extends" and isinstance(inner, Mapping):
            made[name] = [_with_listed_extends(inner)]
        elif name in _NAMED_SCHEMAS and isinstance(inner, Mapping):
            made[name] = {key: _with_listed_extends(value) for key, value in inner.items()}
        elif name in _SCHEMAS:
            listed = isinstance(inner, list)
            made[name] = [_with_listed_extends(each) for each in inner] if listed else _with_listed_extends(inner)
    return made


#: Keywords of draft 3 with schemas or lists of them as values, and keywords with schemas by name.
_SCHEMAS: Final = frozenset({"additionalItems", "additionalProperties", "disallow", "extends", "items", "type"})
_NAMED_SCHEMAS: Final = frozenset({"definitions", "dependencies", "patternProperties", "properties"})


def _draft(definition: Mapping[str, Any] | bool) -> Any:
    if isinstance(definition, bool):
        return jsonschema.Draft202012Validator
    if "$schema" in definition:
        if not isinstance(definition["$schema"], str):
            raise SchemaError(f"unknown JSON schema draft {definition['$schema']!r:.80}")
        found = jsonschema.validators.validator_for(definition, default=None)
        if found is None:
            raise SchemaError(f"unknown JSON schema draft {definition['$schema']!r}")
        return found
    jackson = str(definition.get("id", "")).startswith(_JACKSON)
    return jsonschema.Draft3Validator if jackson else jsonschema.Draft202012Validator


def _keywords(resolver: Any, resource: Any) -> Iterator[str]:
    """Yield the keywords of a schema and of the schemas in it.

    Raises for unresolvable references and bad patterns on the way.
    """
    contents = resource.contents
    if isinstance(contents, Mapping):
        yield from contents
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(contents.get(keyword), str):
                resolver.lookup(contents[keyword])
        for pattern in (contents.get("pattern"), *(contents.get("patternProperties") or ())):
            if isinstance(pattern, str):
                _check_pattern(pattern)
    for inner in resource.subresources():
        yield from _keywords(resolver.in_subresource(inner), inner)


# Keywords

MAX_STEPS: Final = 100_000
"""Limit of checks for an event: one for each keyword that is applied to a value, more where it looks at many values."""

_ERROR_STEPS: Final = 20
"""Checks that take about as long as making an error; unions collect those of all their branches."""

_LETTERS_A_STEP: Final = 100
"""Letters of an error's text, which contains the whole value, that are made in the time of a check."""

#: Keywords that visit each item or member.
_EACH: Final = frozenset({"additionalItems", "contains", "items", "prefixItems", "propertyNames", "unevaluatedItems"})

#: Keywords that may compute with fractions.
_EXACT: Final = frozenset({"divisibleBy", "multipleOf"})

_EXACT_STEPS: Final = 5

Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError] | None]

_left: ContextVar[list[int]] = ContextVar("left")


@contextlib.contextmanager
def _budget() -> Iterator[None]:
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
        raise LimitExceededError(f"its JSON schema requires more than {MAX_STEPS} checks")


@cache
def _bounded(draft: Any) -> Any:
    """Return the validator class of a draft with the keywords of this module; each counts its steps."""
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


def _check_pattern(pattern: str) -> None:
    """Raise :class:`SchemaError` for a pattern that is invalid or cannot be matched in linear time."""
    try:
        _matching(pattern, [""])
    except pa.ArrowInvalid as error:
        raise SchemaError(
            f"the pattern {pattern[:100]!r} of the JSON schema is not supported by RE2, which bounds the time (no "
            f"look-around, no back references): {error}"
        ) from error


def _matching(pattern: str, texts: Iterable[str]) -> list[str]:
    """Return the texts that match the pattern."""
    every = list(texts)
    # JSON may have an unpaired surrogate, but UTF-8, which RE2 reads, may not.
    column = pa.array([text.encode("utf-8", "replace") for text in every], pa.binary()).cast(pa.string())
    as_re2 = re.sub(r"\\u([0-9a-fA-F]{4})", r"\\x{\1}", pattern)
    found = pc.match_substring_regex(column, as_re2).to_pylist()
    return [text for text, there in zip(every, found, strict=True) if there]


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _matching(pattern, [instance]):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
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
        yield ValidationError(f"the schema does not allow the members: {', '.join(extras)[:200]}")


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        _spend(_size(instance) // 8)
        if len({repr(item) if type(item) is int else _text(item) for item in instance}) < len(instance):
            yield ValidationError("two items of the array are equal")


_CONTAINERS: Final = (dict, list)


def _size(value: Any) -> int:
    """Return the number of values in a value, including itself."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum([_size(each) if type(each) in _CONTAINERS else 1 for each in inside])


def _text(value: Any) -> str:
    """Return a text that only equal values share; not a hash, because collisions are easily produced."""
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{name!r}:{_text(inner)}" for name, inner in value.items())) + "}"
    if isinstance(value, list):
        return "[" + ",".join([repr(each) if type(each) is int else _text(each) for each in value]) + "]"
    return repr(int(value)) if isinstance(value, float) and value.is_integer() else repr(value)


_LINEAR: Final[dict[str, Keyword]] = {
    "additionalProperties": _additional_properties,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "uniqueItems": _unique_items,
}
