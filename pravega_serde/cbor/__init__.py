"""CBOR (RFC 8949), as Jackson and other libraries write it, by the library cbor2 (extra ``cbor``).

:mod:`~pravega_serde.cbor.serializer` has the class of the format. :mod:`~pravega_serde.cbor.rows` reads events one at a
time, :mod:`~pravega_serde.cbor.scan` says what is wrong with those that cbor2 refuses and what large ones would cost,
:mod:`~pravega_serde.cbor.convert` makes values those of Arrow types, and :mod:`~pravega_serde.cbor.columns` reads whole
columns. :mod:`~pravega_serde.cbor.write_rows` and :mod:`~pravega_serde.cbor.write_columns` write the same bytes.
"""

from pravega_serde.cbor.serializer import CborSerializer

__all__ = ["CborSerializer"]
