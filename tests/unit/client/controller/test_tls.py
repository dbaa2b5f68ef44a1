"""TLS to the controller."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12

from pravega_connector.client import PravegaClient
from pravega_connector.config import PravegaConfig
from pravega_connector.controller._proto import controller_pb2 as pb
from pravega_connector.controller.rpc import grpc
from pravega_connector.controller.service import ControllerClient
from pravega_connector.errors import AuthenticationError, ConfigError, ControllerUnavailableError
from tests.support.fakes import FakeController


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
def fake(authority: trustme.CA) -> Iterator[FakeController]:
    certificate = authority.issue_cert("pravega.test")
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    credentials = grpc.ssl_server_credentials([(certificate.private_key_pem.bytes(), chain)])
    with FakeController(credentials) as server:
        yield server.on("checkScopeExists", pb.ExistsResponse(exists=True))


def ask(config: PravegaConfig, timeout: float = 10) -> bool:
    with ControllerClient(config, timeout=timeout) as client:
        return client.scope_exists("scope")


def test_trusted(fake: FakeController, ca_file: Path) -> None:
    config = PravegaConfig(controller=f"tls://127.0.0.1:{fake.port}")
    assert ask(config.with_tls(ca_file=ca_file, server_name="pravega.test"))


def test_trust_store(fake: FakeController, authority: trustme.CA, tmp_path: Path) -> None:
    certificate = x509.load_pem_x509_certificate(authority.cert_pem.bytes())
    path = tmp_path / "ca.p12"
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(None, None, None, [certificate], BestAvailableEncryption(b"changeit"))
    )
    config = PravegaConfig(controller=f"tls://127.0.0.1:{fake.port}")
    assert ask(config.with_tls(ca_file=path, ca_password="changeit", server_name="pravega.test"))
    with pytest.raises(
        ConfigError, match=r"ca\.p12 .* password is missing or wrong; check .*pravega\.tls\.ca\.password"
    ):
        ask(config.with_tls(ca_file=path, ca_password="wrong", server_name="pravega.test"))


def test_only_the_controller_has_tls(fake: FakeController, ca_file: Path) -> None:
    apart = PravegaConfig(controller=f"tcp://127.0.0.1:{fake.port}").with_tls(
        ca_file=ca_file, server_name="pravega.test", to_controller=True
    )
    assert ask(apart)
    assert PravegaClient(apart).stores.pool._tls is None


def test_only_the_stores_have_tls(ca_file: Path) -> None:
    with FakeController() as plain:
        plain.on("checkScopeExists", pb.ExistsResponse(exists=True))
        apart = PravegaConfig(controller=f"tls://127.0.0.1:{plain.port}").with_tls(ca_file=ca_file, to_controller=False)
        assert ask(apart)
        assert PravegaClient(apart).stores.pool._tls is not None


@pytest.mark.parametrize("server_name", [None, "other.test"])
def test_another_name(fake: FakeController, ca_file: Path, server_name: str | None) -> None:
    config = PravegaConfig(controller=f"tls://localhost:{fake.port}").with_tls(ca_file=ca_file, server_name=server_name)
    with pytest.raises(
        AuthenticationError, match=r"the certificate of the controller at .* is for another host: check"
    ):
        ask(config, timeout=30)
    assert not fake.calls


def test_unknown_authority(fake: FakeController) -> None:
    config = PravegaConfig(controller=f"tls://127.0.0.1:{fake.port}").with_tls(server_name="pravega.test")
    with pytest.raises(
        AuthenticationError,
        match=r"the controller at .* is refused: unable to get local issuer certificate; check tls_",
    ):
        ask(config, timeout=30)


def test_plain_server(ca_file: Path) -> None:
    with (
        FakeController() as plain,
        pytest.raises(ConfigError, match=r"does not use TLS: check host and port, or write tcp://"),
    ):
        ask(PravegaConfig(controller=f"tls://127.0.0.1:{plain.port}").with_tls(ca_file=ca_file), timeout=600)


def test_nobody(ca_file: Path) -> None:
    with pytest.raises(ControllerUnavailableError, match="could not be reached"):
        ask(PravegaConfig(controller="tls://127.0.0.1:1").with_tls(ca_file=ca_file), timeout=0.5)


def test_plain_client(fake: FakeController) -> None:
    with pytest.raises(
        ControllerUnavailableError, match=r"tcp:// or tls:// \(with tls://, also the CA and the certificate's name\)"
    ):
        ask(PravegaConfig(controller=f"tcp://127.0.0.1:{fake.port}"), timeout=2)


def test_missing_ca_file(fake: FakeController) -> None:
    config = PravegaConfig(controller=f"tls://127.0.0.1:{fake.port}").with_tls(ca_file="/nowhere/ca.pem")
    with pytest.raises(
        ConfigError, match=r"cannot be read from /nowhere/ca\.pem: No such file .*pravega\.tls\.ca\.file"
    ):
        ask(config)
