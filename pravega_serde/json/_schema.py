"""JSON Schema: whether events are what a schema says. Needs the package ``jsonschema`` (the ``json-schema`` extra).

Draft 3, which Jackson's schema module writes, to 2020-12; ``$schema`` says which. Without it, a schema whose ``id``
begins with ``urn:jsonschema:`` is Jackson's, and any other of draft 2020-12. References to other documents are
refused, never fetched. ``format`` is a remark, as the newer drafts have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import jsonschema
import referencing.jsonschema
from jsonschema_specifications import REGISTRY

from pravega_serde.errors import DeserializationError, LimitExceededError, SchemaError
from pravega_serde.json._keywords import bounded, budget, check_pattern

__all__ = ["JsonSchema", "SchemaLike"]

#: JSON text, parsed JSON, or the path of a file. True takes any event, False none.
SchemaLike = str | Mapping[str, Any] | Path | bool

#: How Jackson's own module (``jackson-module-jsonSchema``) names the draft 3 schemas that it makes.
_JACKSON: Final = "urn:jsonschema:"

_LONGEST_REASON: Final = 300

#: What jsonschema lets escape for numbers that Python's floats cannot hold, and for schemas that it does not look into.
_UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


class JsonSchema:
    """A schema, checked and compiled; ``text`` is its compact JSON.

    Raises :class:`SchemaError` for a schema that is none, refers to something outside itself, or has a pattern whose
    time cannot be bounded (look-around, back references).
    """

    def __init__(self, schema: SchemaLike) -> None:
        try:
            self.definition = _definition(schema)
            self.text = json.dumps(self.definition, separators=(",", ":"))
            self._validator = _compile(self.definition)
        except RecursionError as error:
            raise SchemaError("the JSON schema is nested too deeply") from error

    def check(self, value: Any) -> None:
        """Raise :class:`DeserializationError`, with the field's path and what is wrong there, for an invalid value.

        What a check may cost is bounded: see ``MAX_STEPS``.
        """
        try:
            with budget():
                error = next(self._validator.iter_errors(value), None)
        except RecursionError as unbounded:
            raise LimitExceededError("nested too deeply for its JSON schema") from unbounded
        except _UNEXPECTED as odd:
            raise DeserializationError(f"its JSON schema cannot be applied to it: {odd}"[:_LONGEST_REASON]) from odd
        if error is not None:
            raise DeserializationError(
                f"not valid by its JSON schema: {error.message[:_LONGEST_REASON]}", field_path=error.json_path
            )


def _definition(schema: SchemaLike) -> Mapping[str, Any] | bool:
    if isinstance(schema, Mapping | bool):
        return schema
    if not isinstance(schema, str | Path):
        raise SchemaError(f"a JSON schema is an object, true or false, not {schema!r:.80}")
    try:
        inline = isinstance(schema, str) and (schema.lstrip().startswith("{") or schema.strip() in ("true", "false"))
        definition = json.loads(str(schema) if inline else Path(schema).read_text("utf-8"))
    except OSError as error:
        raise SchemaError(f"the JSON schema is neither JSON nor the path of a file: {error}") from error
    except ValueError as error:
        raise SchemaError(f"the JSON schema is not JSON: {error}") from error
    if not isinstance(definition, dict | bool):
        raise SchemaError("a JSON schema is an object, true or false")
    return definition


def _compile(definition: Mapping[str, Any] | bool) -> Any:
    draft = _draft(definition)
    try:
        # Without formats: what a pattern is, RE2 decides.
        draft.check_schema(definition, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        raise SchemaError(f"not a JSON schema: {error.message[:_LONGEST_REASON]} (at {error.json_path})") from error
    if draft is jsonschema.Draft3Validator:
        definition = _with_listed_extends(definition)
    specification = referencing.jsonschema.specification_with(draft.META_SCHEMA["$schema"])
    root = specification.create_resource(definition)
    try:
        keywords = set(_keywords(REGISTRY.resolver_with_root(root), root))
    except referencing.exceptions.Unresolvable as error:
        reason = (
            f"the JSON schema refers to something that is not in it ({error.ref}); other documents are never fetched"
        )
        raise SchemaError(reason) from error
    if keywords >= {"patternProperties", "unevaluatedProperties"}:
        raise SchemaError("patternProperties and unevaluatedProperties in one JSON schema are not supported")
    # This registry has the drafts' own schemas and no way to fetch others, which jsonschema's default has.
    return bounded(draft)(definition, registry=REGISTRY)


def _with_listed_extends(schema: Any) -> Any:
    """A schema of draft 3 whose ``extends`` is a list everywhere, as the library looks for references in it."""
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


#: Keywords of draft 3 whose values are schemas, or lists that may have some; and those with schemas by name.
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
    """Keywords of a schema and the schemas in it; every reference and pattern is looked at on the way."""
    contents = resource.contents
    if isinstance(contents, Mapping):
        yield from contents
        for keyword in ("$ref", "$dynamicRef"):
            if isinstance(contents.get(keyword), str):
                resolver.lookup(contents[keyword])
        for pattern in (contents.get("pattern"), *(contents.get("patternProperties") or ())):
            if isinstance(pattern, str):
                check_pattern(pattern)
    for inner in resource.subresources():
        yield from _keywords(resolver.in_subresource(inner), inner)
