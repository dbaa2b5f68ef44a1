"""Differences between versions of Spark. Only this module asks for the version, or for a part that some versions lack.

Other modules import the parts from here. A part that is missing has a replacement with the same interface, or a use of
it raises UnsupportedModeError.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from pravega_connector.errors import UnsupportedModeError

try:
    from pyspark.sql.datasource import DataSource
except ModuleNotFoundError:  # Spark 3.5
    DataSource = object

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import (
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamArrowWriter,
        DataSourceStreamReader,
        EqualNullSafe,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        InputPartition,
        LessThan,
        LessThanOrEqual,
        Not,
        WriterCommitMessage,
    )
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow

__all__ = [
    "HAS_ARROW_FUNCTIONS",
    "VERSION",
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "EqualNullSafe",
    "EqualTo",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "InputPartition",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "ReadAllAvailable",
    "ReadLimit",
    "SupportsTriggerAvailableNow",
    "WriterCommitMessage",
    "arrow_schema",
    "arrow_type",
    "check_spark",
    "parsed_type",
    "settings_of",
    "spark_schema",
    "spark_type",
]

_CLASSES: Final = {
    "pyspark.sql.datasource": (
        "DataSourceArrowWriter DataSourceReader DataSourceStreamArrowWriter DataSourceStreamReader EqualNullSafe "
        "EqualTo Filter GreaterThan GreaterThanOrEqual In InputPartition LessThan LessThanOrEqual Not "
        "WriterCommitMessage"
    ),
    "pyspark.sql.streaming.datasource": "ReadAllAvailable ReadLimit SupportsTriggerAvailableNow",
}
_MODULES: Final = {name: module for module, names in _CLASSES.items() for name in names.split()}

#: Version of this Spark.
VERSION: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

# First Spark whose Python sources can limit a micro-batch and support AvailableNow.
_OLDEST: Final = (4, 2)
# Before 4.2, the Arrow types of Spark have no choice of a time zone: it is always UTC.
_TIME_ZONE: Final[dict[str, Any]] = {"timezone": "UTC"} if VERSION >= (4, 2) else {}

#: Spark has functions of columns in Arrow, ``arrow_udf``.
HAS_ARROW_FUNCTIONS: Final = VERSION >= (4, 1)


def __getattr__(name: str) -> Any:
    """Return a class of Spark's Python data sources; an empty class if this Spark does not have it."""
    if name not in _MODULES:
        raise AttributeError(name)
    try:
        found = getattr(import_module(_MODULES[name]), name)
    except (ModuleNotFoundError, AttributeError):
        found = type(name, (), {})
    globals()[name] = found
    return found


def check_spark(what: str) -> None:
    """Raise UnsupportedModeError if this Spark is too old for ``what``."""
    if VERSION < (4, 0):
        raise UnsupportedModeError(
            f"Spark {pyspark.__version__} has no data sources in Python, so it is too old for {what}: use read and "
            "write of pyspark_pravega, see docs/spark/spark-3.5.md"
        )
    if VERSION < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UnsupportedModeError(
            f"Spark {pyspark.__version__} is too old for {what}: use Spark {oldest} or later, or decode and encode "
            "with a serializer of pravega_serde in mapInArrow"
        )


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a type of Spark, with timestamps in UTC. Raises what Spark raises."""
    return to_arrow_type(kind, **_TIME_ZONE)


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the Arrow types of columns, with timestamps in UTC. Raises what Spark raises."""
    return to_arrow_schema(columns, **_TIME_ZONE)


def spark_type(kind: pa.DataType) -> DataType:
    """Return the type of Spark for an Arrow type. A timestamp without a zone is TIMESTAMP_NTZ."""
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def spark_schema(columns: pa.Schema) -> StructType:
    """Return the columns of Spark for Arrow columns. A timestamp without a zone is TIMESTAMP_NTZ."""
    return from_arrow_schema(columns, prefer_timestamp_ntz=True)


def settings_of(session: SparkSession) -> dict[str, str]:
    """Return the settings of a session. In Spark 3.5 they are those of its application."""
    if VERSION >= (4, 0):
        return dict(session.conf.getAll)
    return dict(session.sparkContext.getConf().getAll()) if hasattr(session, "_jsparkSession") else {}


def parsed_type(text: str) -> DataType:
    """Return the type in a text in Spark's DDL. Raises the errors of Spark."""
    if VERSION >= (4, 0):
        return DataType.fromDDL(text)
    from pyspark.sql.types import _parse_datatype_string  # noqa: PLC0415 - an internal name of 3.5

    return _parse_datatype_string(text)
