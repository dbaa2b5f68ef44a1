"""Embedded servers: a real Pravega and a real schema registry on this machine, which end with this process.

``embedded`` has the context managers. ``detached`` has servers that outlive the command that started them. ``server``
(the Pravega standalone, the schema registry) and ``cluster`` (a Pravega of several processes) start the servers with
``launch``. Each server runs under a program of ``supervisor``, which is run by its path; ``process`` is the other end
of its pipe. ``jvm`` finds Java and builds command lines. ``jars`` and ``download`` fetch the jars. ``security`` creates
users and certificates.
"""

from typing import TYPE_CHECKING

from pravega_connector.local.cluster import ClusterOptions, ClusterProcess
from pravega_connector.local.detached import (
    DetachedServer,
    detached_registry,
    detached_server,
    start_detached,
    start_detached_registry,
    stop_detached,
    stop_detached_registry,
)
from pravega_connector.local.embedded import LocalPravega, LocalSchemaRegistry
from pravega_connector.local.jars import PRAVEGA_VERSION, REGISTRY_VERSION, pravega_jars, registry_jars
from pravega_connector.local.maven import REPOSITORY_VARIABLE
from pravega_connector.local.server import RegistryOptions, RegistryUser, ServerOptions
from pravega_serde.public_names import unknown_names

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

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
