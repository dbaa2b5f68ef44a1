"""Key services of AWS, Azure and Google on loopback, at the level of HTTP and gRPC that Confluent's drivers use.

Each reverses a data key with its own prefix, so a key of another service or of another name does not open.
"""

from __future__ import annotations

import base64
import contextlib
import importlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import grpc
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

_SECONDS: Final = 60


def seal(name: str, data: bytes) -> bytes:
    """Return a data key that only :func:`unseal` with the same name opens."""
    return name.encode() + b"|" + data[::-1]


def unseal(name: str, sealed: bytes) -> bytes | None:
    """Return the data key, or None for one of another name."""
    known, _, data = sealed.partition(b"|")
    return data[::-1] if known == name.encode() else None


@dataclass
class Fake:
    """Key service. ``environment`` is for the process of its client, ``config`` are settings of Confluent's clients."""

    key: str
    config: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)


#: Answers a request: the handler and its body.
_Act = Callable[[BaseHTTPRequestHandler, bytes], None]


def _answer(handler: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    content = json.dumps(body).encode()
    handler.send_response(status)
    for name, value in {"Content-Type": "application/json", **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


@contextlib.contextmanager
def _served(act: _Act, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve requests, and yield the port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            act(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))

        do_GET = do_POST = do_CONNECT = _do

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join(_SECONDS)
        server.server_close()


def _certificate(authority: trustme.CA, name: str, folder: Path) -> tuple[ssl.SSLContext, Path, trustme.LeafCert]:
    """Return a server's TLS context of a name, the file of its authority, and the certificate."""
    certificate, trusted = authority.issue_cert(name), folder / "authority.pem"
    authority.cert_pem.write_to_path(trusted)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context, trusted, certificate


@contextlib.contextmanager
def aws(_folder: Path) -> Iterator[Fake]:
    """Serve Encrypt and Decrypt of AWS KMS. Its client reads the address from ``AWS_ENDPOINT_URL_KMS``."""
    arn = "arn:aws:kms:eu-central-1:111122223333:key/1234"
    fake = Fake(f"aws-kms://{arn}", {"access.key.id": "AKID", "secret.access.key": "s3cret"})

    def act(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        given, operation = json.loads(body), handler.headers["X-Amz-Target"].rpartition(".")[2]
        fake.calls.append(operation)
        if "Credential=AKID/" not in handler.headers["Authorization"]:
            _answer(handler, 400, {"__type": "UnrecognizedClientException", "message": "the token is invalid"})
        elif operation == "Encrypt":
            sealed = seal(given["KeyId"], base64.b64decode(given["Plaintext"]))
            _answer(handler, 200, {"KeyId": given["KeyId"], "CiphertextBlob": base64.b64encode(sealed).decode()})
        elif (data := unseal(given["KeyId"], base64.b64decode(given["CiphertextBlob"]))) is None:
            _answer(handler, 400, {"__type": "InvalidCiphertextException", "message": ""})
        else:
            _answer(handler, 200, {"KeyId": given["KeyId"], "Plaintext": base64.b64encode(data).decode()})

    with _served(act) as port:
        fake.environment = {"AWS_ENDPOINT_URL_KMS": f"http://127.0.0.1:{port}"}
        yield fake


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[Fake]:
    """Serve a vault of Azure by TLS, and the tokens of a managed identity.

    The id of a key is its URL. The client trusts the authority in ``REQUESTS_CA_BUNDLE``, and gets tokens at
    ``IDENTITY_ENDPOINT``.
    """
    fake = Fake("")

    def token(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        fake.calls.append("token")
        _answer(
            handler, 200, {"access_token": "t0ken", "expires_on": "4102444800", "resource": "", "token_type": "Bearer"}
        )

    def vault(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if handler.headers.get("Authorization") != "Bearer t0ken":
            challenge = f'Bearer authorization="https://login.local/tenant", resource="https://0.0.1:{port}"'
            _answer(handler, 401, {}, WWW_Authenticate=challenge)
            return
        _, _, name, version, *rest = urlsplit(handler.path).path.split("/")
        operation = rest[0] if rest else "get"
        fake.calls.append(operation)
        key = f"{name}/{version}"
        if operation == "get":  # clients encrypt with a public key themselves if they may read it
            _answer(handler, 403, {"error": {"code": "Forbidden", "message": "no permission to get keys"}})
            return
        given = json.loads(body)
        data = base64.urlsafe_b64decode(given["value"] + "==")
        made = seal(key, data) if operation == "encrypt" else unseal(key, data)
        if made is None:
            _answer(handler, 400, {"error": {"code": "BadParameter", "message": "another key"}})
            return
        value = base64.urlsafe_b64encode(made).decode().rstrip("=")
        _answer(handler, 200, {"kid": f"https://{handler.headers['Host']}/keys/{key}", "value": value})

    tls, trusted, _ = _certificate(trustme.CA(), "127.0.0.1", folder)
    with _served(token) as tokens, _served(vault, tls) as port:
        fake.key = f"azure-kms://https://127.0.0.1:{port}/keys/orders/{'a1' * 16}"
        fake.environment = {
            "REQUESTS_CA_BUNDLE": str(trusted),
            "IDENTITY_ENDPOINT": f"http://127.0.0.1:{tokens}/token",
            "IDENTITY_HEADER": "header",
        }
        yield fake


@contextlib.contextmanager
def gcp(folder: Path) -> Iterator[Fake]:
    """Serve Encrypt and Decrypt of Google's KMS by gRPC, behind an HTTP proxy that connects every name to it.

    The client knows only the address of the cloud. gRPC has ``grpc_proxy`` and ``GRPC_DEFAULT_SSL_ROOTS_FILE_PATH``.
    Confluent's driver requires the credentials of the environment, also if its settings have others.
    """
    kms_v1: Any = importlib.import_module("google.cloud.kms_v1")  # an extra, without types
    name = "projects/p/locations/global/keyRings/r/cryptoKeys/orders"
    private = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    identity = {"client_email": "a@p.iam", "private_key": private.decode(), "private_key_id": "k", "client_id": "1"}
    fake, account = Fake(f"gcp-kms://{name}"), folder / "account.json"

    def encrypt(request: Any, context: Any) -> Any:
        _check(context)
        fake.calls.append("Encrypt")
        return kms_v1.EncryptResponse(name=request.name, ciphertext=seal(request.name, request.plaintext))

    def decrypt(request: Any, context: Any) -> Any:
        _check(context)
        fake.calls.append("Decrypt")
        data = unseal(request.name, request.ciphertext)
        if data is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "another key")
        return kms_v1.DecryptResponse(plaintext=data)

    def _check(context: Any) -> None:
        token = dict(context.invocation_metadata()).get("authorization", "")  # signed by the account itself
        claims = token.partition(".")[2].partition(".")[0]
        if b'"iss": "a@p.iam"' not in base64.urlsafe_b64decode(claims + "==").replace(b'":"', b'": "'):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")

    def connect(handler: BaseHTTPRequestHandler, _body: bytes) -> None:
        fake.calls.append(f"CONNECT {handler.path}")
        with socket.create_connection(("127.0.0.1", port), _SECONDS) as there:
            handler.send_response(200)
            handler.end_headers()
            _joined(handler.connection, there)
        handler.close_connection = True

    _, trusted, certificate = _certificate(trustme.CA(), "cloudkms.googleapis.com", folder)
    server = grpc.server(ThreadPoolExecutor(2))
    methods = {
        "Encrypt": grpc.unary_unary_rpc_method_handler(
            encrypt, kms_v1.EncryptRequest.deserialize, kms_v1.EncryptResponse.serialize
        ),
        "Decrypt": grpc.unary_unary_rpc_method_handler(
            decrypt, kms_v1.DecryptRequest.deserialize, kms_v1.DecryptResponse.serialize
        ),
    }
    service = "google.cloud.kms.v1.KeyManagementService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    chain = b"".join(each.bytes() for each in certificate.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        with _served(connect) as proxy:
            identity |= {"type": "service_account", "token_uri": "http://127.0.0.1:1/unused"}
            account.write_text(json.dumps(identity))
            fake.environment = {
                "GOOGLE_APPLICATION_CREDENTIALS": str(account),
                "grpc_proxy": f"http://127.0.0.1:{proxy}",
                "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": str(trusted),
            }
            yield fake
    finally:
        server.stop(None).wait(_SECONDS)


def _joined(one: socket.socket, other: socket.socket) -> None:
    """Copy bytes between two connections until one ends."""
    while True:
        ready, _, _ = select.select([one, other], [], [], _SECONDS)
        for each in ready:
            data = each.recv(1 << 16)
            if not data:
                return
            (other if each is one else one).sendall(data)
        if not ready:
            return
