"""Credentials and certificates for a server that requires them."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_serde.errors import MissingExtraError

CA_FILE: Final = "server-cert.pem"
# The standalone's fixed password: its ZooKeeper client opens the trust store only with this one.
_STORE_PASSWORD: Final = "1111_aaaa"  # noqa: S105 - protects a file that only its owner can read
_ITERATIONS: Final = 5000  # StrongPasswordProcessor
_HASH_SIZE: Final = 64
_VALID_DAYS: Final = 30
_ALL_RIGHTS: Final = "prn::*,READ_UPDATE"


def check_credentials(username: str | None, password: str | None, token_seconds: int | None) -> None:
    """Raise ConfigError for only a username or only a password, or a token lifetime without both."""
    if (username is None) != (password is None):
        raise ConfigError("a local Pravega with credentials needs both username and password")
    if token_seconds is not None and (username is None or token_seconds < 1):
        raise ConfigError(
            f"token_seconds must be at least 1, for a local Pravega with credentials; got {token_seconds}"
        )


def with_credentials(config: PravegaConfig, username: str | None, password: str | None) -> PravegaConfig:
    """Return the configuration with the credentials, if there are any."""
    return config if username is None or password is None else config.with_credentials(username, password)


def token_life(seconds: int | None) -> list[str]:
    """Return the options that set the lifetime of delegation tokens; none for None (600 s)."""
    return [] if seconds is None else [f"-Dcontroller.security.auth.delegationToken.ttl.seconds={seconds}"]


def cluster_auth(folder: Path, username: str | None, password: str | None, token_seconds: int | None) -> list[str]:
    """Write the users and the secrets of a cluster, and return the JVM options that name them.

    The one user has all rights. Controllers sign tokens with a key, and segment stores verify them with it. Segment
    stores request more segments from the controllers as the same user.
    """
    if username is None or password is None:
        return []
    accounts = accounts_file(folder, {username: (password, (_ALL_RIGHTS,))})
    key = secrets.token_hex(32)
    token = base64.b64encode(f"{username}:{password}".encode()).decode()
    # In a file, because other users of this machine can read command lines but not the folder.
    file = folder / "secrets"
    file.write_text(
        f"-Dcontroller.security.auth.delegationToken.signingKey.basis={key}\n"
        f"-DautoScale.security.auth.token.signingKey.basis={key}\n"
        "-Dpravega.client.auth.method=Basic\n"
        f"-Dpravega.client.auth.token={token}\n"
    )
    return [
        f"-Dcontroller.security.pwdAuthHandler.accountsDb.location={accounts}",
        *token_life(token_seconds),
        f"@{file}",
    ]


def auth_settings(folder: Path, username: str, password: str) -> dict[str, object]:
    """Write the users of the server, which is one with all rights, and return the settings that name the file."""
    accounts = accounts_file(folder, {username: (password, (_ALL_RIGHTS,))})
    return {
        "singlenode.security.auth.enable": "true",
        "singlenode.security.auth.credentials.username": username,
        "singlenode.security.auth.credentials.pwd": password,
        "singlenode.security.auth.pwdAuthHandler.accountsDb.location": accounts,
    }


def accounts_file(folder: Path, users: Mapping[str, tuple[str, Sequence[str]]]) -> Path:
    """Write a list of users: name to password and permissions.

    A permission is ``resource,READ`` or ``resource,READ_UPDATE``.
    """
    path = folder / "accounts"
    lines = [f"{name}:{_encrypt(password)}:{';'.join(rights)};\n" for name, (password, rights) in users.items()]
    path.write_text("".join(lines))
    return path


def _encrypt(password: str) -> str:
    """Return the hash of Java's StrongPasswordProcessor: hex of ``iterations:hex(salt):hex(PBKDF2)``."""
    salt = os.urandom(32)
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ITERATIONS, _HASH_SIZE)
    return f"{_ITERATIONS}:{salt.hex()}:{digest.hex()}".encode().hex()


def tls_settings(folder: Path, host: str) -> dict[str, object]:
    """Create a certificate for ``localhost`` and ``host``, and return the settings that name it and its key.

    Raises MissingExtraError without the package ``cryptography``.
    """
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - only TLS needs it
        from cryptography.hazmat.primitives.serialization import pkcs12  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("cryptography", "local", purpose="a local server with TLS") from error
    key, certificate = _certificate(host)
    paths = {name: folder / name for name in (CA_FILE, "server-key.pem", "keystore.jks", "truststore.jks")}
    encryption = serialization.BestAvailableEncryption(_STORE_PASSWORD.encode())
    contents = {
        CA_FILE: certificate.public_bytes(serialization.Encoding.PEM),
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
        "singlenode.security.tls.certificate.location": paths[CA_FILE],
        "singlenode.security.tls.keyStore.location": paths["keystore.jks"],
        "singlenode.security.tls.keyStore.pwd.location": folder / _STORE_PASSWORD,
        "singlenode.security.tls.trustStore.location": paths["truststore.jks"],
    }


def _certificate(host: str) -> tuple[Any, Any]:
    """Return a key and its self-signed certificate, which is its own authority."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415

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
