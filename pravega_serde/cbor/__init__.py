"""CBOR (RFC 8949), as Jackson and other libraries write it, with the library cbor2 (extra ``cbor``).

- :mod:`~pravega_serde.cbor.serializer` has the class of the format.
- :mod:`~pravega_serde.cbor.rows` reads events one at a time.
- :mod:`~pravega_serde.cbor.scan` reports the fault of events that cbor2 refuses, and the cost of large ones.
- :mod:`~pravega_serde.cbor.convert` converts values to those of Arrow types.
- :mod:`~pravega_serde.cbor.write_rows` writes events one at a time.
- :mod:`~pravega_serde.cbor.write_columns` converts columns to rows.
"""

from pravega_serde.cbor.serializer import CborSerializer

__all__ = ["CborSerializer"]
