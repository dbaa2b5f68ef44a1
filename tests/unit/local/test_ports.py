"""Ports that a server can have."""

import contextlib
import re
import socket

import pytest

from pravega_connector import tcp_ports
from pravega_connector.errors import ConfigError, LocalServerError
from pravega_connector.local.server import ServerOptions
from pravega_connector.tcp_ports import check_port_number, free_ports, is_free, listen_on_free_port
from pravega_connector.testing import InProcessPravega, InProcessRegistry

LOWEST_OF_OUTGOING = 32_768  # Linux
FAMILIES = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0")]
if socket.has_ipv6:
    FAMILIES += [(socket.AF_INET6, "::1")]


def test_many_at_once_are_different_and_usable():
    ports = free_ports(50)
    assert len(set(ports)) == 50
    with contextlib.ExitStack() as held:
        for port in ports:
            held.enter_context(socket.create_server(("127.0.0.1", port)))


@pytest.mark.parametrize(("family", "address"), FAMILIES)
def test_a_port_in_use_on_any_interface_is_not_free(family, address):
    def is_free_afterwards():
        with socket.create_server((address, 0), family=family) as server:
            port = server.getsockname()[1]
            assert not is_free(port)
        return is_free(port)

    # Another process may take a port that has just become free.
    assert any(is_free_afterwards() for _ in range(5))


def test_no_program_is_given_the_port_of_a_test_server_that_has_ended():
    # A client that still asks would speak to that program: Spark 4.0 fails when it hears anything but a Python process.
    with InProcessPravega() as server, InProcessRegistry() as registry:
        uris = [server.uri, registry.uri, "tcp://{}:{}".format(*server.store.endpoint)]
    assert all(int(uri.rpartition(":")[2]) < LOWEST_OF_OUTGOING for uri in uris), uris


def test_a_port_that_is_taken_in_the_meantime_is_replaced():
    taken = []
    with contextlib.ExitStack() as held:

        def listen(port):
            if not taken:
                held.enter_context(socket.create_server(("127.0.0.1", port)))
                taken.append(port)
            return held.enter_context(socket.create_server(("127.0.0.1", port)))

        assert listen_on_free_port(listen).getsockname()[1] not in taken
    assert taken


def test_an_error_that_is_not_the_port_s_passes():
    with pytest.raises(OSError, match="no such"):
        listen_on_free_port(lambda port: (_ for _ in ()).throw(OSError("no such address")))


def test_too_few_free_ports_are_an_error(monkeypatch):
    monkeypatch.setattr(tcp_ports, "is_free", lambda port: False)
    with pytest.raises(LocalServerError, match="found 0 free ports of 2 wanted from 10000 to 29999"):
        free_ports(2)
    with pytest.raises(LocalServerError, match="found no free port from 30000 to 32767"):
        listen_on_free_port(socket.create_server)


@pytest.mark.parametrize("port", [-1, 65536, "9090", None, True, 9090.0])
def test_what_is_not_a_port_is_reported_before_anything_starts(port):
    with pytest.raises(ConfigError, match=rf"invalid port {re.escape(repr(port))}; a port must be a whole number"):
        check_port_number(port)
    for good in (0, 9090, 65535):
        check_port_number(good)


def test_a_server_says_what_its_port_may_be():
    with pytest.raises(ConfigError, match="invalid port '9090'"):
        ServerOptions(port="9090")
