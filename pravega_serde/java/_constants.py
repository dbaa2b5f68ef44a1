"""Bytes of the Java Object Serialization Stream Protocol (``java.io.ObjectStreamConstants``, Java 17)."""

from __future__ import annotations

from typing import Final

STREAM_HEADER: Final = b"\xac\xed\x00\x05"
"""Magic and version; version 5 is the only one that was ever released."""

TC_NULL: Final = 0x70
TC_REFERENCE: Final = 0x71
TC_CLASSDESC: Final = 0x72
TC_OBJECT: Final = 0x73
TC_STRING: Final = 0x74
TC_ARRAY: Final = 0x75
TC_CLASS: Final = 0x76
TC_BLOCKDATA: Final = 0x77
TC_ENDBLOCKDATA: Final = 0x78
TC_RESET: Final = 0x79
TC_BLOCKDATALONG: Final = 0x7A
TC_EXCEPTION: Final = 0x7B
TC_LONGSTRING: Final = 0x7C
TC_PROXYCLASSDESC: Final = 0x7D
TC_ENUM: Final = 0x7E

SC_WRITE_METHOD: Final = 0x01
SC_SERIALIZABLE: Final = 0x02
SC_EXTERNALIZABLE: Final = 0x04
SC_BLOCK_DATA: Final = 0x08
SC_ENUM: Final = 0x10

BASE_HANDLE: Final = 0x7E0000
"""``baseWireHandle``: the number of the first object of a stream."""

MAX_BLOCK: Final = 1024
"""``BlockDataOutputStream.MAX_BLOCK_SIZE``: Java cuts its block data here."""

SHORT_BLOCK: Final = 255
"""Longest block that has a one-byte length."""

SHORT_STRING: Final = 65535
"""Longest TC_STRING, in bytes of modified UTF-8."""

NULL_EVENT: Final = STREAM_HEADER + b"\x70"
STRING_EVENT: Final = STREAM_HEADER + b"\x74"

PRIMITIVES: Final = "BCDFIJSZ"
"""Type codes of the primitive field types."""

STRUCT_CODES: Final = {"B": "b", "C": "H", "D": "d", "F": "f", "I": "i", "J": "q", "S": "h", "Z": "?"}
"""Type code of Java -> format character of :mod:`struct`, big-endian."""
