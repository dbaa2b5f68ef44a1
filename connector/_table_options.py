"""Options of SQL tables, carried in the schema because Spark drops them.

``CREATE TABLE t USING pravega OPTIONS (…)`` hands its options to the instance that gives the schema, but the instances
that read and write get none (Spark 4.2 and 4.3: ``PythonDataSourceV2.getTable`` keeps only the schema). The schema
itself is stored with the table and comes back each time, so the options travel in the metadata of its columns.

One case is left: an INSERT of a query whose columns have the very names and types of the table's passes the query's
own schema on. Its options can only be given with it: ``INSERT INTO t WITH (…) SELECT …``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from connector.errors import ConfigError

__all__ = ["is_table", "options_of", "with_options"]

_KEY: Final = "pravega.options"
# Schemas are shown and logged: secrets stay out of them, and come from the environment of the processes.
_SECRET: Final = frozenset({"username", "password", "registry_username", "registry_password", "registry_token"})
_SPARKS_OWN: Final = frozenset({"provider", "owner", "path"})


def is_table(options: Mapping[str, str]) -> bool:
    """Whether the options are those of a table: Spark adds its provider to them."""
    return "provider" in options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """The schema with the options in it."""
    kept = {k: v for k, v in options.items() if k not in _SECRET | _SPARKS_OWN and not k.startswith("option.")}
    metadata = {_KEY: json.dumps(kept, sort_keys=True)}
    return StructType([StructField(f.name, f.dataType, f.nullable, {**f.metadata, **metadata}) for f in schema])


def options_of(options: Mapping[str, str], schema: StructType) -> dict[str, str]:
    """The options in force: those of the schema, and over them those given directly.

    Raises ConfigError where neither has any: a table that was created with a list of columns, or an INSERT of columns
    of the same names and types.
    """
    carried = next((f.metadata[_KEY] for f in schema if _KEY in f.metadata), None)
    given = {k: v for k, v in options.items() if carried is None or k != "path"}
    if carried is None and not given:
        raise ConfigError(
            "the options of this table are lost: Spark keeps them only for tables that are created without a list of "
            "columns, and forgets them for an INSERT of columns of the table's own names and types; leave the columns "
            "out of CREATE TABLE, give the options again (INSERT INTO t WITH (stream = '…', …) SELECT …), or use "
            "CREATE TEMPORARY VIEW"
        )
    return {**json.loads(carried or "{}"), **given}
