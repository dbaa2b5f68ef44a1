"""Writes to a stream whose schemas are in a schema registry: choice of schema, and serializer of the columns."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from pravega_connector.errors import ColumnTypeError, ConfigError
from pravega_connector.rows.options.sink import SinkOptions
from pravega_serde import registry
from pravega_serde.errors import RegistryNotFoundError, SchemaError
from pravega_serde.format_table import registry_formats
from pravega_serde.serializer_interface import Serializer

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


@dataclass(frozen=True)
class RegistryEncoding:
    """Serializer of a DataFrame's columns."""

    serializer: Serializer[Any]
    single: bool
    """True if the only column is the whole event, not a field of a record."""


# A streaming query creates a writer for each micro-batch. Its schema stays the same, and the registry is called once.
@functools.lru_cache(maxsize=64)
def registry_encoding_of_query(options: SinkOptions, columns: pa.Schema) -> RegistryEncoding:
    """Return :func:`registry_encoding`, once for each query and process."""
    return registry_encoding(options, columns)


def registry_encoding(options: SinkOptions, columns: pa.Schema) -> RegistryEncoding:
    """Return the serializer of the columns of a DataFrame.

    The schema is the first one of these:

    - the schema in the options,
    - the latest schema of the type that the options select, if it fits,
    - with ``register_schema``, a schema that is derived from the columns.

    Columns that have the names of the types of a group, one struct each, are written as events of those types.

    Raises RegistryErrors, ConfigError, ColumnTypeError, SchemaError, SerdeError for settings that Java rejects.
    """
    writer = _Writer(options, columns)
    given = options.given_schema(reading=False)
    if given is not None:
        return writer.of(writer.given(*given))
    latest = writer.latest()
    if len(latest) > 1 and options.registry_type is None:
        return writer.of_several(latest)
    wanted = [each for each in latest if options.registry_type in (None, each.type)]
    return writer.of(writer.chosen(wanted[0] if wanted else None))


def registry_serializer(options: SinkOptions) -> Serializer[Any]:
    """Return the serializer of columns that are each a whole event, before their types are known.

    The schema is the one in the options, otherwise the latest of the type that they select. Several types are a struct
    with a member for each. Raises the errors of :func:`registry_encoding`.
    """
    writer = _Writer(options, pa.schema([]))
    given = options.given_schema(reading=False)
    if given is not None:
        return writer.made(writer.given(*given))
    latest = [each for each in writer.latest() if options.registry_type in (None, each.type)]
    if not latest:
        raise SchemaError(
            f"the group {options.registry_group()!r} does not have this schema to write with; set a schema as an "
            "option, or use the type of the columns as schema"
        )
    return writer.made(*map(registry.event_type, latest))


class _Writer:
    def __init__(self, options: SinkOptions, columns: pa.Schema) -> None:
        self._options, self._columns = options, columns
        self._group = options.registry_group()
        self._config: registry.RegistryConfig = options.registry_config(options.timeout_ms / 1000)
        self._store = registry.stores.store_of(
            registry.settings.serializer_config(self._config, self._group, options.registry_contract())
        )

    def given(self, schema: Any, name: str | None) -> registry.EventType:
        """Return the type of the schema in the options. ``name`` is its name if the schema has none."""
        return registry.event_type(schema, format=self._options.format, type=name, all_files=self._store.all_files)

    def latest(self) -> list[registry.SchemaInfo]:
        """Return the latest schemas of the group, ordered by name; none for a group that will be created."""
        # A subject has one schema, whose file may have several types.
        named = self._options.registry_type if self._is_foreign else None
        try:
            found = [each.schema for each in self._store.latest(named)]
        except RegistryNotFoundError as error:
            if self._options.create_group or (self._is_foreign and self._options.register_schema):
                return []
            if self._is_foreign:
                raise
            more = "" if self._options.format else ", and with option 'format', such as avro"
            raise RegistryNotFoundError(
                f"the registry has no group {self._group!r}: write with create_group=true and "
                f"register_schema=true{more}, or create the group first",
                status=error.status,
            ) from error
        chosen = (each for each in found if self._options.format in (None, each.format.name.lower()))
        return sorted(chosen, key=lambda each: (each.type, each.format.full_type_name))

    @property
    def _is_foreign(self) -> bool:
        """True if groups are subjects, which exist from their first schema on."""
        return self._config.kind != "pravega"

    def of(self, chosen: registry.EventType) -> RegistryEncoding:
        """Return the encoding of events of one type."""
        single = len(self._columns) == 1 and not _is_record(chosen)
        kind = self._columns.field(0).type if single else pa.struct(list(self._columns))
        made = self.made(chosen)
        _check(made, kind, chosen.info.type)
        return RegistryEncoding(made, single)

    def of_several(self, latest: list[registry.SchemaInfo]) -> RegistryEncoding:
        """Return the encoding of events of several types, each in its own column."""
        known = dict(zip(registry.column_names(latest), latest, strict=True))
        chosen = [known[name] for name in self._columns.names if name in known]
        if len(chosen) < len(self._columns.names):
            raise ConfigError(
                f"the group {self._group!r} has several types: choose one with option 'registry_type' (its types: "
                f"{', '.join(each.type for each in latest)}), or write one struct column for each type "
                f"({', '.join(known)})"
            )
        # Use all schemas if the column names of the selected ones alone would differ.
        schemas = chosen if registry.column_names(chosen) == tuple(self._columns.names) else latest
        made = self.made(*schemas)
        _check(made, pa.struct(list(self._columns)), "several types")
        return RegistryEncoding(made, single=False)

    def chosen(self, latest: registry.SchemaInfo | None) -> registry.EventType:
        """Return the type to write: the latest schema if it fits, otherwise a new one."""
        if latest is None:
            return self._new(None)
        known = registry.event_type(latest)
        if _same_columns(known, self._columns):
            return known
        if self._options.register_schema:
            return self._new(latest)
        try:
            derived = self._new(latest)
        except SchemaError:
            return known
        # Only a type that was derived from columns casts them correctly.
        return derived if derived.info.data == latest.data else known

    def _new(self, latest: registry.SchemaInfo | None) -> registry.EventType:
        """Return the type that is derived from the columns."""
        wanted = self._options.format or (latest.format.name.lower() if latest else None)
        if wanted is None:
            *others, last = registry_formats()
            raise ConfigError(f"a new group requires option 'format': {', '.join(others)} or {last}")
        name = self._options.registry_type or (latest.type if latest else self._options.stream_name().stream)
        if self._options.registry_type is None and not _NAME.fullmatch(name):
            raise ConfigError(
                f"the stream's name {name!r} is not a valid type name: set option 'registry_type', such as "
                "com.example.Order"
            )
        if latest is None and not self._options.register_schema:
            raise ConfigError(
                f"the group {self._group!r} has no schema of the type {name!r}: register a schema, or write with "
                "register_schema=true to derive it from the columns"
            )
        return registry.column_schema(self._columns, format=wanted, type=name, after=latest)

    def made(self, *types: Any) -> Serializer[Any]:
        """Return the serializer of one type, or of several."""
        if len(types) == 1:
            return registry.serializer(self._config, group=self._group, schema=types[0], **self._settings())
        return registry.multi_type_serializer(self._config, group=self._group, schemas=types, **self._settings())

    def _settings(self) -> dict[str, Any]:
        options = self._options
        return {
            "create_group": options.create_group,
            "register_schema": options.register_schema,
            "register_codec": options.register_codec,
            "codec": options.codec,
            "codecs": options.codecs or (),
            "typed_java_readers": options.typed_java_readers,
            "normalize": options.normalize,
            **options.registry_contract(),
        }


def _is_record(chosen: registry.EventType) -> bool:
    try:
        return bool(pa.types.is_struct(chosen.payloads.arrow_type))
    except SchemaError:  # a JSON schema without columns: rows are objects
        return True


def _same_columns(known: registry.EventType, columns: pa.Schema) -> bool:
    """Return True if a schema has these columns with these types."""
    try:
        kind = known.payloads.arrow_type
    except SchemaError:
        return False
    if not pa.types.is_struct(kind):
        return len(columns) == 1 and columns.field(0).type == kind
    has = {field.name: field.type for field in kind}
    return has == {field.name: field.type for field in columns}


def _check(made: Serializer[Any], kind: pa.DataType, name: str) -> None:
    try:
        made.check_encodable(kind)
    except SchemaError as error:
        raise ColumnTypeError(
            f"the columns do not fit the schema of {name!r} in the registry: {error.message}; or write with "
            "register_schema=true to add a schema that is derived from the columns"
        ) from error
