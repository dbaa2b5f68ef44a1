"""Migration rules: payloads of one version of a schema, changed into payloads of another version.

A payload is decrypted with the rules of its writer, and changed by the rules of each version in between. The result is
written with the schema of the reader's version, whose other rules then run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pravega_serde.errors import DeserializationError, RegistryNotFoundError, SerializationError
from pravega_serde.registry.contract import SchemaInfo
from pravega_serde.registry.interface import ChangeOf
from pravega_serde.registry.payload_rules import EXPRESSIONS, NoResultError, PayloadRules, RuleRuns
from pravega_serde.registry.rule_set import Mode, RuleSet

_ENCRYPTION: Final = frozenset({"ENCRYPT", "ENCRYPT_PAYLOAD"})


class _PlainValues:
    """Values between two versions: mappings, lists and scalars without a schema."""

    def read(self, payload: Any) -> Any:
        return payload

    write = plain = exported = imported = read

    def changed(self, change_of: ChangeOf, *, decrypts: bool = False) -> Callable[[Any], Any]:
        raise NotImplementedError  # rules of fields do not run between versions


class MigrationStep(RuleRuns):
    """Rules between two versions that follow each other. Raises as :class:`PayloadRules`."""

    values = _PlainValues()

    def __init__(self, rules: RuleSet, mode: Mode, subject: str) -> None:
        super().__init__(rules, mode, subject)
        self._runs = list(self._compiled("migration", {"CEL", "JSONATA"}))

    def __call__(self, value: Any) -> Any:
        """Return the changed value. Raises :class:`DeserializationError` for an event that a rule refuses."""
        for rule, apply in self._runs:
            value = self._applied(rule, apply, value)
        return value

    def _made(self, before: Any, after: Any) -> Any:
        if after is None:
            raise NoResultError
        return after


def migration_steps(
    written: int, wanted: int, subject: str, rules_of: Callable[[int], Mapping[str, Any]]
) -> list[MigrationStep]:
    """Return the steps from one version of a subject to another. ``rules_of`` returns the contract of a version.

    Raises :class:`RegistryNotFoundError` if a version in between is missing, except if no other one has rules.
    """
    mode: Mode = "UPGRADE" if written < wanted else "DOWNGRADE"
    low, high = sorted((written, wanted))
    numbers = range(low + 1, high + 1)
    steps, missing = list[MigrationStep](), list[int]()
    for number in numbers if mode == "UPGRADE" else reversed(numbers):
        try:
            rules = RuleSet.from_json(rules_of(number))
        except RegistryNotFoundError:
            missing.append(number)
            continue
        if rules.of("migration", mode):
            steps.append(MigrationStep(rules, mode, subject))
    if steps and missing:
        raise RegistryNotFoundError(
            f"the registry does not have version {missing[0]} of subject {subject!r}, so events of version {written} "
            f"cannot be migrated to version {wanted}: a version that is deleted permanently has no rules"
        )
    return steps


class PayloadMigration:
    """Migration of payloads into those of another schema. Call it with a payload.

    ``make`` returns the rules of a schema to read.
    """

    def __init__(
        self,
        steps: list[MigrationStep],
        writer: tuple[SchemaInfo, RuleSet],
        reader: tuple[SchemaInfo, RuleSet],
        make: Callable[[RuleSet, SchemaInfo], PayloadRules],
    ) -> None:
        #: Schema of the returned payloads.
        self.schema = reader[0]
        self._steps = steps
        # Encrypted values are opened by the rules that sealed them, and before an expression can copy them elsewhere.
        self._before = make(writer[1].without(EXPRESSIONS), writer[0])
        kept = reader[1].without(_ENCRYPTION).rules.get("domain", ())
        self._after = make(replace(reader[1], rules={"domain": kept}), reader[0])

    def __call__(self, payload: bytes) -> bytes:
        """Return the payload of the reader's version. Raises as :class:`PayloadRules`."""
        source, target = self._before.values, self._after.values
        value = source.exported(source.read(self._before(payload)))
        for step in self._steps:
            value = step(value)
        try:
            made = target.imported(value)
        except SerializationError as error:
            raise DeserializationError(
                f"the migration rules left a value that does not fit the schema: {error.reason}",
                field_path=error.field_path,
            ) from error
        return self._after(made)
