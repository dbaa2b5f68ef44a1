"""What a program does once for its Spark session: defaults of the format's options, and streams as tables.

Spark plans a Python source in processes that know neither the session nor its configuration, and what they get of it is
the class that was registered. So the defaults travel in a class made for the session.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_connector.spark.data_source import PravegaDataSource
from pravega_connector.spark.options import known_names, misspelt
from pravega_connector.spark.options.sink import SinkOptions
from pravega_connector.spark.options.source import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LEDGER: Final = "-ledger"  # beside a stream that is written exactly once
# What a table or a view may not have in its name.
_NOT_IN_NAMES: Final = re.compile(r"\W", re.ASCII)


def configure(spark: SparkSession, config: PravegaConfig | None = None, **options: Any) -> None:
    """Make a configuration, and options, the defaults of ``format("pravega")`` in a session, and in its tables.

    Without ``config`` it is that of the session, ``spark.pravega.controller.uri`` and the like, as
    :meth:`PravegaConfig.from_spark_conf` reads them, then that of this process's environment. What a
    read or a write is given, or its table, comes first.
    Credentials are then in no query's options, so in no plan and no catalog; Spark keeps them in its memory, and hands
    them to the processes that plan. Called again, it forgets what it was told before.

    Raises ConfigError for an unknown option.
    """
    found = PravegaConfig.resolve(properties=dict(spark.conf.getAll)) if config is None else config
    known = known_names(SourceOptions) | known_names(SinkOptions)
    for name in options:
        if name.lower() not in known:
            hint = misspelt(name.lower(), known)
            raise ConfigError(f"unknown option {name!r}" + (f": did you mean {hint!r}?" if hint else ""))
    given = _texts({each.name: getattr(found, each.name) for each in fields(found)}) | _texts(options)
    # A class of this function: it is pickled with what is in it, not by its name.
    spark.dataSource.register(type("SessionDataSource", (PravegaDataSource,), {"defaults": given}))


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark has them: names in lower case, flags as ``true`` and ``false``; None is left out."""
    return {
        name.lower(): str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
        if value is not None
    }


def register_streams(
    spark: SparkSession,
    scope: str,
    *,
    database: str | None = None,
    views: bool = False,
    replace: bool = False,
    **options: Any,
) -> dict[str, str]:
    """Make a table of each stream of a scope, with the same options; returns their names by those of the streams.

    The tables are in ``database``, by default the current one; with ``views`` they are temporary views, which Spark
    reads as they were when they were first read. A table's name is its stream's, with ``_`` for what Spark does not
    take. Tables that are there stay as they are, unless ``replace``. Pravega's own streams are left out, and the
    ledgers of streams that are written exactly once.

    Raises ConfigError for two streams with the same table, ScopeNotFoundError and what a read with these options
    raises, as Spark has it.
    """
    given = _texts(options)
    listed = spark.read.format("pravega").options(**given).option("metadata", "Streams").option("scope", scope).load()
    streams = {row.stream_name for row in listed.collect()}
    streams -= {name + _LEDGER for name in streams}
    names: dict[str, str] = {}
    for stream in sorted(streams):
        name = _NOT_IN_NAMES.sub("_", stream)
        for other, taken in names.items():
            if taken.lower() == name.lower():
                raise ConfigError(
                    f"the streams {other!r} and {stream!r} of scope {scope!r} would be one table, {name!r}: make their "
                    "tables by CREATE TABLE"
                )
        names[stream] = name
    for stream, name in names.items():
        own = {**given, "stream": f"{scope}/{stream}"}
        if views:
            spark.read.format("pravega").options(**own).load().createOrReplaceTempView(name)
            continue
        full = name if database is None else f"{database}.{name}"
        if replace:
            spark.sql(f"DROP TABLE IF EXISTS {full}")
        if not spark.catalog.tableExists(full):
            spark.catalog.createTable(full, source="pravega", **own)
    return names
