"""Blocking work of the registry's clients: run in place, or handed to an event loop.

The client for asyncio installs a runner that keeps its loop running. Without one, the work runs in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def _in_place(work: Callable[[], Any]) -> Any:
    return work()


_way: Callable[[Callable[[], Any]], Any] = _in_place


def install(way: Callable[[Callable[[], Any]], Any]) -> None:
    """Let :func:`blocking` run its work with ``way``."""
    global _way  # noqa: PLW0603 - one switch for the process: without an event loop, nothing is looked up
    _way = way


def blocking(work: Callable[[], T]) -> T:
    """Return the result of ``work``, which may block the thread in which it runs."""
    result: T = _way(work)
    return result
