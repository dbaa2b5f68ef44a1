"""Certificates of trusted authorities: PEM files, and Java's trust stores (JKS, PKCS #12)."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pravega_serde.errors import MissingExtraError, SerdeError

_PEM: Final = re.compile(rb"-----BEGIN ((?:X509 )?CERTIFICATE)-----[^-]+-----END \1-----")
_JKS: Final = b"\xfe\xed\xfe\xed"
_PKCS12: Final = b"\x30"  # a sequence in DER
_DIGEST_SIZE: Final = hashlib.sha1(usedforsecurity=False).digest_size
# JavaKeyStore mixes it into the digest.
_WHITENER: Final = b"Mighty Aphrodite"
_KEY, _CERTIFICATE = 1, 2  # kinds of entries


def trusted_certificates(path: str, password: str | None = None) -> str:
    """Return the certificates of a file as PEM.

    The file is PEM, or a trust store of Java: JKS, or PKCS #12, which requires the ``trust-store`` extra. ``password``
    is the trust store's. Without it, the integrity of a JKS file is not checked. Raises OSError, MissingExtraError, and
    SerdeError for a file without certificates or a wrong password.
    """
    data = Path(path).read_bytes()
    if data.startswith(_JKS):
        found = [ssl.DER_cert_to_PEM_cert(each) for each in _in_jks(path, data, password)]
    elif data.startswith(_PKCS12):
        found = [ssl.DER_cert_to_PEM_cert(each) for each in _in_pkcs12(path, data, password)]
    else:
        found = [block[0].decode("ascii", "replace") + "\n" for block in _PEM.finditer(data)]
    if not found:
        raise SerdeError(f"the file {path} has no certificates in PEM, and is not a trust store (JKS, PKCS #12)")
    return "".join(found)


def _in_jks(path: str, data: bytes, password: str | None) -> Iterator[bytes]:
    """Yield the certificates that Java trusts: those without a key, and the first one of each key's chain."""
    body, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + body, usedforsecurity=False).digest()
        if expected != digest:
            raise SerdeError(f"the trust store {path} was changed, or its password is wrong")
    try:
        yield from _Entries(body).certificates()
    except IndexError as error:
        raise SerdeError(f"the trust store {path} is not a valid JKS file: {error}") from None


class _Entries:
    """Entries of a JKS file, in the order of ``sun.security.provider.JavaKeyStore``."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, len(_JKS)

    def certificates(self) -> Iterator[bytes]:
        version, count = self._number(), self._number()
        for _ in range(count):
            kind = self._number()
            self._text()  # alias
            self._take(8)  # time of creation
            if kind == _CERTIFICATE:
                yield self._certificate(version)
            elif kind == _KEY:
                self._take(self._number())
                chain = [self._certificate(version) for _ in range(self._number())]
                yield from chain[:1]
            else:
                raise IndexError(f"an entry of the unknown kind {kind}")

    def _certificate(self, version: int) -> bytes:
        if version > 1:
            self._text()  # kind of certificate
        return self._take(self._number())

    def _text(self) -> bytes:
        return self._take(int.from_bytes(self._take(2)))

    def _number(self) -> int:
        return int.from_bytes(self._take(4))

    def _take(self, size: int) -> bytes:
        if size > len(self._body) - self._at:
            raise IndexError("it is truncated")
        self._at += size
        return self._body[self._at - size : self._at]


def _in_pkcs12(path: str, data: bytes, password: str | None) -> Iterator[bytes]:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, pkcs12  # noqa: PLC0415 - few trust stores
    except ImportError as error:
        raise MissingExtraError("cryptography", "trust-store", purpose="a PKCS #12 trust store") from error
    try:
        found = pkcs12.load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise SerdeError(
            f"the trust store {path} is not a valid PKCS #12 file, or its password is missing or wrong"
        ) from None
    for each in (found.cert, *found.additional_certs):
        if each is not None:
            yield each.certificate.public_bytes(Encoding.DER)
