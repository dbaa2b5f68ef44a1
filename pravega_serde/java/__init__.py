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

if TYPE_CHECKING:
    from pravega_serde.java.descriptors import Limits as Limits
    from pravega_serde.java.model import NOT_WRITTEN as NOT_WRITTEN
    from pravega_serde.java.model import BlockData as BlockData
    from pravega_serde.java.model import ClassDescriptor as ClassDescriptor
    from pravega_serde.java.model import Field as Field
    from pravega_serde.java.model import JavaClass as JavaClass
    from pravega_serde.java.model import JavaEnum as JavaEnum
    from pravega_serde.java.model import JavaObject as JavaObject
    from pravega_serde.java.model import OwnOrder as OwnOrder
    from pravega_serde.java.model import ProxyDescriptor as ProxyDescriptor
    from pravega_serde.java.serializer import JavaSerializer as JavaSerializer
    from pravega_serde.java.serializer import dump_stream as dump_stream
    from pravega_serde.java.serializer import load_stream as load_stream
    from pravega_serde.java.values import BigDecimal as BigDecimal
    from pravega_serde.java.values import BigInteger as BigInteger
    from pravega_serde.java.values import Boolean as Boolean
    from pravega_serde.java.values import Byte as Byte
    from pravega_serde.java.values import ByteArray as ByteArray
    from pravega_serde.java.values import Character as Character
    from pravega_serde.java.values import Copies as Copies
    from pravega_serde.java.values import Date as Date
    from pravega_serde.java.values import Double as Double
    from pravega_serde.java.values import Float as Float
    from pravega_serde.java.values import Integer as Integer
    from pravega_serde.java.values import JavaArray as JavaArray
    from pravega_serde.java.values import JavaKey as JavaKey
    from pravega_serde.java.values import JavaList as JavaList
    from pravega_serde.java.values import JavaMap as JavaMap
    from pravega_serde.java.values import JavaSet as JavaSet
    from pravega_serde.java.values import ListView as ListView
    from pravega_serde.java.values import Long as Long
    from pravega_serde.java.values import MapView as MapView
    from pravega_serde.java.values import MonthDay as MonthDay
    from pravega_serde.java.values import NanoDatetime as NanoDatetime
    from pravega_serde.java.values import NanoDuration as NanoDuration
    from pravega_serde.java.values import NanoTime as NanoTime
    from pravega_serde.java.values import Period as Period
    from pravega_serde.java.values import SetView as SetView
    from pravega_serde.java.values import Short as Short
    from pravega_serde.java.values import SqlDate as SqlDate
    from pravega_serde.java.values import SqlTime as SqlTime
    from pravega_serde.java.values import String as String
    from pravega_serde.java.values import Timestamp as Timestamp
    from pravega_serde.java.values import Year as Year
    from pravega_serde.java.values import YearMonth as YearMonth
    from pravega_serde.java.values import ZoneOffset as ZoneOffset
    from pravega_serde.java.values import ZoneRegion as ZoneRegion
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "descriptors": "Limits",
            "model": (
                "NOT_WRITTEN BlockData ClassDescriptor Field JavaClass JavaEnum JavaObject OwnOrder ProxyDescriptor"
            ),
            "serializer": "JavaSerializer dump_stream load_stream",
            "values": (
                "BigDecimal BigInteger Boolean Byte ByteArray Character Copies Date Double Float Integer "
                "JavaArray JavaKey JavaList JavaMap JavaSet ListView Long MapView MonthDay NanoDatetime "
                "NanoDuration NanoTime Period SetView Short SqlDate SqlTime String Timestamp Year YearMonth "
                "ZoneOffset ZoneRegion"
            ),
        },
    )
