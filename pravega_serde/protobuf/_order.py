"""In which order Google's deterministic writer puts the entries of a map: what columns must do to be written as rows.

By their keys, but versions differ: some put a string before those that it begins with, or true before false, and some
do not. So it is asked.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = ["ranks"]

_STRING, _BOOL = 9, 8


def _map_of(key_type: int) -> type:
    """A message ``M`` with a map of such keys to booleans, ``m``."""
    optional, repeated, message_type = 1, 3, 11
    options = descriptor_pb2.MessageOptions(map_entry=True)
    entry = descriptor_pb2.DescriptorProto(name="E", options=options)
    entry.field.add(name="key", number=1, type=key_type, label=optional)
    entry.field.add(name="value", number=2, type=_BOOL, label=optional)
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto3")
    message = file.message_type.add(name="M", nested_type=[entry])
    message.field.add(name="m", number=1, type=message_type, label=repeated, type_name=".M.E")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("M"))


def _is_first(key_type: int, key: str | bool, other: str | bool) -> bool:
    """Whether a key is written before another."""
    message = _map_of(key_type)
    one, both = message(m={key: False}), message(m={key: False, other: False})
    written: bytes = both.SerializeToString(deterministic=True)
    return written.startswith(one.SerializeToString())


_LONGER_FIRST: Final = _is_first(_STRING, "ab", "a")
_TRUE_FIRST: Final = _is_first(_BOOL, True, False)


def ranks(keys: pa.Array) -> pa.Array:
    """What keys are to be sorted by."""
    if _TRUE_FIRST and pa.types.is_boolean(keys.type):
        return pc.invert(keys)
    if _LONGER_FIRST and pa.types.is_string(keys.type):
        # No byte of UTF-8 is as high as FF.
        return pc.binary_join_element_wise(keys.cast(pa.binary()), b"\xff", b"")
    return keys
