"""How the registry's clients wait for an answer: in place, or as the event loop on whose behalf they run has it.

The client for asyncio installs a way that lets the loop go on. Elsewhere work that blocks just runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def _in_place(work: Callable[[], Any]) -> Any:
    return work()


_way: Callable[[Callable[[], Any]], Any] = _in_place


def install(way: Callable[[Callable[[], Any]], Any]) -> None:
    """Have :func:`blocking` run its work by ``way``."""
    global _way  # noqa: PLW0603 - one switch for the process: without an event loop, nothing is looked up
    _way = way


def blocking(work: Callable[[], T]) -> T:
    """The result of ``work``, which may block the thread in which it runs."""
    result: T = _way(work)
    return result
