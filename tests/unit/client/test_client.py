"""The client as a whole, without a server."""

import pytest

from pravega_connector.client import PravegaClient
from pravega_connector.client.shared import shared_client
from pravega_connector.config import PravegaConfig
from pravega_connector.errors import ConfigError, InvalidNameError
from pravega_connector.wire import StreamName


def test_names_are_full_or_in_the_configured_scope():
    client = PravegaClient(PravegaConfig(scope="mine"))
    assert client.name("clicks") == StreamName("mine", "clicks")
    assert client.name("other/clicks") == StreamName("other", "clicks")
    assert client.name(StreamName("a", "b")) == StreamName("a", "b")


def test_a_bare_name_without_a_scope_is_refused():
    with pytest.raises(InvalidNameError, match="clicks"):
        PravegaClient("tcp://localhost:9090").name("clicks")


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_ca_certificates_that_cannot_be_read_are_a_setting_to_correct(tmp_path, content):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    config = PravegaConfig(controller="tls://localhost:9090", tls_ca_file=str(path))
    with pytest.raises(ConfigError, match=r"ca\.pem.*pravega\.tls\.ca\.file") as caught:
        PravegaClient(config)
    assert "\n" not in str(caught.value)


def test_a_process_shares_one_client_for_each_configuration():
    config = PravegaConfig(scope="a")
    assert shared_client(config) is shared_client(PravegaConfig(scope="a"))
    assert shared_client(config) is not shared_client(PravegaConfig(scope="b"))
    assert shared_client(config) is not shared_client(config, timeout=3)
