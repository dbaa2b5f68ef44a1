"""Servers that a program owns, before they are started."""

from pravega_connector import LocalPravega, LocalSchemaRegistry


def test_a_server_shows_that_it_is_not_running():
    assert repr(LocalPravega()) == "LocalPravega(not running)"
    assert repr(LocalSchemaRegistry()) == "LocalSchemaRegistry(not running)"
