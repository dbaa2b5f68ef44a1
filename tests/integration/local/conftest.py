"""Fixtures of the tests of the embedded servers."""

import pytest

from pravega_connector.tcp_ports import free_ports


@pytest.fixture
def free_port():
    return free_ports(1)[0]
