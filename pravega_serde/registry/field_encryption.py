"""Encryption by rules of a Confluent registry: its data keys, and values in the form of Tink without a prefix.

| bytes | content |
|---|---|
| 5 | only with keys that expire: a zero, and the version of the data key, big-endian |
| 12 | only AES-GCM: a random nonce |
| 16 | only AES-SIV: the tag |
| rest | the encrypted value, with AES-GCM the tag at its end |

Strings are Base64. The registry has the data keys (DEK), wrapped by a key-encryption key (KEK) of a key service. It has
one series of versions for each KEK, subject and algorithm.
"""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from pravega_serde.encryption.confluent_keys import ConfluentKeys
from pravega_serde.encryption.keys import KeyService, aead, called, invalid_tag, service_named
from pravega_serde.errors import (
    DecryptionError,
    EncryptionKeyError,
    RegistryConflictError,
    RegistryNotFoundError,
    UnsupportedRuleError,
)
from pravega_serde.registry import answers as parse
from pravega_serde.registry.calls import Call, in_path
from pravega_serde.registry.rule_set import Rule, RuleSet

T = TypeVar("T")

_KEK_NAME: Final = "encrypt.kek.name"
_KMS_TYPE: Final = "encrypt.kms.type"
_KMS_KEY: Final = "encrypt.kms.key.id"
_ALGORITHM: Final = "encrypt.dek.algorithm"
_EXPIRY: Final = "encrypt.dek.expiry.days"
_ALTERNATES: Final = "encrypt.alternate.kms.key.ids"

_DEFAULT_ALGORITHM: Final = "AES256_GCM"
#: Algorithm -> bytes of a key, and the number of the key's field in the message of Tink that holds it.
_KEYS: Final = {"AES128_GCM": (16, 3), "AES256_GCM": (32, 3), "AES256_SIV": (64, 2)}
_NONCE: Final = 12
_TAG: Final = 16
_VERSION_PREFIX: Final = 5
_LATEST: Final = -1
_LARGEST_VERSION: Final = (1 << 31) - 1
_DAY_MS: Final = 24 * 60 * 60 * 1000


class UnsealedError(DecryptionError):
    """Error for a value that does not have the form of an encrypted one."""


class Requests(Protocol):
    """Requests to the registry of a subject."""

    def run(self, call: Call[T]) -> T:
        """Return the result of a call."""

    def cached(self, key: tuple[object, ...], load: Callable[[], T], *, latest: bool = False) -> T:
        """Return a cached result. ``latest`` results are loaded again after some seconds."""

    def forget(self, key: tuple[object, ...]) -> None:
        """Discard a cached result."""


@dataclass(frozen=True, slots=True)
class _Kek:
    name: str
    kms_type: str
    kms_key: str
    properties: Mapping[str, str]
    shared: bool

    @classmethod
    def from_json(cls, body: object) -> _Kek:
        properties = parse.optional(body, "kmsProps", lambda found: {name: str(each) for name, each in found.items()})
        shared = isinstance(body, Mapping) and body.get("shared") is True
        name, kind, key = (parse.text(body, each) for each in ("name", "kmsType", "kmsKeyId"))
        return cls(name, kind, key, properties or {}, shared)

    def key_names(self) -> list[str]:
        """Return the names of the key for a key service, and of its alternatives."""
        others = [each.strip() for each in self.properties.get(_ALTERNATES, "").split(",")]
        return [f"{self.kms_type}://{each}" for each in (self.kms_key, *filter(None, others))]


@dataclass(frozen=True, slots=True)
class _Dek:
    version: int
    wrapped: bytes | None
    material: bytes | None
    """The key itself, if the registry can unwrap it."""
    created_ms: int

    @classmethod
    def from_json(cls, body: object) -> _Dek:
        found = [
            parse.data(body, name) if isinstance(body, Mapping) and body.get(name) else None
            for name in ("encryptedKeyMaterial", "keyMaterial")
        ]
        created = parse.integer(body, "ts") if isinstance(body, Mapping) and body.get("ts") is not None else 0
        return cls(parse.integer(body, "version"), found[0], found[1], created)


class RuleCipher:
    """Cipher of one rule for a subject. Data keys are requested when they are needed, once in a process.

    Raises :class:`UnsupportedRuleError` for parameters that are not known here.
    """

    def __init__(
        self, rule: Rule, rules: RuleSet, subject: str, requests: Requests, key_service: KeyService | str | None
    ) -> None:
        self._rule, self._rules, self._subject, self._requests = rule, rules, subject, requests
        self._key_service = key_service
        # A service has only its own access to keys: what another one has unwrapped is not for it.
        self._opened_by = key_service if isinstance(key_service, Hashable) else object()
        self._ciphers: dict[int, Any] = {}
        self._kek_name = self._parameter(_KEK_NAME) or ""
        if not self._kek_name:
            raise UnsupportedRuleError(f"{rule.title} has no parameter {_KEK_NAME}, the name of its key")
        self._algorithm = self._parameter(_ALGORITHM) or _DEFAULT_ALGORITHM
        if self._algorithm not in _KEYS:
            raise UnsupportedRuleError(f"{rule.title} has the algorithm {self._algorithm!r}; known: {', '.join(_KEYS)}")
        days = self._parameter(_EXPIRY) or "0"
        if not days.isdecimal():
            raise UnsupportedRuleError(f"{rule.title} has {_EXPIRY} {days!r}, which is not a number of days")
        self._expiry_ms = int(days) * _DAY_MS
        self._path = f"/dek-registry/v1/keks/{in_path(self._kek_name)}"
        # Keys of a subject in a context, as in ":.context:subject", are of that context.
        context = subject[1:].partition(":")[0] if subject.startswith(":.") else "."
        self._context = {} if context == "." else {"context": context}
        self._key = ("dek", self._kek_name, subject, self._algorithm)
        self._invalid_tag = invalid_tag()

    def _parameter(self, name: str) -> str | None:
        return self._rules.parameter(self._rule, name)

    @property
    def is_deterministic(self) -> bool:
        """True if equal values have equal encrypted forms."""
        return self._algorithm == "AES256_SIV" and not self._expiry_ms

    def seal(self, value: bytes) -> bytes:
        """Return the encrypted form of a value. Raises :class:`EncryptionKeyError`, RegistryError."""
        version, cipher = self._newest()
        if self._algorithm == "AES256_SIV":
            sealed: bytes = cipher.encrypt(value, [b""])
        else:
            nonce = os.urandom(_NONCE)
            sealed = nonce + cipher.encrypt(nonce, value, b"")
        return b"\0" + version.to_bytes(4) + sealed if self._expiry_ms else sealed

    def open(self, sealed: bytes) -> bytes:
        """Return the value of an encrypted form.

        Raises :class:`DecryptionError`, also for a version of the data key that does not exist if others do;
        :class:`UnsealedError`, :class:`EncryptionKeyError`, RegistryError.
        """
        version = 1
        if self._expiry_ms:
            if len(sealed) < _VERSION_PREFIX or sealed[0]:
                raise UnsealedError("the value is not encrypted: it does not begin with the version of a data key")
            version, sealed = int.from_bytes(sealed[1:_VERSION_PREFIX]), sealed[_VERSION_PREFIX:]
            if not 0 < version <= _LARGEST_VERSION:
                raise DecryptionError(f"the value was changed: it names version {version} of a data key")
        if len(sealed) < _TAG + (0 if self._algorithm == "AES256_SIV" else _NONCE):
            raise UnsealedError("the value is not encrypted: it is too short")
        cipher = self._cipher(version)
        try:
            if self._algorithm == "AES256_SIV":
                plain: bytes = cipher.decrypt(sealed, [b""])
            else:
                plain = cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], b"")
        except (self._invalid_tag, ValueError):
            raise DecryptionError(
                f"the value cannot be decrypted with version {version} of the data key of {self._kek_name!r} for "
                f"{self._subject!r}: it is not encrypted, was changed, or has another key"
            ) from None
        return plain

    def seal_text(self, value: str) -> str:
        """Return the encrypted text of a text."""
        return base64.b64encode(self.seal(value.encode())).decode()

    def open_text(self, sealed: str) -> str:
        """Return the text of an encrypted text; see :meth:`open`."""
        try:
            data = base64.b64decode(sealed, validate=True)
        except (binascii.Error, ValueError):
            raise UnsealedError("the value is not encrypted: it is not Base64") from None
        try:
            return self.open(data).decode()
        except UnicodeDecodeError:
            raise DecryptionError("the decrypted value is not text in UTF-8") from None

    # ---- keys ----

    def _newest(self) -> tuple[int, Any]:
        """Return the key that encrypts. It is created if there is none, or if the newest one has expired."""
        if not self._expiry_ms:
            made = self._ciphers.get(1)
            if made is None:
                found = self._requests.cached((*self._key, 1, self._opened_by), lambda: self._opened(self._written(1)))
                made = self._ciphers[1] = found
            return 1, made
        dek: _Dek = self._requests.cached((*self._key, _LATEST), lambda: self._written(_LATEST), latest=True)
        if time.time() * 1000 - dek.created_ms > self._expiry_ms:
            self._requests.forget((*self._key, _LATEST))
            newer = self._created(dek.version + 1)
            dek = self._requests.cached((*self._key, _LATEST), lambda: newer, latest=True)
        return dek.version, self._cipher(dek.version, dek)

    def _cipher(self, version: int, known: _Dek | None = None) -> Any:
        made = self._ciphers.get(version)
        if made is None:
            made = self._ciphers[version] = self._requests.cached(
                (*self._key, version, self._opened_by),
                lambda: self._opened(known or self._found(version, deleted=True)),
            )
        return made

    def _written(self, version: int) -> _Dek:
        return self._looked_up(version, deleted=False) or self._created(1)

    def _found(self, version: int, *, deleted: bool) -> _Dek:
        found = self._looked_up(version, deleted=deleted)
        if found is None and self._looked_up(_LATEST, deleted=True) is not None:
            raise DecryptionError(
                f"the value names version {version} of the data key of {self._kek_name!r} for {self._subject!r}, which "
                "does not exist although others do: the value was changed, or that version was removed"
            )
        if found is None:
            raise EncryptionKeyError(
                f"the registry has no data key of {self._kek_name!r} for subject {self._subject!r}, version {version} "
                f"and algorithm {self._algorithm}: read with the subject of the writer"
            )
        return found

    def _looked_up(self, version: int, *, deleted: bool) -> _Dek | None:
        call = Call(
            purpose=f"read the data key of {self._kek_name!r} for subject {self._subject!r}",
            method="GET",
            path=f"{self._path}/deks/{in_path(self._subject)}/versions/{version}",
            query={"algorithm": self._algorithm, "deleted": str(deleted).lower()},
            answers={200: _Dek.from_json},
        )
        try:
            return self._requests.run(call)
        except RegistryNotFoundError:
            return None

    def _created(self, version: int) -> _Dek:
        kek = self._kek(create=True)
        body: dict[str, Any] = {"subject": self._subject, "version": version, "algorithm": self._algorithm}
        if not kek.shared:
            key, number = _KEYS[self._algorithm]
            # The message of Tink: one field of bytes.
            raw = bytes((number << 3 | 2, key)) + os.urandom(key)
            wrapped = self._through(kek, "wrap", raw)
            body["encryptedKeyMaterial"] = base64.b64encode(wrapped).decode()
        call = Call(
            purpose=f"add a data key of {self._kek_name!r} for subject {self._subject!r}",
            method="POST",
            path=f"{self._path}/deks/{in_path(self._subject)}",
            body=body,
            answers={200: _Dek.from_json},
            changes=True,
        )
        try:
            return self._requests.run(call)
        except RegistryConflictError:  # another writer was faster
            return self._found(version, deleted=False)

    def _opened(self, dek: _Dek) -> Any:
        """Return the cipher of a data key."""
        material = dek.material
        if material is None:
            if dek.wrapped is None:
                raise EncryptionKeyError(f"the data key of {self._kek_name!r} in the registry has no key material")
            material = self._through(self._kek(create=False), "unwrap", dek.wrapped)
        size, number = _KEYS[self._algorithm]
        key = _field_of(material, number)
        if key is None or len(key) != size:
            raise EncryptionKeyError(f"the data key of {self._kek_name!r} is not a key of {self._algorithm}")
        ciphers = aead()
        return ciphers.AESSIV(key) if self._algorithm == "AES256_SIV" else ciphers.AESGCM(key)

    def _through(self, kek: _Kek, operation: str, data: bytes) -> bytes:
        """Wrap or unwrap a data key with the key service, or with an alternative key if it fails."""
        service = self._key_service
        if service is None:
            service = ConfluentKeys(kek.properties)
        elif isinstance(service, str):
            service = service_named(service)
        *first, last = kek.key_names()
        for name in first:
            try:
                return called(getattr(service, operation), name, data)
            except EncryptionKeyError:
                continue
        return called(getattr(service, operation), last, data)

    def _kek(self, *, create: bool) -> _Kek:
        kek: _Kek = self._requests.cached(
            ("kek", self._kek_name, *self._context.values()), lambda: self._load_kek(create=create)
        )
        for name, own in ((_KMS_TYPE, kek.kms_type), (_KMS_KEY, kek.kms_key)):
            wanted = self._parameter(name)
            if wanted and wanted != own:
                raise EncryptionKeyError(
                    f"the key {self._kek_name!r} in the registry has {name} {own!r}, but {self._rule.title} has "
                    f"{wanted!r}"
                )
        return kek

    def _load_kek(self, *, create: bool) -> _Kek:
        found = Call(
            purpose=f"read the key-encryption key {self._kek_name!r}",
            method="GET",
            path=self._path,
            query={"deleted": "false", **self._context},
            answers={200: _Kek.from_json},
        )
        try:
            return self._requests.run(found)
        except RegistryNotFoundError:
            kms_type, kms_key = self._parameter(_KMS_TYPE), self._parameter(_KMS_KEY)
            if not create or not kms_type or not kms_key:
                raise EncryptionKeyError(
                    f"the registry has no key-encryption key {self._kek_name!r} for {self._rule.title}"
                    + (f": create it there, or add {_KMS_TYPE} and {_KMS_KEY} to the rule" if create else "")
                ) from None
        body = {"name": self._kek_name, "kmsType": kms_type, "kmsKeyId": kms_key, "shared": False}
        added = Call(
            purpose=f"add the key-encryption key {self._kek_name!r}",
            method="POST",
            path="/dek-registry/v1/keks",
            query=self._context,
            body=body,
            answers={200: _Kek.from_json},
            changes=True,
        )
        try:
            return self._requests.run(added)
        except RegistryConflictError:
            return self._requests.run(found)


def _field_of(message: bytes, number: int) -> bytes | None:
    """Return a field of bytes in a message that has only varints of one byte and bytes."""
    at = 0
    while at + 1 < len(message):
        tag, value = message[at], message[at + 1]
        at += 2
        if tag & 7 == 2:
            if tag >> 3 == number:
                return message[at : at + value]
            at += value
    return None
