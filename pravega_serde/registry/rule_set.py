"""Rules, tags and properties that a Confluent registry stores with a schema.

The client of the registry runs the rules, not the registry. Their meaning follows Confluent's clients, with one
exception: a rule that cannot be run is an error, also if its action on failure is ``NONE``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pravega_serde.errors import RegistryProtocolError, UnsupportedRuleError

#: Direction in which rules run.
Mode = Literal["WRITE", "READ", "UPGRADE", "DOWNGRADE"]
#: Group of rules: on values, on the bytes of payloads, or between versions of a schema.
Phase = Literal["domain", "encoding", "migration"]

_PHASES: Final[Mapping[str, Phase]] = {
    "domainRules": "domain",
    "encodingRules": "encoding",
    "migrationRules": "migration",
}
#: Direction -> name for it and its reverse.
_BOTH: Final[Mapping[str, str]] = {
    "WRITE": "WRITEREAD",
    "READ": "WRITEREAD",
    "UPGRADE": "UPDOWN",
    "DOWNGRADE": "UPDOWN",
}
_MODES: Final = frozenset({*_BOTH, *_BOTH.values()})
#: Directions in which rules run in the order of the schema.
_FORWARD: Final = frozenset({"WRITE", "UPGRADE"})
_ENABLED: Final = frozenset({"ALL", "CLIENT"})
#: Actions after a rule. The dead-letter queue is that of the reader, so both errors are malformed records.
_ACTIONS: Final = frozenset({"NONE", "ERROR", "DLQ"})


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule of a schema."""

    name: str
    kind: str
    """``CONDITION`` or ``TRANSFORM``."""
    mode: str
    type: str
    """Name of the executor, in capitals."""
    tags: frozenset[str] = frozenset()
    params: Mapping[str, str] = field(default_factory=dict, hash=False)
    expr: str = ""
    doc: str = ""
    on_success: str = ""
    on_failure: str = ""
    disabled: bool = False

    @property
    def title(self) -> str:
        """Name and type, for errors."""
        return f"the rule {self.name!r} of type {self.type or 'none'}"

    def runs(self, mode: Mode) -> bool:
        """Return True if the rule runs in a mode."""
        return self.mode in (mode, _BOTH[mode])

    def fails_on(self, outcome: Literal["success", "failure"], mode: Mode) -> bool:
        """Return True if an outcome of the rule is an error. Raises :class:`UnsupportedRuleError` for other actions."""
        given = self.on_success if outcome == "success" else self.on_failure
        if self.mode == _BOTH[mode] and "," in given:
            given = given.split(",")[mode not in _FORWARD]
        action = given.strip().upper() or ("NONE" if outcome == "success" else "ERROR")
        if action not in _ACTIONS:
            raise UnsupportedRuleError(f"{self.title} has the action {action!r} on {outcome}, which is not known here")
        return action != "NONE"

    def repeats(self, other: Rule) -> bool:
        """Return True if another rule transforms the same fields in the same way: only one of them runs."""
        same = (self.kind, self.mode, self.type, self.tags) == (other.kind, other.mode, other.type, other.tags)
        return same and bool(self.tags) and self.kind == "TRANSFORM"


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules of a schema, with its metadata. Falsy if there is no rule."""

    rules: Mapping[Phase, tuple[Rule, ...]] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Tags by a pattern of full names of fields."""

    def __bool__(self) -> bool:
        return any(self.rules.values())

    def of(self, phase: Phase, mode: Mode) -> list[Rule]:
        """Return the enabled rules of a phase in the order in which they run: reversed to read and to downgrade."""
        found = self.rules.get(phase, ())
        return [each for each in (found if mode in _FORWARD else reversed(found)) if each.runs(mode)]

    def without(self, types: Container[str]) -> RuleSet:
        """Return the rules of other types."""
        kept = {phase: tuple(each for each in found if each.type not in types) for phase, found in self.rules.items()}
        return replace(self, rules=kept)

    def tags_of(self, full_name: str) -> frozenset[str]:
        """Return the tags that the metadata has for a field."""
        found = [tags for pattern, tags in self.tags.items() if _matches(pattern, full_name)]
        return frozenset().union(*found)

    def parameter(self, rule: Rule, name: str) -> str | None:
        """Return a parameter of a rule, by default the property of the schema."""
        return rule.params.get(name, self.properties.get(name))

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> RuleSet:
        """Parse the members ``metadata`` and ``ruleSet`` of a schema."""
        metadata, rules = _object(body, "metadata"), _object(body, "ruleSet")
        enabled = str(rules.get("enableAt") or "ALL").upper() in _ENABLED
        found: dict[Phase, tuple[Rule, ...]] = {}
        for name, given in rules.items():
            if not isinstance(given, list) or not given:
                continue
            parsed = [_rule(each) for each in given]
            if name not in _PHASES:
                raise UnsupportedRuleError(f"{parsed[0].title} is one of the {name}, which are not known here")
            if enabled:
                found[_PHASES[name]] = tuple(each for each in parsed if not each.disabled)
        tags = {pattern: frozenset(map(str, each or ())) for pattern, each in _object(metadata, "tags").items()}
        return cls(found, _texts(_object(metadata, "properties")), tags)


def _rule(given: Any) -> Rule:
    if not isinstance(given, Mapping):
        raise RegistryProtocolError("the registry's answer has a rule that is not an object")
    texts = {name: str(given.get(name) or "") for name in ("name", "kind", "mode", "type", "expr", "doc")}
    made = Rule(
        **{**texts, **{name: texts[name].upper() for name in ("kind", "mode", "type")}},
        tags=frozenset(map(str, given.get("tags") or ())),
        params=_texts(_object(given, "params")),
        on_success=str(given.get("onSuccess") or ""),
        on_failure=str(given.get("onFailure") or ""),
        disabled=bool(given.get("disabled")),
    )
    if made.disabled or (made.mode in _MODES and made.kind in ("CONDITION", "TRANSFORM")):
        return made
    raise UnsupportedRuleError(
        f"{made.title} has the mode {made.mode or 'none'} and the kind {made.kind or 'none'}, which are not known here"
    )


def _object(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = body.get(name) or {}
    if not isinstance(found, Mapping):
        raise RegistryProtocolError(f"the registry's answer has no object for {name!r}")
    return found


def _texts(found: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in found.items() if value is not None}


def _matches(pattern: str, full_name: str) -> bool:
    """Return True if a pattern matches: ``*`` and ``?`` within a name, ``**`` across names."""
    parts = [
        {"**": ".*", "*": r"[^.]*", "?": r"[^.]"}.get(part) or re.escape(part)
        for part in re.split(r"(\*\*|\*|\?)", pattern.replace("**.*", "**"))
    ]
    return re.fullmatch("".join(parts), full_name) is not None


def without_repeats(rules: Sequence[Rule], mode: Mode) -> list[Rule]:
    """Return the rules of fields that run: of those that repeat each other, the first one of the schema."""
    return [
        rule
        for index, rule in enumerate(rules)
        if not any(map(rule.repeats, rules[:index] if mode == "WRITE" else rules[index + 1 :]))
    ]
