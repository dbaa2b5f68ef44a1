"""Reads with a schema registry: the schemas of a query, and the deserializer of their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pravega_connector.errors import ConfigError
from pravega_connector.rows.options.source import SourceOptions
from pravega_serde import registry
from pravega_serde.errors import SchemaError

if TYPE_CHECKING:
    from pravega_serde.registry.stores import SchemaStore


def latest_ids(options: SourceOptions) -> tuple[int, ...] | None:
    """Return the ids of the latest schemas of the types that the options select.

    Return None if the options have a schema. Raises RegistryErrors, SchemaError if there are no schemas, ConfigError.
    """
    if options.given_schema(reading=True) is not None:
        return None
    return tuple(each.version.id for each in _Group(options).latest())


def registry_reader(
    options: SourceOptions, wanted: pa.StructType | None, ids: Sequence[int] | None
) -> registry.RegistryDeserializer:
    """Return the deserializer of a query's events.

    ``wanted`` are the columns that ``.schema(…)`` names. ``ids`` are the schemas of the query, if they are already
    fixed.

    Raises RegistryErrors, SchemaError for schemas that do not fit, ConfigError.
    """
    group = _Group(options)
    given = options.given_schema(reading=True)
    if given is not None:
        # A reader of an anonymous format (JSON) needs no name: it accepts all types.
        name = given[1] or ("" if _is_anonymous(options) else None)
        schemas: list[Any] = [registry.event_type(given[0], format=options.format, type=name)]
    elif ids is not None:
        schemas = _resolved([(group.store.schema(each, options.registry_type), each) for each in ids], wanted)
    elif wanted is not None and _is_anonymous(options) and not group.all_latest():
        schemas = [pa.schema(list(wanted))]  # names and types of columns are sufficient
    else:
        schemas = _resolved([(each.schema, each.version.id) for each in group.latest()], wanted)
    return registry.deserializer(
        group.config,
        group=group.name,
        also=options.also_registries(options.timeout_ms / 1000),
        schemas=schemas,
        format=options.format,
        type=options.registry_type,
        evolution="corrupt" if options.schema_evolution == "corrupt" else "resolve",
        unknown_ids="corrupt" if options.unknown_encoding_ids == "corrupt" else "fail",
        # Do not check that successive schemas of the group can read each other's events.
        check_readable=given is not None,
        fail_on_codec_mismatch=options.fail_on_codec_mismatch,
        codecs=options.codecs or (),
        **options.registry_contract(),
    )


def _is_anonymous(options: SourceOptions) -> bool:
    return options.format is not None and registry.registry_format(options.format).anonymous


@dataclass(frozen=True)
class _Group:
    """Group in the registry that the options select."""

    options: SourceOptions

    def __post_init__(self) -> None:
        version = self.options.schema_version
        if version is not None and self.options.given_schema(reading=True) is not None:
            raise ConfigError("option 'schema_version' is a version in the registry: omit it, or omit the schema")
        if version and self.config.kind != "confluent":
            raise ConfigError("only schemas of a Confluent registry have metadata: set 'schema_version' to 'latest'")

    @property
    def config(self) -> registry.RegistryConfig:
        return self.options.registry_config(self.options.timeout_ms / 1000)

    @property
    def store(self) -> SchemaStore:
        return registry.stores.store_of(
            registry.settings.serializer_config(self.config, self.name, self.options.registry_contract())
        )

    @property
    def name(self) -> str:
        return self.options.registry_group()

    def all_latest(self) -> list[registry.SchemaWithVersion]:
        return self._latest(None)

    def _latest(self, wanted: str | None) -> list[registry.SchemaWithVersion]:
        found = self.store.latest(wanted, self.options.schema_version)
        return sorted(found, key=lambda each: (each.schema.type, each.version.format))

    def latest(self) -> list[registry.SchemaWithVersion]:
        """Return the latest schemas of the types that the options select, ordered by type name."""
        wanted = self.options.registry_type
        chosen = self._latest(wanted)
        if not chosen:
            found = self.all_latest()
            known = ", ".join(each.schema.type for each in found)
            raise SchemaError(
                f"the group {self.name!r} has no schema of the type {wanted!r}; it has: {known}"
                if found
                else f"the group {self.name!r} has no schema yet; register a schema, or set it as an option"
            )
        for each in chosen:
            if self.options.format not in (None, each.schema.format.name.lower()):
                raise ConfigError(
                    f"option 'format' is {self.options.format!r}, but in the registry {each.schema.type!r} is "
                    f"{each.schema.format.name}: omit 'format', or choose another type with 'registry_type'"
                )
        return chosen


def _resolved(
    registered: list[tuple[registry.SchemaInfo, int]], wanted: pa.StructType | None
) -> list[registry.EventType]:
    """Return the types to read as: the schemas with these ids.

    A single schema is combined with the columns of ``.schema(…)`` if these ask for more.
    """
    made = []
    for schema, schema_id in registered:
        part = None if wanted is None or len(registered) > 1 else registry.part_of(schema.format)
        type = registry.event_type(schema) if part is None or wanted is None else part.reader_for(schema, wanted)
        made.append(replace(type, registered=schema_id))
    return made
