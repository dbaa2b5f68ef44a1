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
other lists, maps, and all sets            :class:`JavaList`, :class:`JavaMap`, :class:`JavaSet`: they know their class
``Collections.unmodifiableList``, ...      :class:`ListView`, :class:`MapView`, :class:`SetView`, :class:`Copies`
``java.time``, ``Date``, ``Timestamp``     ``datetime`` and its kin, see the table in ``values``
enums, ``Class``                           :class:`JavaEnum`, :class:`JavaClass`
everything else                            :class:`JavaObject`: class descriptor, fields in order, annotations
=========================================  ==========================================================================

No class is ever looked up by a name that stands in an event, so nothing in an event can run. A value that was read is
written again as the same bytes wherever Java would write the same bytes. Python cannot compute the serialVersionUID of
a class of your own: give a :class:`ClassDescriptor`, or learn it from an event (:meth:`JavaSerializer.learn`).

Where what is: ``protocol`` has the bytes of the stream protocol, ``model`` the records of a stream, ``values`` Python's
forms of Java's values, ``hashing`` Java's hash codes and equality of keys. ``jdk_classes`` describes the JDK's classes;
``jdk``, ``jdk_time`` and ``jdk_collections`` read and write their objects. ``descriptors`` reads and compiles class
descriptors, ``rows`` reads and ``write_rows`` writes one event. ``types`` has the Arrow types of Java's, ``convert``
converts single values between them, ``columns`` reads and ``write_columns`` writes whole columns. ``serializer`` is
:class:`JavaSerializer`.
"""

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
