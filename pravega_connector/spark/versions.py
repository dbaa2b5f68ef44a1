"""Differences between versions of Spark. Only this module asks for the version, or for a part that some versions lack.

Other modules import the parts from here. A part that is missing has a replacement with the same interface, or a use of
it raises UnsupportedModeError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type

from pravega_connector.errors import UnsupportedModeError

try:
    from pyspark.sql.datasource import DataSource
except ModuleNotFoundError:  # Spark 3.5
    DataSource = object

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["VERSION", "DataSource", "arrow_schema", "arrow_type", "check_spark"]

#: Version of this Spark.
VERSION: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

# First Spark whose Python sources can limit a micro-batch and support AvailableNow.
_OLDEST: Final = (4, 2)
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


def arrow_type(kind: DataType) -> pa.DataType:
    """Return the Arrow type of a type of Spark, with timestamps in UTC. Raises what Spark raises."""
    return to_arrow_type(kind, **_TIME_ZONE)


def arrow_schema(columns: StructType) -> pa.Schema:
    """Return the Arrow types of columns, with timestamps in UTC. Raises what Spark raises."""
    return to_arrow_schema(columns, **_TIME_ZONE)
