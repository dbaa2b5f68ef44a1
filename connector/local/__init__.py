"""Embedded servers: a real Pravega and schema registry on this machine, started from Python, ended with it."""

from connector.local.cluster import ClusterOptions, ClusterProcess
from connector.local.detached import (
    DetachedServer,
    detached_registry,
    detached_server,
    start_detached,
    start_detached_registry,
    stop_detached,
    stop_detached_registry,
)
from connector.local.download import REPOSITORY_VARIABLE
from connector.local.embedded import LocalPravega, LocalSchemaRegistry
from connector.local.jars import PRAVEGA_VERSION, REGISTRY_VERSION, pravega_jars, registry_jars
from connector.local.server import RegistryOptions, RegistryUser, ServerOptions

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
