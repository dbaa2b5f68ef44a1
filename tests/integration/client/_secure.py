"""A Pravega server with TLS and users, for the tests of one module."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509 import load_pem_x509_certificates

from connector.client import PravegaClient
from connector.config import PravegaConfig
from connector.errors import ConnectorError
from connector.local._jars import PRAVEGA_JARS, ensure_jars
from connector.local._java import find_java
from connector.local._server import ServerOptions, _spawn

USER, PASSWORD = "admin", "correct horse battery"
# InProcPravegaCluster.java opens the certificates to trust with this one, whatever is configured.
_STORE_PASSWORD = "1111_aaaa"
_START_SECONDS = 120.0


@dataclass(frozen=True)
class SecureServer:
    controller_uri: str
    ca_file: Path

    @property
    def config(self) -> PravegaConfig:
        """With the certificates, without credentials."""
        return PravegaConfig(controller=self.controller_uri).with_tls(ca_file=self.ca_file)


@contextlib.contextmanager
def secure_server(folder: Path) -> Iterator[SecureServer]:
    settings = _tls(folder) | {
        "auth.enable": "true",
        "auth.credentials.username": USER,
        "auth.credentials.pwd": PASSWORD,
        "auth.pwdAuthHandler.accountsDb.location": _accounts(folder),
    }
    options = ServerOptions(
        heap_mb=1024,
        cache_mb=256,
        java_options=tuple(f"-Dsinglenode.security.{name}={value}" for name, value in settings.items()),
    )
    java = find_java()
    server = _spawn(options, java, ensure_jars(PRAVEGA_JARS, java), None)
    try:
        found = SecureServer(f"tls://localhost:{server.controller_port}", folder / "ca.pem")
        _await(found, server.check)
        yield found
    finally:
        server.process.close()


def _await(server: SecureServer, check) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        check()
        try:
            with PravegaClient(server.config.with_credentials(USER, PASSWORD), timeout=5) as client:
                client.create_stream("readiness/probe")
                client.tail("readiness/probe")
                return
        except ConnectorError:
            if time.monotonic() > end:
                raise
        time.sleep(0.2)


def _accounts(folder: Path) -> Path:
    """As StrongPasswordProcessor.java writes it: hex of ``iterations:salt:digest``, these in hex again."""
    salt = os.urandom(32)
    digest = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), salt, 5000, 64)
    path = folder / "passwd"
    path.write_text(f"{USER}:{f'5000:{salt.hex()}:{digest.hex()}'.encode().hex()}:prn::*,READ_UPDATE;\n")
    return path


def _tls(folder: Path) -> dict[str, Path | str]:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    # Netty takes no other form.
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / "chain.pem").write_bytes(chain)
    (folder / "store.passwd").write_text(_STORE_PASSWORD)
    certificate, *more = load_pem_x509_certificates(chain)
    encryption = BestAvailableEncryption(_STORE_PASSWORD.encode())
    (folder / "keys.p12").write_bytes(
        pkcs12.serialize_key_and_certificates(b"server", key, certificate, more or None, encryption)
    )
    trusted = pkcs12.PKCS12Certificate(load_pem_x509_certificates((folder / "ca.pem").read_bytes())[0], b"ca")
    (folder / "trust.p12").write_bytes(pkcs12.serialize_java_truststore([trusted], encryption))
    return {
        "tls.enable": "true",
        "tls.privateKey.location": folder / "key.pem",
        "tls.certificate.location": folder / "chain.pem",
        "tls.keyStore.location": folder / "keys.p12",
        "tls.keyStore.pwd.location": folder / "store.passwd",
        "tls.trustStore.location": folder / "trust.p12",
    }
