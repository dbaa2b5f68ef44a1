"""Envelopes: events with a key, a time and headers, which Pravega's events lack.

- ``envelope`` is the value that programs write and read.
- ``serializer`` puts the events of another serializer into envelopes.
- ``attributes`` splits and joins columns of attributes.
- ``cloudevents`` has the rules of CloudEvents. ``cloudevents_json``, ``cloudevents_avro`` and ``cloudevents_protobuf``
  are its event formats.
- ``debezium`` reads change events of databases.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.envelopes.debezium import ChangeDeserializer as ChangeDeserializer
    from pravega_serde.envelopes.debezium import RowChange as RowChange
    from pravega_serde.envelopes.debezium import change_type as change_type
    from pravega_serde.envelopes.debezium import distinct_changes as distinct_changes
    from pravega_serde.envelopes.envelope import Envelope as Envelope
    from pravega_serde.envelopes.serializer import VALUE as VALUE
    from pravega_serde.envelopes.serializer import Enveloped as Enveloped
    from pravega_serde.envelopes.serializer import enveloped_fields as enveloped_fields
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "debezium": "ChangeDeserializer RowChange change_type distinct_changes",
            "envelope": "Envelope",
            "serializer": "VALUE Enveloped enveloped_fields",
        },
    )
