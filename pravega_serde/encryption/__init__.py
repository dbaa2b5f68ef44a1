"""Encryption of fields of events (extra ``encryption``).

- :mod:`~pravega_serde.encryption.serializer` has the class that wraps a serializer.
- :mod:`~pravega_serde.encryption.keys` has the sets of data keys, and the interface of key services.
- :mod:`~pravega_serde.encryption.confluent_keys` has the key service of Confluent's clients.
- :mod:`~pravega_serde.encryption.paths` finds fields in values, messages and columns.
- :mod:`~pravega_serde.encryption.values` has the form of an encrypted value.
- :mod:`~pravega_serde.encryption.siv` is the cipher, for whole columns.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.encryption.confluent_keys import ConfluentKeys as ConfluentKeys
    from pravega_serde.encryption.keys import DataKeys as DataKeys
    from pravega_serde.encryption.keys import KeyService as KeyService
    from pravega_serde.encryption.keys import LocalKeys as LocalKeys
    from pravega_serde.encryption.paths import FieldPath as FieldPath
    from pravega_serde.encryption.serializer import Encrypted as Encrypted
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "confluent_keys": "ConfluentKeys",
            "keys": "DataKeys KeyService LocalKeys",
            "paths": "FieldPath",
            "serializer": "Encrypted",
        },
    )
