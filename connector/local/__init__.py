"""Embedded servers: a real Pravega on this machine, started from Python, ended with it."""

from connector.local._detached import DetachedServer, detached_server, start_detached, stop_detached
from connector.local._pravega import LocalPravega
from connector.local._server import ServerOptions

__all__ = [
    "DetachedServer",
    "LocalPravega",
    "ServerOptions",
    "detached_server",
    "start_detached",
    "stop_detached",
]
