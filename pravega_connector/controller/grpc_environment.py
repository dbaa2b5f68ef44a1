"""Environment of gRPC, set before anything imports it: its fork handlers are off.

They are on unless the environment says otherwise when gRPC is first imported, and then a child that is forked only to
exec aborts now and then (7 of 180 here). PySpark starts its JVM by such a fork, and says "Java gateway process exited".
Without the handlers a forked child must not call gRPC if its parent has: it would hang, deaf to deadlines.

gRPC itself is imported with the first call to a controller: a task that knows where its segment is makes none.
"""

from __future__ import annotations

import os
import sys
from typing import Final

_SETTING: Final = "GRPC_ENABLE_FORK_SUPPORT"
if "grpc" not in sys.modules:
    os.environ.setdefault(_SETTING, "0")
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # a line for each failed handshake says less than our error

FORK_HANDLERS: Final = os.environ.get(_SETTING) != "0"
"""Whether a forked child may use gRPC after its parent did: set by the environment, or gRPC was imported before."""
