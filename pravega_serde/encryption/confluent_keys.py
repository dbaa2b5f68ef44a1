"""Key service that uses the key management services of Confluent's clients."""

from __future__ import annotations

import hashlib
import hmac
import importlib
import os
from collections.abc import Mapping
from typing import Any, Final

from pravega_serde.encryption.keys import aead, invalid_tag
from pravega_serde.errors import EncryptionKeyError, MissingExtraError

_NONCE: Final = 12
_LOCAL: Final = "local-kms"
_DRIVERS: Final = "confluent_kafka.schema_registry.rules.encryption"
#: Type of a KMS -> module and class of Confluent's driver.
_CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "aws-kms": (f"{_DRIVERS}.awskms.aws_driver", "AwsKmsDriver"),
    "azure-kms": (f"{_DRIVERS}.azurekms.azure_driver", "AzureKmsDriver"),
    "gcp-kms": (f"{_DRIVERS}.gcpkms.gcp_driver", "GcpKmsDriver"),
    "hcvault": (f"{_DRIVERS}.hcvault.hcvault_driver", "HcVaultKmsDriver"),
}


class ConfluentKeys:
    """Key service for the key-encryption keys of a Confluent registry, a :class:`KeyService`.

    The name of a key is its type and id: ``aws-kms://arn:aws:kms:…``. ``config`` has the settings of Confluent's
    clients, such as ``secret`` of ``local-kms``, ``token.id`` of ``hcvault``, ``access.key.id`` of ``aws-kms``. By
    default, they come from the environment, as in Confluent's clients: ``LOCAL_SECRET``, ``VAULT_TOKEN``, and the
    defaults of each cloud. The types ``aws-kms``, ``azure-kms``, ``gcp-kms`` and ``hcvault`` need the extra ``kms``.
    """

    def __init__(self, config: Mapping[str, str] | None = None) -> None:
        self._config = dict(config or {})
        self._made: dict[str, Any] = {}

    def __repr__(self) -> str:
        return "ConfluentKeys()"  # the settings have secrets

    def __eq__(self, other: object) -> bool:
        return self._config == other._config if isinstance(other, ConfluentKeys) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._config.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConfluentKeys, (self._config,)

    def wrap(self, key_name: str, data_key: bytes) -> bytes:
        """Return the wrapped data key. Raises :class:`EncryptionKeyError` for an unknown type of KMS."""
        made: bytes = self._primitive(key_name).encrypt(data_key, b"")
        return made

    def unwrap(self, key_name: str, wrapped: bytes) -> bytes:
        """Return the data key. Raises :class:`EncryptionKeyError` for an unknown type of KMS and for another key."""
        found: bytes = self._primitive(key_name).decrypt(wrapped, b"")
        return found

    def _primitive(self, key_name: str) -> Any:
        made = self._made.get(key_name)
        if made is None:
            kind = key_name.partition("://")[0]
            made = self._made[key_name] = self._local() if kind == _LOCAL else self._remote(kind, key_name)
        return made

    def _local(self) -> _LocalKey:
        secret = self._config.get("secret", os.environ.get("LOCAL_SECRET"))
        if secret is None:
            raise EncryptionKeyError(
                "the key service local-kms has no secret: set LOCAL_SECRET, or config={'secret': …}"
            )
        return _LocalKey(secret)

    def _remote(self, kind: str, key_name: str) -> Any:
        if kind not in _CLASSES:
            raise EncryptionKeyError(
                f"there is no key service for the type {kind!r} of {key_name[:200]!r}; known: "
                f"{', '.join((_LOCAL, *_CLASSES))}. Pass a service with wrap and unwrap for it"
            )
        module, name = _CLASSES[kind]
        try:
            driver = getattr(importlib.import_module(module), name)()
        except ImportError as error:
            raise MissingExtraError(
                error.name or "confluent-kafka", "kms", purpose=f"the key service {kind}"
            ) from error
        return driver.new_kms_client(self._config, key_name).get_aead(key_name)


class _LocalKey:
    """Key of Confluent's local key service: AES-128-GCM with a key derived from a secret."""

    def __init__(self, secret: str) -> None:
        extracted = hmac.digest(bytes(hashlib.sha256().digest_size), secret.encode(), hashlib.sha256)
        self._cipher = aead().AESGCM(hmac.digest(extracted, b"\1", hashlib.sha256)[:16])

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        nonce = os.urandom(_NONCE)
        sealed: bytes = self._cipher.encrypt(nonce, data, context)
        return nonce + sealed

    def decrypt(self, sealed: bytes, context: bytes) -> bytes:
        try:
            data: bytes = self._cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], context)
        except invalid_tag():
            raise EncryptionKeyError(
                "the secret of local-kms did not wrap this data key, or the data key is damaged"
            ) from None
        return data
