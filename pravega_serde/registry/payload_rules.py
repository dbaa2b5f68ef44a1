"""Rules of a registered schema, applied to payloads before they are read and after they are written.

A payload is read with its schema, changed by the rules, and written with its schema. So rules are the same for all
forms of values, for rows and for columns. Rules that encrypt whole payloads do not parse them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa

from pravega_serde.encryption.keys import KeyService
from pravega_serde.errors import (
    DecryptionError,
    DeserializationError,
    EncryptionKeyError,
    MissingExtraError,
    PravegaError,
    RegistryError,
    SchemaError,
    SerializationError,
    UnsupportedRuleError,
)
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.expressions import cel_function, is_deterministic, jsonata_function
from pravega_serde.registry.field_encryption import Requests, RuleCipher, UnsealedError
from pravega_serde.registry.formats import part_of
from pravega_serde.registry.interface import RuledField, RuledValues, UnfitValueError
from pravega_serde.registry.rule_set import Mode, Phase, Rule, RuleSet, without_repeats

_log: Final = logging.getLogger(__name__)

#: Types of fields that rules of fields see.
_PRIMITIVE: Final = frozenset({"STRING", "BYTES", "INT", "LONG", "FLOAT", "DOUBLE", "BOOLEAN", "NULL"})
_ENCRYPTED: Final = frozenset({"STRING", "BYTES"})
#: Types of rules that check or replace a value with an expression.
EXPRESSIONS: Final = frozenset({"CEL", "CEL_FIELD", "JSONATA"})
#: Type of a field -> types of a result that may replace its values.
_RESULTS: Final[Mapping[str, tuple[type, ...]]] = {
    "STRING": (str,),
    "BYTES": (bytes,),
    "BOOLEAN": (bool,),
    **dict.fromkeys(("INT", "LONG", "FLOAT", "DOUBLE"), (int, float, Decimal)),
}
#: Errors that no event is at fault for.
_NOT_OF_THE_EVENT: Final = (RegistryError, UnsupportedRuleError, MissingExtraError, SchemaError, EncryptionKeyError)
#: Applies a rule to a value, and returns the new value. Raises any error if the rule fails.
Apply = Callable[[Any], Any]


class RuleRuns:
    """Rules of a schema in one direction: which of them run, and what their outcomes are."""

    def __init__(self, rules: RuleSet, mode: Mode, subject: str) -> None:
        self._rules, self._mode, self._subject = rules, mode, subject
        #: True if equal values stay equal.
        self.is_deterministic = True

    @property
    def values(self) -> RuledValues:
        """Values of the schema."""
        raise NotImplementedError

    def _applied(self, rule: Rule, apply: Apply, value: Any) -> Any:
        try:
            made = apply(value)
        except _NOT_OF_THE_EVENT:
            raise
        except Exception as error:
            if not rule.fails_on("failure", self._mode):
                _log.warning("%s failed, and continues by its action on failure: %s", rule.title, type(error).__name__)
                return value
            if isinstance(error, DecryptionError):
                raise
            # The traceback of another package's error may have values of fields in its text.
            cause = error if isinstance(error, PravegaError) else None
            raise self._refusal(f"{rule.title} failed: {_reason(error)}") from cause
        if rule.fails_on("success", self._mode):
            raise self._refusal(f"{rule.title} succeeded, and its action on success is an error")
        return made

    @property
    def _refusal(self) -> type[DeserializationError] | type[SerializationError]:
        return SerializationError if self._mode == "WRITE" else DeserializationError

    def _compiled(self, phase: Phase, known: set[str]) -> Iterator[tuple[Rule, Apply]]:
        rules = self._rules.of(phase, self._mode)
        fields = [each for each in rules if each.type in ("ENCRYPT", "CEL_FIELD")]
        kept = without_repeats(fields, self._mode)
        for rule in rules:
            if rule.type not in known:
                raise UnsupportedRuleError(
                    f"{rule.title} of {self._subject!r} cannot be run here, so its events are neither read nor "
                    f"written; known types of {phase} rules: {', '.join(sorted(known))}"
                )
            for outcome in ("success", "failure"):
                rule.fails_on(outcome, self._mode)  # raises for an unknown action
            if all(rule is not each for each in fields) or any(rule is each for each in kept):
                if rule.type in EXPRESSIONS:
                    self.is_deterministic &= is_deterministic(rule)
                yield rule, getattr(self, f"_{rule.type.lower()}")(rule)

    def _cel(self, rule: Rule) -> Apply:
        run = cel_function(rule)
        return self._expression(rule, lambda plain, otherwise: run({"message": plain}, otherwise))

    def _jsonata(self, rule: Rule) -> Apply:
        run = jsonata_function(rule)
        return self._expression(rule, lambda plain, _: run(plain))

    def _expression(self, rule: Rule, run: Callable[[Any, Any], Any]) -> Apply:
        """Return the check or the change of a rule. ``run`` has a value, and the result if a guard is false."""
        values = self.values
        if rule.kind == "CONDITION":

            def check(value: Any) -> Any:
                _check(rule, run(values.plain(value), True))
                return value

            return check
        return lambda value: self._made(value, run(values.plain(value), value))

    def _made(self, before: Any, after: Any) -> Any:
        """Return the value of an expression as the schema has it."""
        if after is before:
            return before
        _check_result(self.values.plain(before), after)
        return self.values.read(self.values.write(after))


class PayloadRules(RuleRuns):
    """Rules of a schema in one direction. Call it with a payload.

    Raises :class:`UnsupportedRuleError` for a rule that cannot be run, and :class:`MissingExtraError`.
    """

    def __init__(
        self,
        rules: RuleSet,
        mode: Mode,
        info: SchemaInfo,
        *,
        subject: str,
        requests: Requests,
        key_service: KeyService | str | None,
    ) -> None:
        super().__init__(rules, mode, subject)
        self._info, self._requests, self._key_service = info, requests, key_service
        _ = self._of_values, self._of_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        more: dict[str, Any] = {"subject": self._subject, "requests": self._requests, "key_service": self._key_service}
        return partial(PayloadRules, self._rules, self._mode, self._info, **more), ()

    def __bool__(self) -> bool:
        return bool(self._of_values or self._of_bytes)

    def __call__(self, payload: bytes) -> bytes:
        """Return the payload to read, or to write.

        Raises :class:`DeserializationError` or :class:`SerializationError` for an event that a rule refuses, and
        :class:`EncryptionKeyError` and RegistryErrors for keys that are not available.
        """
        if self._mode == "READ":
            return self._on_values(self._on_bytes(payload))
        return self._on_bytes(self._on_values(payload))

    def column(self, payloads: pa.BinaryArray) -> pa.BinaryArray:
        """Return a column of payloads to write. Nulls stay. Raises :class:`SerializationError` with the row."""
        made = list[bytes | None]()
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                made.append(None if payload is None else self(payload))
            except SerializationError as error:
                raise SerializationError(error.reason, field_path=error.field_path, row=row) from error
        return pa.array(made, pa.binary())

    def _on_bytes(self, payload: bytes) -> bytes:
        for rule, apply in self._of_bytes:
            payload = self._applied(rule, apply, payload)
        return payload

    def _on_values(self, payload: bytes) -> bytes:
        if not self._of_values:
            return payload
        value = self.values.read(payload)
        for rule, apply in self._of_values:
            value = self._applied(rule, apply, value)
        try:
            return self.values.write(value)
        except SerializationError as error:
            if self._mode == "WRITE":
                raise
            raise DeserializationError(
                f"the rules left a value that does not fit the schema: {error.reason}", field_path=error.field_path
            ) from error

    # ---- compiled rules ----

    @cached_property
    def values(self) -> RuledValues:
        """Values of the schema."""
        part = part_of(self._info.format)
        if part is None:
            raise UnsupportedRuleError(f"rules of the format {self._info.format.full_type_name} cannot be run")
        return part.ruled_values(self._info, self._rules.tags_of)

    @cached_property
    def _of_values(self) -> list[tuple[Rule, Apply]]:
        return list(self._compiled("domain", {"ENCRYPT", *EXPRESSIONS}))

    @cached_property
    def _of_bytes(self) -> list[tuple[Rule, Apply]]:
        return list(self._compiled("encoding", {"ENCRYPT_PAYLOAD"}))

    def _cipher(self, rule: Rule) -> RuleCipher:
        if rule.kind != "TRANSFORM":
            raise UnsupportedRuleError(f"{rule.title} is of the kind {rule.kind}, but encryption is a TRANSFORM")
        cipher = RuleCipher(rule, self._rules, self._subject, self._requests, self._key_service)
        self.is_deterministic &= cipher.is_deterministic
        return cipher

    def _encrypt_payload(self, rule: Rule) -> Apply:
        cipher = self._cipher(rule)
        return cipher.seal if self._mode == "WRITE" else cipher.open

    def _encrypt(self, rule: Rule) -> Apply:
        cipher, writes = self._cipher(rule), self._mode == "WRITE"

        def change_of(field: RuledField) -> Callable[[Any, Any], Any] | None:
            if not _selects(rule, field) or field.type == "NULL":
                return None
            if field.type not in _ENCRYPTED:
                if not writes:
                    return None
                raise UnsupportedRuleError(
                    f"{rule.title} cannot encrypt the field {field.full_name!r} of type {field.type}: only strings and "
                    "bytes are encrypted"
                )
            text, data = (cipher.seal_text, cipher.seal) if writes else (cipher.open_text, cipher.open)
            change: Callable[[Any], Any] = text if field.type == "STRING" else data

            def changed(value: Any, _owner: Any) -> Any:
                try:
                    return change(value)
                except UnsealedError as error:  # it may be a value of another part of the schema
                    raise UnfitValueError(error.reason, field.full_name) from error
                except DecryptionError as error:
                    raise DecryptionError(error.reason, field_path=field.full_name) from error

            return changed

        change_fields = self.values.changed(change_of, decrypts=not writes)
        if writes:
            return change_fields

        def decrypted(value: Any) -> Any:
            try:
                return change_fields(value)
            except UnfitValueError as error:
                raise DecryptionError(error.reason, field_path=error.field_path) from error

        return decrypted

    def _cel_field(self, rule: Rule) -> Apply:
        run, values = cel_function(rule), self.values
        condition = rule.kind == "CONDITION"

        def change_of(field: RuledField) -> Callable[[Any, Any], Any] | None:
            kind = field.type.partition(" ")[0]
            if not _selects(rule, field) or kind not in _PRIMITIVE:
                return None
            fixed = {"fullName": field.full_name, "name": field.name, "typeName": kind, "tags": sorted(field.tags)}

            def changed(value: Any, owner: Any) -> Any:
                made = run({**fixed, "value": value, "message": values.plain(owner)}, True if condition else value)
                if condition:
                    _check(rule, made, field.full_name)
                    return value
                if made is not value and kind == field.type and not isinstance(made, _RESULTS.get(kind, object)):
                    raise _ResultError(f"the expression returns {_name_of(made)} for the field {field.full_name!r}")
                return made

            return changed

        return self.values.changed(change_of)


class _RefusedError(Exception):
    """Condition that an event does not meet."""


class _ResultError(Exception):
    """Result of an expression that cannot replace the value."""


class NoResultError(_ResultError):
    """No result of an expression that replaces a value."""

    def __init__(self) -> None:
        super().__init__(f"the expression returns {_name_of(None)}, which cannot replace the value")


def _check_result(before: Any, after: Any) -> None:
    """Raise an error for no result, and for another kind of value: formats do not check all that they write."""
    for kind in (Mapping, list):
        if isinstance(before, kind) and not isinstance(after, kind):
            raise _ResultError(f"the expression returns {_name_of(after)}, which cannot replace the value")


def _name_of(value: Any) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _check(rule: Rule, result: Any, field: str = "") -> None:
    if not result:
        raise _RefusedError(f"{field}: {rule.doc or rule.expr}" if field else rule.doc or rule.expr)


def _selects(rule: Rule, field: RuledField) -> bool:
    return not rule.tags or not rule.tags.isdisjoint(field.tags)


def _reason(error: Exception) -> str:
    if isinstance(error, _RefusedError):
        return f"the event does not meet {error}"
    if isinstance(error, _ResultError):
        return str(error)
    if isinstance(error, PravegaError | UnfitValueError) and (reason := str(getattr(error, "reason", ""))):
        return reason
    return type(error).__name__
