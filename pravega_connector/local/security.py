"""Credentials and certificates for a server that requires them."""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError
from pravega_serde.errors import MissingExtraError

CA_FILE: Final = "server-cert.pem"
_ITERATIONS: Final = 5000  # StrongPasswordProcessor
_HASH_SIZE: Final = 64
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
        from pravega_connector.local import certificates  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingExtraError("cryptography", "local", purpose="a local server with TLS") from error
    return certificates.tls_settings(folder, host, CA_FILE)
