"""Embedded servers: a real Pravega and schema registry on this machine, started from Python, ended with it."""

from connector.local._cluster import ClusterOptions
from connector.local._cluster_process import ClusterProcess
from connector.local._detached import (
    DetachedServer,
    detached_registry,
    detached_server,
    start_detached,
    start_detached_registry,
    stop_detached,
    stop_detached_registry,
)
from connector.local._jars import PRAVEGA_VERSION, REGISTRY_VERSION, pravega_jars, registry_jars
from connector.local._maven import REPOSITORY_VARIABLE
from connector.local._pravega import LocalPravega
from connector.local._registry import LocalSchemaRegistry
from connector.local._registry_server import RegistryOptions, RegistryUser
from connector.local._server import ServerOptions

__all__ = [
    "PRAVEGA_VERSION",
    "REGISTRY_VERSION",
    "REPOSITORY_VARIABLE",
    "ClusterOptions",
    "ClusterProcess",
    "DetachedServer",
    "LocalPravega",
    "LocalSchemaRegistry",
    "RegistryOptions",
    "RegistryUser",
    "ServerOptions",
    "detached_registry",
    "detached_server",
    "pravega_jars",
    "registry_jars",
    "start_detached",
    "start_detached_registry",
    "stop_detached",
    "stop_detached_registry",
]
