"""CBOR (RFC 8949), as Jackson and other libraries write it, with the library cbor2 (extra ``cbor``).

- :mod:`~pravega_serde.cbor.serializer` has the class of the format.
- :mod:`~pravega_serde.cbor.rows` reads events one at a time.
- :mod:`~pravega_serde.cbor.scan` reports the fault of events that cbor2 refuses, and the cost of large ones.
- :mod:`~pravega_serde.cbor.convert` converts values to those of Arrow types.
- :mod:`~pravega_serde.cbor.write_rows` writes events one at a time.
- :mod:`~pravega_serde.cbor.write_columns` converts columns to rows.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.cbor.serializer import CborSerializer as CborSerializer
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "serializer": "CborSerializer",
        },
    )
