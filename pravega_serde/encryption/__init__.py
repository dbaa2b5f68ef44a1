"""Encryption of fields of events (extra ``encryption``).

- :mod:`~pravega_serde.encryption.serializer` has the class that wraps a serializer.
- :mod:`~pravega_serde.encryption.keys` has the sets of data keys, and the interface of key services.
- :mod:`~pravega_serde.encryption.confluent_keys` has the key service of Confluent's clients.
- :mod:`~pravega_serde.encryption.paths` finds fields in values, messages and columns.
- :mod:`~pravega_serde.encryption.values` has the form of an encrypted value.
- :mod:`~pravega_serde.encryption.siv` is the cipher, for whole columns.
"""

from pravega_serde.encryption.confluent_keys import ConfluentKeys
from pravega_serde.encryption.keys import DataKeys, KeyService, LocalKeys
from pravega_serde.encryption.serializer import Encrypted

__all__ = ["ConfluentKeys", "DataKeys", "Encrypted", "KeyService", "LocalKeys"]
