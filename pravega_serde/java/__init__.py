"""Java object streams, read and written without Java (``io.pravega.client.stream.impl.JavaSerializer``).

Values are natural Python data in both directions:

=========================================  ==========================================================================
Java                                       Python
=========================================  ==========================================================================
``null``, ``String``                       ``None``, ``str`` (lone surrogates kept)
``Boolean``, ``Integer``, ``Double``       ``bool``, ``int``, ``float``
``Byte``, ``Short``, ``Long``, ``Float``,  subclasses of that name, equal to plain numbers; a plain ``int`` is written
``Character``, ``BigInteger``              as ``Integer``, ``Long`` or ``BigInteger``, the first that holds it
``BigDecimal``, ``UUID``                   ``Decimal``, ``UUID``
``byte[]``, arrays of primitives           ``bytes``, NumPy arrays (``char[]`` is ``uint16``)
other arrays                               :class:`JavaArray`, a list
``ArrayList``, ``HashMap``, ``ArrayDeque``  ``list``, ``dict``, ``deque``
other lists, maps, and all sets            :class:`JavaList`, :class:`JavaMap`, :class:`JavaSet` with their class
``Collections.unmodifiableList``, ...      :class:`ListView`, :class:`MapView`, :class:`SetView`, :class:`Copies`
``java.time``, ``Date``, ``Timestamp``     ``datetime`` and similar types, see the table in ``values``
enums, ``Class``                           :class:`JavaEnum`, :class:`JavaClass`
everything else                            :class:`JavaObject`: class descriptor, fields in order, annotations
=========================================  ==========================================================================

A class is never looked up by a name in an event, so an event cannot execute code. A value that was read is written
again as the same bytes if Java would write the same bytes. Python cannot compute the serialVersionUID of an
application's class: pass a :class:`ClassDescriptor`, or learn it from an event (:meth:`JavaSerializer.learn`).

Modules:

- ``protocol``: bytes of the stream protocol
- ``model``: records of a stream
- ``values``: Python's forms of Java's values
- ``hashing``: Java's hash codes and equality of keys
- ``jdk_classes``: descriptors of the JDK's classes
- ``jdk``, ``jdk_time``, ``jdk_collections``: reading and writing of the JDK's objects
- ``descriptors``: reading and compilation of class descriptors
- ``rows``, ``write_rows``: reading and writing of one event
- ``types``: Arrow types of Java's types
- ``convert``: conversion of single values between them
- ``columns``, ``write_columns``: reading and writing of whole columns
- ``serializer``: :class:`JavaSerializer`
"""

from typing import TYPE_CHECKING

from pravega_serde.java.descriptors import Limits
from pravega_serde.java.model import (
    NOT_WRITTEN,
    BlockData,
    ClassDescriptor,
    Field,
    JavaClass,
    JavaEnum,
    JavaObject,
    OwnOrder,
    ProxyDescriptor,
)
from pravega_serde.java.serializer import JavaSerializer, dump_stream, load_stream
from pravega_serde.java.values import (
    BigDecimal,
    BigInteger,
    Boolean,
    Byte,
    ByteArray,
    Character,
    Copies,
    Date,
    Double,
    Float,
    Integer,
    JavaArray,
    JavaKey,
    JavaList,
    JavaMap,
    JavaSet,
    ListView,
    Long,
    MapView,
    MonthDay,
    NanoDatetime,
    NanoDuration,
    NanoTime,
    Period,
    SetView,
    Short,
    SqlDate,
    SqlTime,
    String,
    Timestamp,
    Year,
    YearMonth,
    ZoneOffset,
    ZoneRegion,
)
from pravega_serde.public_names import unknown_names

__all__ = [
    "NOT_WRITTEN",
    "BigDecimal",
    "BigInteger",
    "BlockData",
    "Boolean",
    "Byte",
    "ByteArray",
    "Character",
    "ClassDescriptor",
    "Copies",
    "Date",
    "Double",
    "Field",
    "Float",
    "Integer",
    "JavaArray",
    "JavaClass",
    "JavaEnum",
    "JavaKey",
    "JavaList",
    "JavaMap",
    "JavaObject",
    "JavaSerializer",
    "JavaSet",
    "Limits",
    "ListView",
    "Long",
    "MapView",
    "MonthDay",
    "NanoDatetime",
    "NanoDuration",
    "NanoTime",
    "OwnOrder",
    "Period",
    "ProxyDescriptor",
    "SetView",
    "Short",
    "SqlDate",
    "SqlTime",
    "String",
    "Timestamp",
    "Year",
    "YearMonth",
    "ZoneOffset",
    "ZoneRegion",
    "dump_stream",
    "load_stream",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
