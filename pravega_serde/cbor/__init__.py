"""CBOR (RFC 8949), as Jackson and other libraries write it, with the library cbor2 (extra ``cbor``).

- :mod:`~pravega_serde.cbor.serializer` has the class of the format.
- :mod:`~pravega_serde.cbor.rows` reads events one at a time.
- :mod:`~pravega_serde.cbor.scan` reports the fault of events that cbor2 refuses, and the cost of large ones.
- :mod:`~pravega_serde.cbor.convert` converts values to those of Arrow types.
- :mod:`~pravega_serde.cbor.write_rows` writes events one at a time.
- :mod:`~pravega_serde.cbor.write_columns` converts columns to rows.
"""

from typing import TYPE_CHECKING

from pravega_serde.cbor.serializer import CborSerializer
from pravega_serde.public_names import unknown_names

__all__ = ["CborSerializer"]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
