"""Envelopes: events with a key, a time and headers, which Pravega's events lack.

- ``envelope`` is the value that programs write and read.
- ``serializer`` puts the events of another serializer into envelopes.
- ``attributes`` splits and joins columns of attributes.
- ``cloudevents`` has the rules of CloudEvents. ``cloudevents_json``, ``cloudevents_avro`` and ``cloudevents_protobuf``
  are its event formats.
- ``debezium`` reads change events of databases.
"""

from typing import TYPE_CHECKING

from pravega_serde.envelopes.debezium import ChangeDeserializer, RowChange, change_type, distinct_changes
from pravega_serde.envelopes.envelope import Envelope
from pravega_serde.envelopes.serializer import VALUE, Enveloped, enveloped_fields
from pravega_serde.public_names import unknown_names

__all__ = [
    "VALUE",
    "ChangeDeserializer",
    "Envelope",
    "Enveloped",
    "RowChange",
    "change_type",
    "distinct_changes",
    "enveloped_fields",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
