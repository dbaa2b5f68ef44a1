"""Refusal of subinterpreters, in which pyarrow hangs at its import and gRPC and numpy are not supported."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


def refuse_subinterpreter() -> None:
    """Raise ImportError if this is not the main interpreter of the process."""
    try:
        interpreters: Any = import_module("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
        is_main = interpreters.get_current() == interpreters.get_main()
    except (ImportError, AttributeError):  # an implementation without them
        return
    if not is_main:
        raise ImportError(
            "pravega_serde cannot be imported in a subinterpreter, because pyarrow, numpy and gRPC need the main "
            "interpreter: use a process or a thread instead, and in mod_wsgi set WSGIApplicationGroup %{GLOBAL}"
        )
