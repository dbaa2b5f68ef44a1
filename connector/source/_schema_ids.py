"""The schemas of a registry that a query has, carried in its columns.

They are fixed when Spark asks for the columns. Spark makes readers later, in other processes, when the registry may
have newer ones; so the schemas' ids travel in the metadata of the first column, in SQL tables, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pyspark.sql.types import StructField, StructType

from connector.source._options import SourceOptions

__all__ = ["schema_ids", "schema_ids_of", "with_schema_ids"]

_KEY: Final = "pravega.registry"


def schema_ids(options: SourceOptions) -> tuple[int, ...] | None:
    """Ids of the latest schemas that the options choose; None without a registry, or where a schema is given.

    Raises RegistryErrors, SchemaError if there are none, ConfigError.
    """
    if not options.from_registry:
        return None
    from connector.source._registry import latest_ids  # noqa: PLC0415 - a second that only its streams need

    return latest_ids(options)


def with_schema_ids(schema: StructType, options: SourceOptions, ids: Sequence[int] | None) -> StructType:
    """The schema with the ids in it."""
    if ids is None:
        return schema
    first = schema[0]
    metadata = {**first.metadata, _KEY: json.dumps({**_place(options), "ids": list(ids)}, sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *schema.fields[1:]])


def schema_ids_of(schema: StructType, options: SourceOptions) -> tuple[int, ...] | None:
    """The ids that a schema carries; None if it carries none, or those of another group."""
    if not options.from_registry:
        return None
    for field in schema:
        carried = json.loads(field.metadata.get(_KEY, "{}"))
        if carried and {key: value for key, value in carried.items() if key != "ids"} == _place(options):
            return tuple(carried["ids"])
    return None


def _place(options: SourceOptions) -> dict[str, str | None]:
    return {"group": options.registry_group(), "namespace": options.namespace, "type": options.registry_type}
