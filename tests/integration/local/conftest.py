"""What the tests of the embedded servers share."""

import pytest

from connector.local.launch import free_ports


@pytest.fixture
def free_port():
    return free_ports(1)[0]
