"""Arrow columns in pandas functions, for versions of Spark without ``arrow_udf``.

These versions pass the columns of a function as pandas Series, and convert the result back. That changes values: an
integer next to a null becomes a float, NaN becomes null, and timestamps are limited to the years 1677 to 2262. So
nothing is converted here:

- The column is the only field of a struct with a special name. A worker leaves the field of such a struct in Arrow.
- Each result is the only element of an array, because Spark converts structs field by field, and so loses null structs.
  The Series with the arrays refuses the conversion of its elements.

The other functions of a query are converted as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.functions import col as column_of
from pyspark.sql.functions import pandas_udf, struct
from pyspark.sql.types import ArrayType, DataType

from pravega_connector.errors import UnsupportedModeError
from pravega_connector.spark.versions import arrow_type

_FIELD: Final = "_pravega_in_arrow"


def arrow_function(function: Callable[[pa.Array], pa.Array], kind: DataType) -> Callable[[Column | str], Column]:
    """Return the function of a column that ``function`` computes, with results of type ``kind``."""
    of_array, name = _ArrowFunction(function, arrow_type(kind)), function.__name__

    def evaluate(column: pd.Series) -> pd.Series:
        return of_array(column)

    evaluate.__name__ = name
    made = pandas_udf(evaluate, returnType=ArrayType(kind))

    def apply(column: Column | str) -> Column:
        given = column_of(column) if isinstance(column, str) else column
        return made(struct(given.alias(_FIELD)))[0]

    return apply


class _ArrowFunction:
    """Function of arrays, as a function of Series. A worker that receives it leaves its column in Arrow."""

    def __init__(self, function: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> None:
        self._function, self._kind = function, kind

    def __call__(self, column: pd.Series) -> pd.Series:
        """Return the results, each in an array. Raises UnsupportedModeError if Spark has converted the column."""
        if not isinstance(column, pd.Series) or not isinstance(column.array, pd.arrays.ArrowExtensionArray):
            raise UnsupportedModeError(
                "this build of Spark passes columns to functions only after a conversion that can change their values: "
                "decode and encode with a serializer of pravega_serde in mapInArrow"
            )
        values = self._function(_array(column.array.__arrow_array__()))
        if values.type != self._kind:
            values = values.cast(self._kind)
        places = pa.array(np.arange(len(values) + 1, dtype=np.int32))
        return _Unconverted(pd.arrays.ArrowExtensionArray(pa.ListArray.from_arrays(places, values)))

    def __reduce__(self) -> tuple[Callable[..., _ArrowFunction], tuple[Any, ...]]:
        return _received, (self._function, self._kind)


def _received(function: Callable[[pa.Array], pa.Array], kind: pa.DataType) -> _ArrowFunction:
    """Return the function in a worker, which has not yet read any column."""
    _leave_in_arrow()
    return _ArrowFunction(function, kind)


class _Unconverted(pd.Series):
    """Series that has the type of its result: Spark converts no element."""

    def apply(self, *_: Any, **__: Any) -> Any:
        """Return the Series. Spark calls it with the conversion of one element."""
        return self


def _leave_in_arrow() -> None:
    """Let this process pass the field of a struct with the name of this module to functions in Arrow."""
    from pyspark.sql.pandas.serializers import ArrowStreamPandasUDFSerializer  # noqa: PLC0415 - later versions lack it

    usual = ArrowStreamPandasUDFSerializer.arrow_to_pandas
    if hasattr(usual, _FIELD):
        return

    @functools.wraps(usual)
    def arrow_to_pandas(self: Any, column: pa.ChunkedArray, *arguments: Any, **named: Any) -> Any:
        kind = column.type
        if not (pa.types.is_struct(kind) and kind.num_fields == 1 and kind.field(0).name == _FIELD):
            return usual(self, column, *arguments, **named)
        (values,) = _array(column).flatten()
        return pd.Series(pd.arrays.ArrowExtensionArray(values))

    setattr(arrow_to_pandas, _FIELD, True)
    ArrowStreamPandasUDFSerializer.arrow_to_pandas = arrow_to_pandas


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
