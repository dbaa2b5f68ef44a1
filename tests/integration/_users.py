"""A server over TLS that lets several users in, each with separate rights."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pravega_connector.config import PravegaConfig
from pravega_connector.exactly_once.batch_commit import ledger_name
from pravega_connector.local import LocalPravega
from pravega_connector.local.security import accounts_file
from pravega_connector.wire import StreamName
from tests.support.jvm import SOON_READY

ADMIN = "admin"
#: Read by the users in test_client_read_only.py.
ORDERS = StreamName("shop", "orders")
#: Written exactly once by the users in test_ledger_permissions.py.
SALES = StreamName("till", "sales")
LEDGER = ledger_name(SALES)

_READ_ORDERS = f"prn::/scope:{ORDERS.scope}/stream:{ORDERS.stream},READ"
_PUBLISH = (f"{_READ_ORDERS}_UPDATE", f"prn::/scope:{ORDERS.scope},READ_UPDATE")
_WRITE_SALES = f"prn::/scope:{SALES.scope}/stream:{SALES.stream},READ_UPDATE"
_READ_LEDGER = f"prn::/scope:{SALES.scope}/stream:{LEDGER.stream},READ"
_RIGHTS = {
    ADMIN: ("prn::*,READ_UPDATE",),
    "analyst": (_READ_ORDERS,),
    "publisher": _PUBLISH,
    "owner": (*_PUBLISH, f"prn::/scope:{ORDERS.scope}/reader-group:owner.{ORDERS.stream},READ_UPDATE"),
    "no-ledger": (_WRITE_SALES,),
    "reads-ledger": (_WRITE_SALES, _READ_LEDGER),
    "writes-ledger": (_WRITE_SALES, f"{_READ_LEDGER}_UPDATE"),
}


@contextlib.contextmanager
def server_with_users(folder: Path) -> Iterator[PravegaConfig]:
    """Start a server with users and TLS; yield the configuration of ADMIN, who may do all. ``folder`` gets their list.

    The configuration has the name of the server that is in its certificate.
    """
    accounts = accounts_file(folder, {name: (password(name), allowed) for name, allowed in _RIGHTS.items()})
    where = f"-Dsinglenode.security.auth.pwdAuthHandler.accountsDb.location={accounts}"
    with LocalPravega(
        username=ADMIN, password=password(ADMIN), tls=True, heap_mb=1024, java_options=(where, *SOON_READY)
    ) as server:
        ((_, port),) = server.config.endpoints
        yield server.config.with_controller(f"tls://localhost:{port}")


def password(name: str) -> str:
    """Credentials of a user."""
    return f"password of {name}"


def as_user(config: PravegaConfig, name: str) -> PravegaConfig:
    """The same server, for another user."""
    return config.with_credentials(name, password(name))
