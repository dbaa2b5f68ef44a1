"""Certificate of a local server with TLS. This module requires the package ``cryptography``."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import pkcs12

# The standalone's fixed password: its ZooKeeper client opens the trust store only with this one.
_STORE_PASSWORD: Final = "1111_aaaa"  # noqa: S105 - protects a file that only its owner can read
_VALID_DAYS: Final = 30


def tls_settings(folder: Path, host: str, ca_file: str) -> dict[str, object]:
    """Create a certificate for ``localhost`` and ``host``, and return the settings that name it and its key."""
    key, certificate = _certificate(host)
    paths = {name: folder / name for name in (ca_file, "server-key.pem", "keystore.jks", "truststore.jks")}
    encryption = serialization.BestAvailableEncryption(_STORE_PASSWORD.encode())
    contents = {
        ca_file: certificate.public_bytes(serialization.Encoding.PEM),
        "server-key.pem": key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        # Java also reads PKCS #12 under the file name of its old format.
        "keystore.jks": pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption),
        "truststore.jks": pkcs12.serialize_java_truststore(
            [pkcs12.PKCS12Certificate(certificate, b"server")], encryption
        ),
        # The standalone reads the password of the trust store from a file of this name in its working folder.
        _STORE_PASSWORD: _STORE_PASSWORD.encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {
        "singlenode.security.tls.enable": "true",
        "singlenode.security.tls.privateKey.location": paths["server-key.pem"],
        "singlenode.security.tls.certificate.location": paths[ca_file],
        "singlenode.security.tls.keyStore.location": paths["keystore.jks"],
        "singlenode.security.tls.keyStore.pwd.location": folder / _STORE_PASSWORD,
        "singlenode.security.tls.trustStore.location": paths["truststore.jks"],
    }


def _certificate(host: str) -> tuple[Any, Any]:
    """Return a key and its self-signed certificate, which is its own authority."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    return key, builder.sign(key, hashes.SHA256())
