"""The column functions in SQL: ``SELECT from_pravega(event, 'avro', avro_schema => '…')``.

The type of a decoded column depends on the arguments, and a Python function in Spark's SQL has one type. So Spark's
analyzer gets a builder, which it calls for each use in a query with the expressions of the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from pravega_connector.errors import ConfigError, UnsupportedModeError
from pravega_connector.spark.functions import reading_function, segment_key_function, writing_function
from pravega_connector.spark.versions import column_of, expression_of, start_callbacks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POSITIONAL: Final = ("col", "format", "schema")
_NAMED: Final = "NamedArgumentExpression"
_SEGMENT_KEY: Final = "pravega_segment_key"


def register_functions(spark: SparkSession) -> None:
    """Register ``from_pravega``, ``to_pravega`` and ``pravega_segment_key`` as SQL functions of a session.

    The arguments are those of the Python functions: the column, the format, the schema, and options by their names, as
    in ``from_pravega(event, 'json', 'id BIGINT', mode => 'PERMISSIVE')``. Options can also be in a last argument
    ``map('avro_schema', '…')``. All arguments but the column are constants. Temporary views can use the functions.
    Permanent ones cannot, as with all functions of a session. The driver must be a Python program with a classic
    session.

    Raises UnsupportedModeError for a session of Spark Connect.
    """
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedModeError(
            "register_functions requires a classic session, and this one is of Spark Connect: use from_pravega and "
            "to_pravega of pyspark_pravega in Python"
        )
    start_callbacks(spark.sparkContext)
    gateway: Any = spark.sparkContext._gateway
    registry: Any = spark._jsparkSession.sessionState().functionRegistry()
    for name, function in (
        ("from_pravega", reading_function),
        ("to_pravega", writing_function),
        (_SEGMENT_KEY, segment_key_function),
    ):
        registry.createOrReplaceTempFunction(name, _Builder(name, function, gateway.jvm), "python_udf")


class _Builder:
    """Builder of the expression of one call in a query, which the JVM calls."""

    def __init__(self, name: str, function: Callable[..., Any], jvm: Any) -> None:
        self._name, self._function, self._jvm = name, function, jvm

    def apply(self, expressions: Any) -> Any:
        """Return the expression of a call with these arguments. Scala's name and interface."""
        column, arguments = _arguments(self._name, [expressions.apply(i) for i in range(expressions.size())])
        return expression_of(self._jvm, self._function(**arguments)(column_of(self._jvm, column)))

    class Java:
        """Interface for Py4J."""

        implements = ("scala.Function1",)


def _arguments(name: str, expressions: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
    """Return the expression of the column, and the constants of the other arguments. Raises ConfigError."""
    found: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for number, expression in enumerate(expressions):
        if expression.getClass().getSimpleName() == _NAMED:
            if (argument := expression.key().lower()) in found:
                raise ConfigError(f"{name} has the argument {argument!r} twice: omit one of them")
            found[argument] = expression.value()
        elif number and expression.dataType().typeName() == "map":
            options |= _map(name, expression)
        elif number < len(_POSITIONAL):
            found[_POSITIONAL[number]] = expression
        else:
            raise ConfigError(
                f"{name} has {number + 1} arguments: after the column, the format and the schema, write options as "
                "name => value, or as one map"
            )
    column = found.pop("col", None)
    if column is None:
        raise ConfigError(f"{name} has no column: write {name}(column, 'avro', avro_schema => '…')")
    if name == _SEGMENT_KEY and (found or options):
        raise ConfigError(f"{name} has {len(expressions)} arguments, but only the column of routing keys is possible")
    for argument, expression in found.items():
        value = _constant(name, argument, expression)
        if value is not None:
            options[argument] = str(value).lower() if isinstance(value, bool) else str(value)
    return column, options


def _constant(name: str, argument: str, expression: Any) -> Any:
    if not expression.foldable():
        raise ConfigError(f"argument {argument!r} of {name} must be a constant, not {expression.sql()}")
    value = expression.eval(None)
    if isinstance(value, bytes):
        return value.hex()  # as options have the bytes of an event
    return value if value is None or isinstance(value, bool | int | float) else value.toString()


def _map(name: str, expression: Any) -> dict[str, Any]:
    if expression.dataType().simpleString() != "map<string,string>":
        raise ConfigError(f"the map of {name} must have texts as keys and values, such as map('avro_schema', '…')")
    if not expression.foldable():
        raise ConfigError(f"the map of {name} must be a constant, not {expression.sql()}")
    entries = expression.eval(None)
    keys, values = entries.keyArray(), entries.valueArray()
    return {
        keys.getUTF8String(i).toString().lower(): values.getUTF8String(i).toString()
        for i in range(keys.numElements())
        if not values.isNullAt(i)
    }
