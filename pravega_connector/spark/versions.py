"""Differences between versions of Spark. Only this module asks for the version, or for a part that some versions lack.

Other modules import the parts from here. A part that is missing has a replacement with the same interface, or a use of
it raises UnsupportedModeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema, to_arrow_type

from pravega_connector.errors import UnsupportedModeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "HAS_ADMISSION",
    "HAS_ARROW_FUNCTIONS",
    "HAS_FILTERS",
    "HAS_REAL_TIME",
    "VERSION",
    "DataSource",
    "DataSourceStreamArrowWriter",
    "arrow_schema",
    "arrow_type",
    "available_now_base",
    "check_spark",
    "jvm_reader_obstacle",
    "spark_schema",
    "spark_type",
]

#: Version of this Spark.
VERSION: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

if VERSION >= (4, 0):
    from pyspark.sql.datasource import DataSource
else:
    DataSource = object

if VERSION >= (4, 1):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
elif VERSION >= (4, 0):
    from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[misc, no-redef]
        """Writer of a streaming query: in 4.0, Spark passes Arrow batches to each writer of the second type."""

else:
    DataSourceStreamArrowWriter = object

#: Spark passes the start of a batch to Python sources, and lets them end a run with trigger AvailableNow.
HAS_ADMISSION: Final = VERSION >= (4, 2)
#: Spark has functions of columns in Arrow, ``arrow_udf``.
HAS_ARROW_FUNCTIONS: Final = VERSION >= (4, 1)
#: Spark's Python sources get the filters of a batch query, if its setting is on.
HAS_FILTERS: Final = VERSION >= (4, 1)
#: Spark has real-time mode with the interfaces that the JVM reader implements.
HAS_REAL_TIME: Final = VERSION >= (4, 2)

# First Spark with data sources in Python.
_OLDEST: Final = (4, 0)
# Versions on which the JVM reader was tested.
_WITH_JVM_READER: Final = ("4.0", "4.1", "4.2", "4.3")
# Before 4.2, the Arrow types of Spark have no choice of a time zone: it is always UTC.
_TIME_ZONE: Final[dict[str, Any]] = {"timezone": "UTC"} if VERSION >= (4, 2) else {}


def check_spark(what: str) -> None:
    """Raise UnsupportedModeError if this Spark is too old for ``what``."""
    if VERSION < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        raise UnsupportedModeError(
            f"Spark {pyspark.__version__} is too old for {what}: use Spark {oldest} or later, or decode and encode "
            "with a serializer of pravega_serde in mapInArrow"
        )


def jvm_reader_obstacle() -> str | None:
    """Return the reason why the JVM reader is not for this Spark, or None."""
    if ".".join(map(str, VERSION)) in _WITH_JVM_READER:
        return None
    return f"it is for Spark {_WITH_JVM_READER[0]} to {_WITH_JVM_READER[-1]}, not for {pyspark.__version__}"


def available_now_base() -> type:
    """Return the base class of stream readers that end a run with trigger AvailableNow themselves.

    Before 4.2, Spark ends such a run after one batch, and does not tell the reader.
    """
    if not HAS_ADMISSION:
        return object
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow  # noqa: PLC0415 - only readers need it

    found: type = SupportsTriggerAvailableNow
    return found


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
