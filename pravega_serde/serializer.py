"""The one interface of all formats, and the catalogue that finds a format by its name.

Nothing here imports a codec: a format's module, and pyarrow with it, is loaded when the format is first asked for.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pravega_serde.errors import DeserializationError, SerdeError, UnsupportedFormatError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["OnError", "Serializer", "formats", "serializer_for"]

T = TypeVar("T")

#: Receives the error of each row that cannot be decoded; its ``row`` is the position in the column.
OnError = Callable[[DeserializationError], None]


class Serializer(Protocol[T]):
    """Writes and reads events of one format, one by one or a column at a time.

    A serializer is immutable, safe to share between threads, and can be pickled: Spark sends it to its workers.
    Whatever can be prepared (schemas, plans) is prepared when it is made.

    Rows and columns give the same bytes. A column's decoded values are those of the rows, in the Arrow types that
    Spark's data sources take: ``string`` and ``binary`` rather than their large or view forms, ``timestamp[us]``,
    lists whose field is called ``element``, every field nullable.
    """

    @property
    def arrow_type(self) -> pa.DataType:
        """Arrow type of a decoded column: a struct for records. Known before any event is read.

        Raises :class:`SchemaError` where the format or its schema has no columnar form.
        """

    def serialize(self, value: T) -> bytes:
        """The event of one value; :class:`SerializationError` when the format cannot hold it."""

    def deserialize(self, data: bytes) -> T:
        """The value of one event; :class:`DeserializationError` for anything that is not one."""

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Raise :class:`SchemaError` if a column of this type can never be encoded. Costs no data: call it early."""

    def encode_column(self, column: pa.Array | pa.RecordBatch) -> pa.BinaryArray:
        """Events of a whole column, in order. A null row stays null: no event at all.

        Raises :class:`SchemaError` for a column type that does not fit, :class:`SerializationError` (which names the
        row) for a value that does not.
        """

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.Array:
        """Values of a column of events; a null row stays null.

        Without ``on_error`` the first bad row raises its :class:`DeserializationError`. With it, each bad row becomes
        null and its error is handed over, in the order of the rows: ``on_error=errors.append`` keeps them all.
        """


#: Format name -> module and class. The class's keyword arguments are the format's options.
_CATALOGUE: Final[Mapping[str, tuple[str, str]]] = {
    "avro": ("pravega_serde.avro", "AvroSerializer"),
    "bytes": ("pravega_serde.text", "ByteArraySerializer"),
    "java": ("pravega_serde.java", "JavaSerializer"),
    "json": ("pravega_serde.json", "JsonSerializer"),
    "protobuf": ("pravega_serde.protobuf", "ProtobufSerializer"),
    "string": ("pravega_serde.text", "UTF8StringSerializer"),
}


def formats() -> tuple[str, ...]:
    """Names that :func:`serializer_for` knows, sorted."""
    return tuple(sorted(_CATALOGUE))


def serializer_for(format_name: str, /, **options: Any) -> Serializer[Any]:
    """Make the serializer of a format by its name, with the options of its class.

    Raises :class:`UnsupportedFormatError` for an unknown name, :class:`SerdeError` for an unknown or missing option;
    both name the nearest known one.
    """
    name = format_name.strip().lower()
    if name not in _CATALOGUE:
        hint = _nearest(name, _CATALOGUE)
        raise UnsupportedFormatError(f"unknown format {format_name!r}{hint}; known formats: {', '.join(formats())}")
    module, attribute = _CATALOGUE[name]
    factory = getattr(importlib.import_module(module), attribute)
    _check_options(name, inspect.signature(factory), options)
    serializer: Serializer[Any] = factory(**options)
    return serializer


def _check_options(name: str, signature: inspect.Signature, options: Mapping[str, object]) -> None:
    known = signature.parameters
    for option in options:
        if option not in known:
            raise SerdeError(f"format {name!r} has no option {option!r}{_nearest(option, known)}")
    missing = [key for key, p in known.items() if p.default is inspect.Parameter.empty and key not in options]
    if missing:
        raise SerdeError(f"format {name!r} needs the option {missing[0]!r}")


def _nearest(name: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""
