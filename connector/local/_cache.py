"""Where the jars and the state of detached servers are kept: one folder per user."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Final

__all__ = ["CACHE_VARIABLE", "cache_dir"]

CACHE_VARIABLE: Final = "PRAVEGA_SERDE_CACHE"


def cache_dir() -> Path:
    """The folder of this user: ``PRAVEGA_SERDE_CACHE``, else ``XDG_CACHE_HOME/pravega-serde``, else ``~/.cache/…``.

    The folder may not exist yet.
    """
    explicit = os.environ.get(CACHE_VARIABLE)
    if explicit:
        return Path(explicit).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if os.path.isabs(base) else _home() / ".cache") / "pravega-serde"


def _home() -> Path:
    # HOME may be set and empty, which pathlib would take for the root folder.
    return Path(os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir)
