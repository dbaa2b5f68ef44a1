"""Certificates of PEM files and of Java's trust stores."""

import hashlib
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, NoEncryption, pkcs12

from pravega_serde.errors import MissingExtraError, SerdeError
from pravega_serde.trust_store import trusted_certificates

PASSWORD = "größe"


@pytest.fixture(scope="module")
def certificates() -> list[bytes]:
    """Certificates of three authorities, in DER."""
    return [ssl.PEM_cert_to_DER_cert(trustme.CA().cert_pem.bytes().decode()) for _ in range(3)]


def as_pem(certificates: Sequence[bytes]) -> str:
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


def jks(entries: Sequence[bytes | list[bytes]], password: str = PASSWORD, version: int = 2) -> bytes:
    """Return a trust store. A list is the chain of a key."""

    def number(value: int) -> bytes:
        return value.to_bytes(4)

    def text(value: str) -> bytes:
        return len(value).to_bytes(2) + value.encode()

    def certificate(der: bytes) -> bytes:
        return (text("X.509") if version > 1 else b"") + number(len(der)) + der

    body = b"\xfe\xed\xfe\xed" + number(version) + number(len(entries))
    for place, entry in enumerate(entries):
        is_key = isinstance(entry, list)
        body += number(1 if is_key else 2) + text(f"authority {place}") + bytes(8)
        if isinstance(entry, list):
            body += number(5) + b"a key" + number(len(entry)) + b"".join(map(certificate, entry))
        else:
            body += certificate(entry)
    return body + hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def test_pem_with_comments_and_keys(tmp_path: Path, certificates: list[bytes]) -> None:
    path = tmp_path / "ca.pem"
    key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    path.write_text(f"# größe\n{as_pem(certificates[:1])}\n{key}# two\n{as_pem(certificates[1:])}", encoding="utf-8")
    assert trusted_certificates(str(path)) == as_pem(certificates)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_jks(tmp_path: Path, certificates: list[bytes], version: int, password: str | None) -> None:
    """As Java, of a key's chain only its own certificate is trusted."""
    path = tmp_path / "trusted.jks"
    path.write_bytes(jks([certificates[0], certificates[1:]], version=version))
    assert trusted_certificates(str(path), password) == as_pem(certificates[:2])


def test_jks_with_a_wrong_password_or_a_change(tmp_path: Path, certificates: list[bytes]) -> None:
    path = tmp_path / "trusted.jks"
    whole = jks(certificates)
    for content, password in (
        (whole, "wrong"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), PASSWORD),
        (whole.replace(b"X.5", b"Y.5"), PASSWORD),
    ):
        path.write_bytes(content)
        with pytest.raises(SerdeError, match=r"trusted\.jks was changed, or its password is wrong"):
            trusted_certificates(str(path), password)


def test_jks_that_is_truncated_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "trusted.jks"
    whole = jks([b"one", [b"two", b"three"]])
    for size in range(4, len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(SerdeError, match=r"trusted\.jks"):
            trusted_certificates(str(path))


def test_jks_of_an_unknown_entry(tmp_path: Path) -> None:
    path = tmp_path / "trusted.jks"
    path.write_bytes(jks([b"one"]).replace(b"\0\0\0\2\0\x0b", b"\0\0\0\3\0\x0b"))
    with pytest.raises(SerdeError, match=r"not a valid JKS file: an entry of the unknown kind 3"):
        trusted_certificates(str(path))


@pytest.mark.parametrize("password", [PASSWORD, None])
def test_pkcs12(tmp_path: Path, certificates: list[bytes], password: str | None) -> None:
    path = tmp_path / "trusted.p12"
    encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    loaded = [x509.load_der_x509_certificate(each) for each in certificates]
    path.write_bytes(pkcs12.serialize_key_and_certificates(None, None, None, loaded, encryption))
    found = trusted_certificates(str(path), password)
    assert sorted(found.split("-----END")) == sorted(as_pem(certificates).split("-----END"))
    with pytest.raises(SerdeError, match=r"trusted\.p12 .* password is missing or wrong"):
        trusted_certificates(str(path), "wrong")


def test_pkcs12_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trusted.p12"
    path.write_bytes(b"\x30\x00")
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pravega-serde\[trust-store\]'"):
        trusted_certificates(str(path))


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "ca"
    with pytest.raises(FileNotFoundError):
        trusted_certificates(str(path))
    for content in (b"", b"nothing", b"-----BEGIN CERTIFICATE-----", b"\xfe\xed\xfe"):
        path.write_bytes(content)
        with pytest.raises(SerdeError, match="has no certificates in PEM, and is not a trust store"):
            trusted_certificates(str(path))
