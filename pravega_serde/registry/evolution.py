"""Schema evolution: check a new schema against a group's policy, and derive the next schema from columns.

The server checks only Avro. All checks compare two schemas of one format with :meth:`RegistryFormat.faults`. It returns
the values of a writer that a reader cannot read, or reads as another value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from pravega_serde.errors import SchemaError
from pravega_serde.registry.contract import (
    Compatibility,
    CompatibilityRule,
    SchemaInfo,
    SchemaWithVersion,
    SerializationFormat,
)
from pravega_serde.registry.formats import event_type, format_named, part_of
from pravega_serde.registry.interface import EventType

Known = SchemaInfo | SchemaWithVersion

_BACKWARD: Final = CompatibilityRule("Backward")
_FORWARD: Final = CompatibilityRule("Forward")
_BACKWARD_TRANSITIVE: Final = CompatibilityRule("BackwardTransitive")
_FORWARD_TRANSITIVE: Final = CompatibilityRule("ForwardTransitive")
# Policy -> its two directions.
_RULES: Final = {
    "Backward": (_BACKWARD, None),
    "BackwardTransitive": (_BACKWARD_TRANSITIVE, None),
    "Forward": (None, _FORWARD),
    "ForwardTransitive": (None, _FORWARD_TRANSITIVE),
    "Full": (_BACKWARD, _FORWARD),
    "FullTransitive": (_BACKWARD_TRANSITIVE, _FORWARD_TRANSITIVE),
}


def check_compatibility(old: Known | Sequence[Known], new: SchemaInfo, policy: Compatibility) -> list[str]:
    """Return readable reasons why ``new`` may not follow ``old`` under a policy. The list is empty if it may.

    ``old`` is the last schema of the type, or all of them in order. ``backward`` reasons name the old schema's events
    that the new schema cannot read; ``forward`` reasons name the opposite. An event that is readable only as another
    value is a reason too. Avro, Protobuf and JSON schemas are parsed. Schemas of other formats are compared as bytes.

    Raises SchemaError for a schema that cannot be parsed and for an unknown policy. A rule "since a version" also
    raises SchemaError if ``old`` has no versions.
    """
    known: list[Known] = [old] if isinstance(old, Known) else list(old)
    if not known or policy.policy == "AllowAny":
        return []
    if policy.policy == "DenyAll":
        return ["the policy is DenyAll: the group accepts no other schema"]
    backward, forward = _rules(policy)
    reasons = [
        *(f"backward: {fault}" for one in _covered(known, backward) for fault in _faults(one, new, added=False)),
        *(f"forward: {fault}" for one in _covered(known, forward) for fault in _faults(new, one, added=True)),
    ]
    return list(dict.fromkeys(reasons))


def _rules(policy: Compatibility) -> tuple[CompatibilityRule | None, CompatibilityRule | None]:
    if policy.policy == "Advanced":
        return policy.backward, policy.forward
    if policy.policy not in _RULES:
        raise SchemaError(f"the policy {policy.policy!r} is unknown; known policies: {', '.join(sorted(_RULES))}")
    return _RULES[policy.policy]


def _covered(known: Sequence[Known], rule: CompatibilityRule | None) -> list[SchemaInfo]:
    """Return the schemas that a rule compares with, the last one first."""
    if rule is None:
        return []
    last_first = list(reversed(known))
    if rule.name.endswith("Till"):
        last_first = [found for found in last_first if _since(found, rule)]
    elif not rule.name.endswith("Transitive"):
        last_first = last_first[:1]
    return [found if isinstance(found, SchemaInfo) else found.schema for found in last_first]


def _since(found: Known, rule: CompatibilityRule) -> bool:
    if isinstance(found, SchemaInfo) or rule.version is None:
        raise SchemaError(f"the rule {rule.name} can be checked only on schemas with their versions")
    return found.version.version >= rule.version.version


def _faults(writer: SchemaInfo, reader: SchemaInfo, *, added: bool) -> Iterator[str]:
    """Return the reasons of one direction. ``added`` is true if the writer's schema is the newer one."""
    if writer.format != reader.format:
        yield f"the format changes from {writer.format.full_type_name} to {reader.format.full_type_name}"
    elif (part := part_of(writer.format)) is not None:
        yield from part.faults(writer, reader, added=added)
    elif writer.data != reader.data:
        yield f"schemas of the format {writer.format.full_type_name} cannot be compared, and these differ"


def column_schema(
    columns: pa.Schema,
    *,
    format: str | SerializationFormat,
    type: str,
    after: SchemaInfo | None = None,
) -> EventType:
    """Return the type of events that follows from columns. ``after`` is the latest schema of that type, if any.

    Protobuf fields keep their numbers from ``after``, and the numbers of removed fields stay reserved. Raises
    :class:`SchemaError` for columns that the format cannot express. For formats that the registry does not compare, it
    also raises if events of one schema are not readable with the other.
    """
    wanted = format_named(format)
    part = part_of(wanted)
    if part is None or after is None or after.format != wanted:
        return event_type(columns, format=wanted, type=type)
    made = part.derived(columns, type, after)
    if not part.compared_by_server and made.info.data != after.data:
        reasons = check_compatibility(after, made.info, Compatibility.FULL)
        if reasons:
            raise SchemaError(
                f"the schema of the columns is incompatible with the latest schema of {made.info.type!r}: "
                f"{'; '.join(reasons)}"
            )
    return made
