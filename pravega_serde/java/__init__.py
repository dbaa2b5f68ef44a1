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
``java.time``, ``Date``, ``Timestamp``     ``datetime`` and its kin, see the table in ``_temporal``
enums, ``Class``                           :class:`JavaEnum`, :class:`JavaClass`
everything else                            :class:`JavaObject`: class descriptor, fields in order, annotations
=========================================  ==========================================================================

No class is ever looked up by a name that stands in an event, so nothing in an event can run. What was read is written
again as the same bytes wherever Java would write the same bytes. Of a class of your own Python cannot compute the
serialVersionUID: give a :class:`ClassDescriptor`, or learn it from an event (:meth:`JavaSerializer.learn`).
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
