"""Import of the module ``grpc`` such that another program can be started with a fork.

The fork support in gRPC's core is on by default, although the fork support of its Python part is off. While a channel
is open, the core then restarts its threads in each forked child. A child that is forked only to exec aborts now and
then: 12 of 180 with gRPC 1.85, none with the support off. PySpark starts its JVM with such a fork from the driver, and
would report "Java gateway process exited".

gRPC reads the setting during its import. So the environment has it only during the import, and neither this process nor
its children have it later. Your own setting takes precedence, and so does an earlier import of ``grpc``.

Without the support, a forked child must not call gRPC if its parent has: it would hang and ignore deadlines.
"""

from __future__ import annotations

import os
from typing import Final

_SETTING: Final = "GRPC_ENABLE_FORK_SUPPORT"

_given = os.environ.get(_SETTING)
if _given is None:
    os.environ[_SETTING] = "0"
try:
    import grpc as grpc  # noqa: PLC0414 - exported name
finally:
    if _given is None:
        del os.environ[_SETTING]

FORK_SUPPORT: Final = (_given or "").lower() in ("1", "true", "yes")
"""True if a forked child may use gRPC after its parent did: only if the environment enables it."""
