"""The two simplest formats: UTF-8 text with Java's replacement rules, and plain bytes.

Compatible with ``io.pravega.client.stream.impl.UTF8StringSerializer``, ``ByteArraySerializer`` and
``ByteBufferSerializer``.
"""

from __future__ import annotations

import codecs
import enum
from typing import Any

import pyarrow as pa

from pravega_serde.columnar import PlainPath, as_binary, as_column, bisecting, decode_rows, holds_bytes, is_text
from pravega_serde.errors import SchemaError, SerializationError
from pravega_serde.serializer_interface import OnError, SerializerCalls

__all__ = ["ByteArraySerializer", "ByteBufferSerializer", "UTF8StringSerializer", "java_decode", "java_encode"]


def java_encode(text: str) -> bytes:
    """Encode as Java's ``String.getBytes(UTF_8)``: a surrogate without its partner becomes ``?``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, two surrogates that Python keeps apart become the one character that Java sees in them.
        paired = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return paired.encode("utf-8", "replace")


def java_decode(data: bytes) -> str:
    """Decode as Java's ``new String(bytes, UTF_8)``: malformed bytes become U+FFFD."""
    return str(data, "utf-8", _JAVA_REPLACE)


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Return one U+FFFD per malformed run, with the run's length as the JDK (``String.decodeUTF8_UTF16``) has it.

    Both follow Unicode's "maximal subpart", except that the JDK treats an encoded surrogate (ED A0..BF xx) as one run.
    """
    assert isinstance(error, UnicodeDecodeError)
    data, start = error.object, error.start
    if data[start] == 0xED and start + 1 < len(data) and data[start + 1] & 0xE0 == 0xA0:
        third = start + 2 < len(data) and data[start + 2] & 0xC0 == 0x80
        return "\ufffd", start + (3 if third else 2)
    return "\ufffd", error.end


_JAVA_REPLACE = "pravega_serde.java_replace"
codecs.register_error(_JAVA_REPLACE, _replace_as_java)


class UTF8StringSerializer(SerializerCalls):
    """Text as plain UTF-8. Reading never fails: see :func:`java_decode`. Arrow type ``string``."""

    #: Content type of the events in an envelope.
    content_type = "text/plain"

    arrow_type = pa.string()

    def serialize(self, value: str) -> bytes:
        """Return the UTF-8 bytes of a string; see :func:`java_encode`."""
        if type(value) is not str:
            if isinstance(value, enum.Enum):
                value = value.name
            if not isinstance(value, str):
                raise SerializationError(f"the string format writes str, not {type(value).__name__}")
        return java_encode(value)

    def deserialize(self, data: bytes) -> str:
        """Return the text of an event."""
        return java_decode(data)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Accept any of Arrow's string types."""
        kind = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
        if not (is_text(kind) or pa.types.is_null(kind)):
            raise SchemaError(f"the string format writes string columns, not {arrow_type}; cast the column to string")

    def encode_column(self, column: pa.Array) -> pa.BinaryArray:
        """Return the bytes of a string column without a copy."""
        column = as_column(column)
        self.check_encodable(column.type)
        return as_binary(column)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.StringArray:
        """Return the text of a column. Well-formed UTF-8 is only validated; other rows are decoded one by one."""
        plain = PlainPath(java_decode, self.arrow_type)
        return decode_rows(column, plain=plain, fast=_validate, on_error=on_error)

    def __repr__(self) -> str:
        return "UTF8StringSerializer()"


_validate = bisecting(lambda column: column.cast(pa.string()), refusals=(pa.ArrowInvalid,))


class ByteArraySerializer(SerializerCalls):
    """Plain bytes. Arrow type ``binary``."""

    arrow_type = pa.binary()

    def serialize(self, value: bytes | bytearray | memoryview) -> bytes:
        """Return the bytes, or the viewed bytes of a memoryview."""
        if not isinstance(value, bytes | bytearray | memoryview):
            raise SerializationError(f"the bytes format writes bytes, not {type(value).__name__}")
        return bytes(value)

    def deserialize(self, data: bytes) -> bytes:
        """Return the bytes."""
        return bytes(data)

    def check_encodable(self, arrow_type: pa.DataType) -> None:
        """Accept any of Arrow's binary and string types."""
        kind = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
        if not holds_bytes(kind):
            raise SchemaError(f"the bytes format writes binary columns, not {arrow_type}; cast the column to binary")

    def encode_column(self, column: pa.Array) -> pa.BinaryArray:
        """Return the column as binary."""
        column = as_column(column)
        self.check_encodable(column.type)
        return as_binary(column)

    def decode_column(self, column: pa.Array, *, on_error: OnError | None = None) -> pa.BinaryArray:
        """Return the column as binary. Every event is valid."""
        return as_binary(column)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ByteBufferSerializer(ByteArraySerializer):
    """The bytes of a buffer from its position to its limit, as ``ByteBufferSerializer`` writes them in Java.

    Python's counterpart of Java's ``ByteBuffer`` is a memoryview: ``memoryview(data)[position:limit]``. Any other
    object with a buffer (NumPy arrays, ``array``, mmap, Arrow's buffers) is written whole. Reading returns a read-only
    memoryview. For columns, and in Spark, use the format ``bytes``.
    """

    def serialize(self, value: Any) -> bytes:
        """Return the viewed bytes."""
        try:
            view = memoryview(value)
        except TypeError as error:
            raise SerializationError(f"the bytebuffer format writes buffers, not {type(value).__name__}") from error
        return view.tobytes()

    def deserialize(self, data: bytes) -> memoryview:  # type: ignore[override]
        """Return a view of the event's bytes."""
        return memoryview(data).toreadonly()
