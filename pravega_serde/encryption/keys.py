"""Keys of encrypted fields: data keys, each wrapped by a key that a key service has."""

from __future__ import annotations

import base64
import binascii
import functools
import importlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, runtime_checkable

from pravega_serde.errors import EncryptionKeyError, MissingExtraError
from pravega_serde.format_table import imported

#: Bytes of a data key, and of a key-encryption key of :class:`LocalKeys`.
DATA_KEY_SIZE: Final = 64
_LOCAL_KEY_SIZE: Final = 32
_LARGEST_ID: Final = (1 << 32) - 1
_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@runtime_checkable
class KeyService(Protocol):
    """Service that keeps key-encryption keys, such as a KMS, and wraps data keys with them.

    An error of the service is raised as :class:`EncryptionKeyError` with the name of its class. Its text is not shown,
    because it may contain a secret. Each process calls ``unwrap`` once for each data key that it needs.
    """

    def wrap(self, key_name: str, data_key: bytes) -> bytes:
        """Return a data key of 64 bytes, encrypted and authenticated by the key-encryption key of this name."""

    def unwrap(self, key_name: str, wrapped: bytes) -> bytes:
        """Return the data key. Raise an error for an unknown name and for bytes that the key has not wrapped."""


class LocalKeys:
    """Key service with key-encryption keys of 32 bytes, for tests and for programs without a KMS.

    Data keys are wrapped with AES Key Wrap (RFC 3394), in Java ``AESWrap``.
    """

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        for name, key in keys.items():
            if not isinstance(key, bytes) or len(key) != _LOCAL_KEY_SIZE:
                raise EncryptionKeyError(f"the key-encryption key {name!r} must be {_LOCAL_KEY_SIZE} bytes")
        self._keys = dict(keys)

    def __repr__(self) -> str:
        return f"LocalKeys({', '.join(self._keys)})"

    @classmethod
    def generate(cls, *names: str) -> LocalKeys:
        """Return new random keys."""
        return cls({name: os.urandom(_LOCAL_KEY_SIZE) for name in names})

    @classmethod
    def load(cls, path: str | Path) -> LocalKeys:
        """Return the keys of a file that :meth:`save` wrote: a JSON object of names and keys in Base64."""
        found = _parsed(_read(path), f"the file of local keys {path}")
        if not isinstance(found, dict):
            raise EncryptionKeyError(f"the file of local keys {path} must be a JSON object of names and keys in Base64")
        return cls({name: _decoded(key, f"key-encryption key {name!r}") for name, key in found.items()})

    def save(self, path: str | Path) -> None:
        """Write the keys to a new file that only its owner can read. They are secret, and not encrypted there."""
        text = json.dumps({name: base64.b64encode(key).decode() for name, key in self._keys.items()}, indent=1)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")

    def wrap(self, key_name: str, data_key: bytes) -> bytes:
        """Return the wrapped data key. Raises :class:`EncryptionKeyError` for an unknown name."""
        wrapped: bytes = _keywrap().aes_key_wrap(self._key(key_name), data_key)
        return wrapped

    def unwrap(self, key_name: str, wrapped: bytes) -> bytes:
        """Return the data key. Raises :class:`EncryptionKeyError` for an unknown name and for another key."""
        keywrap = _keywrap()
        try:
            data_key: bytes = keywrap.aes_key_unwrap(self._key(key_name), wrapped)
        except keywrap.InvalidUnwrap:
            raise EncryptionKeyError(
                f"the key-encryption key {key_name!r} did not wrap this data key, or the data key is damaged"
            ) from None
        return data_key

    def _key(self, name: str) -> bytes:
        if name not in self._keys:
            raise EncryptionKeyError(f"there is no key-encryption key {name!r}; known: {', '.join(self._keys)}")
        return self._keys[name]


@dataclass(frozen=True, slots=True)
class _Wrapped:
    wrapped_by: str
    data: bytes


@dataclass(frozen=True, eq=False)
class DataKeys:
    """Set of data keys, each with a number. Values are encrypted with the newest one, and name it.

    ``service`` unwraps them: a :class:`KeyService`, the ``package.module:name`` of one, of its class or of a function
    that returns one, or the path of a file of :class:`LocalKeys`. Pass a name or a path if the serializer is sent to
    other processes, as with Spark. Each process then finds the service itself, and no secret is sent.
    """

    entries: Mapping[int, _Wrapped]
    service: KeyService | str = field(repr=False)
    _ciphers: dict[int, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def create(cls, service: KeyService | str, wrapped_by: str) -> DataKeys:
        """Return a set with one new data key. ``wrapped_by`` is the name of its key-encryption key."""
        return cls({}, service).rotated(wrapped_by)

    @classmethod
    def load(cls, source: str | Path, service: KeyService | str) -> DataKeys:
        """Return the set of a file that :meth:`save` wrote, or of its text. Raises :class:`EncryptionKeyError`."""
        text = str(source)
        what = "the set of data keys"
        if not text.lstrip().startswith("{"):
            text, what = _read(text), f"{what} {text}"
        found = _parsed(text, what)
        try:
            entries = {_number(each["id"]): _entry(each) for each in found["keys"]}
        except (KeyError, TypeError, ValueError):
            entries = {}
        if not entries or len(entries) != len(found["keys"]):
            raise EncryptionKeyError(
                f'{what} must be {{"keys": [{{"id": 1, "wrapped_by": "…", "wrapped": "…"}}]}}, each id once from 1 to '
                f"{_LARGEST_ID}"
            )
        return cls(entries, service)

    def rotated(self, wrapped_by: str | None = None) -> DataKeys:
        """Return the set with one more data key, the newest.

        By default, the key-encryption key of the newest one wraps it.
        """
        if wrapped_by is None:
            wrapped_by = self.entries[self.newest].wrapped_by
        primitives()
        data = called(self._service().wrap, wrapped_by, os.urandom(DATA_KEY_SIZE))
        number = max(self.entries, default=0) + 1
        return DataKeys({**self.entries, number: _Wrapped(wrapped_by, data)}, self.service)

    @property
    def newest(self) -> int:
        """Number of the data key that encrypts: the largest one."""
        return max(self.entries)

    @property
    def may_wait(self) -> bool:
        """True if the key service may be on another machine."""
        named = isinstance(self.service, str)
        return bool(_PLACE.fullmatch(str(self.service))) if named else not isinstance(self.service, LocalKeys)

    @property
    def text(self) -> str:
        """JSON of the set. The keys in it are wrapped, so it is no secret."""
        keys = [
            {"id": number, "wrapped_by": each.wrapped_by, "wrapped": base64.b64encode(each.data).decode()}
            for number, each in sorted(self.entries.items())
        ]
        return json.dumps({"keys": keys}, indent=1)

    def save(self, path: str | Path) -> None:
        """Write the set to a file. A file that exists is replaced."""
        whole = Path(f"{path}.new")
        whole.write_text(self.text + "\n")
        whole.replace(path)

    def __contains__(self, number: object) -> bool:
        return number in self.entries

    def __reduce__(self) -> tuple[Any, ...]:
        return DataKeys, (dict(self.entries), self.service)

    def cipher(self, number: int) -> Any:
        """Return the :class:`~pravega_serde.encryption.siv.Siv` of a data key. Raises :class:`EncryptionKeyError`."""
        made = self._ciphers.get(number)
        if made is None:
            entry = self.entries[number]
            key = called(self._service().unwrap, entry.wrapped_by, entry.data)
            if len(key) != DATA_KEY_SIZE:
                raise EncryptionKeyError(f"data key {number} has {len(key)} bytes, not {DATA_KEY_SIZE}")
            made = self._ciphers[number] = primitives().Siv(key)
        return made

    def _service(self) -> KeyService:
        return service_named(self.service) if isinstance(self.service, str) else self.service


@functools.cache
def primitives() -> ModuleType:
    """Return the module of the cipher. Raises :class:`MissingExtraError` without ``cryptography``."""
    return _of_extra("pravega_serde.encryption.siv")


def aead() -> ModuleType:
    """Return the ciphers of ``cryptography`` that detect changes. Raises :class:`MissingExtraError` without it."""
    return _of_extra("cryptography.hazmat.primitives.ciphers.aead")


def invalid_tag() -> type[Exception]:
    """Return the error of a cipher about a changed value. Raises :class:`MissingExtraError` without its package."""
    found: type[Exception] = _of_extra("cryptography.exceptions").InvalidTag
    return found


def _keywrap() -> ModuleType:
    return _of_extra("cryptography.hazmat.primitives.keywrap")


def _of_extra(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("cryptography", "encryption", purpose="encryption of fields") from error


@functools.cache
def service_named(named: str) -> KeyService:
    """Return the service of a name or of a file, one for each process."""
    if not _PLACE.fullmatch(named):
        return LocalKeys.load(named)
    try:
        found = imported(named)
        made = found if isinstance(found, KeyService) and not isinstance(found, type) else found()
    except Exception as error:  # noqa: BLE001 - its text may have a secret
        raise EncryptionKeyError(f"the key service {named!r} cannot be created: {type(error).__name__}") from None
    if not isinstance(made, KeyService):
        raise EncryptionKeyError(f"the key service {named!r} is a {type(made).__name__} without wrap and unwrap")
    return made


def called(call: Any, key_name: str, data: bytes) -> bytes:
    """Return the result of a call of a key service. Raises :class:`EncryptionKeyError`, without a secret."""
    try:
        made = call(key_name, data)
    except (EncryptionKeyError, MissingExtraError):
        raise
    except Exception as error:  # noqa: BLE001 - its text may have a secret
        raise EncryptionKeyError(
            f"the key service failed for the key-encryption key {key_name!r}: {type(error).__name__}"
        ) from None
    if not isinstance(made, bytes):
        raise EncryptionKeyError(f"the key service returned a {type(made).__name__}, not bytes")
    return made


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise EncryptionKeyError(f"the file of keys {str(path)[:200]!r} cannot be read: {reason}") from None


def _parsed(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise EncryptionKeyError(f"{what} is not JSON") from None  # the text of the error would have the file's


def _decoded(text: Any, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise EncryptionKeyError(f"the {what} is not Base64") from None


def _number(value: Any) -> int:
    if type(value) is not int or not 0 < value <= _LARGEST_ID:
        raise ValueError
    return value


def _entry(given: Mapping[str, Any]) -> _Wrapped:
    if not isinstance(given["wrapped_by"], str):
        raise TypeError
    return _Wrapped(given["wrapped_by"], base64.b64decode(given["wrapped"], validate=True))
