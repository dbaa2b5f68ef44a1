"""A server that lets several users in, each with rights of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pravega_connector.config import PravegaConfig
from pravega_connector.local import LocalPravega
from pravega_connector.local.security import accounts_file
from tests.jvm import SOON_READY

ADMIN = "admin"


@contextlib.contextmanager
def server_with_users(folder: Path, rights: Mapping[str, Sequence[str]]) -> Iterator[PravegaConfig]:
    """Users by name, and ADMIN, who may do all and whose configuration this is; the list of them is in ``folder``."""
    everybody = {ADMIN: ("prn::*,READ_UPDATE",), **rights}
    accounts = accounts_file(folder, {name: (password(name), allowed) for name, allowed in everybody.items()})
    where = f"-Dsinglenode.security.auth.pwdAuthHandler.accountsDb.location={accounts}"
    with LocalPravega(
        username=ADMIN, password=password(ADMIN), heap_mb=768, java_options=(where, *SOON_READY)
    ) as server:
        yield server.config


def password(name: str) -> str:
    """What a user has to give."""
    return f"password of {name}"


def as_user(config: PravegaConfig, name: str) -> PravegaConfig:
    """The same server, for another user."""
    return config.with_credentials(name, password(name))
