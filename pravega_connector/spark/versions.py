"""Differences between versions of Spark. Only this module asks for the version, or for a part that some versions lack.

Other modules import the parts from here. A part that is missing has a replacement with the same interface, or a use of
it raises UnsupportedModeError.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type, to_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from pravega_connector.errors import UnsupportedModeError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import Column, SparkSession

__all__ = [
    "HAS_ADMISSION",
    "HAS_ARROW_FUNCTIONS",
    "HAS_FILTERS",
    "HAS_JVM_WRITER",
    "HAS_REAL_TIME",
    "VERSION",
    "DataSource",
    "DataSourceArrowWriter",
    "DataSourceReader",
    "DataSourceStreamArrowWriter",
    "DataSourceStreamReader",
    "InputPartition",
    "WriterCommitMessage",
    "arrow_schema",
    "arrow_type",
    "available_now_base",
    "check_spark",
    "column_of",
    "expression_of",
    "jvm_reader_obstacle",
    "parsed_type",
    "python_function",
    "register_source",
    "settings_of",
    "spark_schema",
    "spark_type",
    "start_callbacks",
]

#: Version of this Spark.
VERSION: Final = tuple(int(part) for part in pyspark.__version__.split(".")[:2])

if VERSION >= (4, 0):
    from pyspark.sql.datasource import (
        DataSource,
        DataSourceArrowWriter,
        DataSourceReader,
        DataSourceStreamReader,
        InputPartition,
        WriterCommitMessage,
    )
else:

    class DataSource:  # type: ignore[no-redef]
        """Data source that this project's own functions call."""

        def __init__(self, options: dict[str, str]) -> None:
            self.options = options

    DataSourceReader = InputPartition = WriterCommitMessage = object
    DataSourceArrowWriter = type("DataSourceArrowWriter", (), {})
    DataSourceStreamReader = type("DataSourceStreamReader", (), {})

if VERSION >= (4, 1):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
elif VERSION >= (4, 0):
    from pyspark.sql.datasource import DataSourceStreamWriter

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

#: The JVM writer was tested on this Spark.
HAS_JVM_WRITER: Final = VERSION >= (4, 2)

# First Spark with data sources in Python.
_OLDEST: Final = (4, 0)
# Versions on which the JVM reader was tested.
_WITH_JVM_READER: Final = ("3.5", "4.0", "4.1", "4.2", "4.3")
# Method of Scala's object DataSourceManager in 4.0, which is private there.
_FOUND_SOURCES: Final = "org$apache$spark$sql$execution$datasources$DataSourceManager$$initialStaticDataSourceBuilders"
# Before 4.2, the Arrow types of Spark have no choice of a time zone: it is always UTC.
_TIME_ZONE: Final[dict[str, Any]] = {"timezone": "UTC"} if VERSION >= (4, 2) else {}


def check_spark(what: str) -> None:
    """Raise UnsupportedModeError if this Spark is too old for ``what``."""
    if VERSION < _OLDEST:
        raise UnsupportedModeError(
            f"Spark {pyspark.__version__} has no data sources in Python, so it is too old for {what}: use read and "
            "write of pyspark_pravega, see docs/spark/spark-3.5.md"
        )


def jvm_reader_obstacle() -> str | None:
    """Return the reason why the JVM reader is not for this Spark, or None."""
    if ".".join(map(str, VERSION)) in _WITH_JVM_READER:
        return None
    return f"it is for Spark {_WITH_JVM_READER[0]} to {_WITH_JVM_READER[-1]}, not for {pyspark.__version__}"


def register_source(session: SparkSession, source: type[DataSource]) -> None:
    """Register a data source in a session, also if Spark has found one of its name among the installed packages.

    Spark 4.0 does not replace such a source, so it forgets it first, in the whole application. Raises
    UnsupportedModeError if the session has used it before, and with Spark Connect on 4.0.
    """
    register = session.dataSource.register
    if VERSION < (4, 1) and hasattr(session, "_jsparkSession"):
        register = partial(_register, session)
    try:
        register(source)
    except AnalysisException as error:
        if VERSION >= (4, 1) or "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        raise UnsupportedModeError(
            f"Spark {pyspark.__version__} keeps the data source that it found in its Python: call configure before the "
            f'first format("{source.name()}") of a session; with Spark Connect, pass the options to each read and write'
        ) from None


def _register(session: SparkSession, source: type[DataSource]) -> None:
    """Register a data source as Spark does, but also if the active session or a jar has one of its name."""
    context = session.sparkContext
    classes = context._jvm.org.apache.spark.sql.execution.datasources
    found = getattr(getattr(classes, "DataSourceManager$"), "MODULE$")
    # Spark starts a process to look for sources once, and each session takes the result with its first look-up.
    others = getattr(found, _FOUND_SOURCES)().removed(source.name())
    getattr(found, "dataSourceBuilders_$eq")(context._jvm.scala.Option.apply(others))
    made = classes.v2.python.UserDefinedPythonDataSource(python_function(context, source))
    session._jsparkSession.sessionState().dataSourceManager().registerDataSource(source.name(), made)


def python_function(context: SparkContext, source: type[DataSource]) -> Any:
    """Return the function of the JVM that runs a data source, in a classic session."""
    from pyspark.sql.udf import _wrap_function  # noqa: PLC0415 - not part of every PySpark

    return _wrap_function(context, source)


def start_callbacks(context: SparkContext) -> None:
    """Let the JVM call Python objects of the driver, in a classic session."""
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - not part of every PySpark

    ensure_callback_server_started(context._gateway)


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


def column_of(jvm: Any, expression: Any) -> Column:
    """Return the column of an expression of Spark's analyzer, in a classic session."""
    if VERSION >= (4, 0):
        from pyspark.sql.classic.column import Column as ClassicColumn  # noqa: PLC0415 - 3.5 has only one Column

        return ClassicColumn(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(expression))
    from pyspark.sql import Column  # noqa: PLC0415 - only SQL functions need it

    return Column(jvm.org.apache.spark.sql.Column(expression))


def expression_of(jvm: Any, column: Any) -> Any:
    """Return the expression of a column for Spark's analyzer, in a classic session."""
    if VERSION >= (4, 0):
        converter = getattr(jvm.org.apache.spark.sql.classic, "ColumnNodeToExpressionConverter$")
        return getattr(converter, "MODULE$").apply(column._jc.node())
    return column._jc.expr()


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
