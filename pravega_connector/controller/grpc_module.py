"""Import of the module ``grpc`` such that another program can be started with a fork, and that its core logs no notes.

The fork support in gRPC's core is on by default, although the fork support of its Python part is off. While a channel
is open, the core then restarts its threads in each forked child. A child that is forked only to exec aborts now and
then: 12 of 180 with gRPC 1.85, none with the support off. PySpark starts its JVM with such a fork from the driver, and
would report "Java gateway process exited".

By default, the core writes a line to standard error when a controller ends a connection, as each restart does. The
package logs such events itself.

gRPC reads these settings during its import. So the environment has them only during the import, and neither this
process nor its children have them later. Your own settings take precedence, and so does an earlier import of ``grpc``.

Without the fork support, a forked child must not call gRPC if its parent has: it would hang and ignore deadlines.
"""

from __future__ import annotations

import os
from typing import Final

_FORK_SUPPORT: Final = "GRPC_ENABLE_FORK_SUPPORT"
_DEFAULTS: Final = {_FORK_SUPPORT: "0", "GRPC_VERBOSITY": "ERROR"}

FORK_SUPPORT: Final = os.environ.get(_FORK_SUPPORT, "").lower() in ("1", "true", "yes")
"""True if a forked child may use gRPC after its parent did: only if the environment enables it."""

_missing = [name for name in _DEFAULTS if name not in os.environ]
os.environ.update({name: _DEFAULTS[name] for name in _missing})
try:
    import grpc as grpc  # noqa: PLC0414 - exported name
finally:
    for _name in _missing:
        del os.environ[_name]
