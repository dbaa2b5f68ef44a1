"""Objects in a forked child: locks are renewed, and using a part of the parent raises ForkedError.

A fork copies the memory and one thread. So another thread's lock stays locked in the child, background threads do not
run there, and sockets are shared with the parent. An object with any of these calls :func:`register`. Its method
``_after_fork`` then runs in each child before any other code. It renews the object's locks and replaces parts with
:func:`inherited`. The parent is not affected, and calls in both processes cost the same as before.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Final, NoReturn, Protocol

from pravega_serde.errors import ForkedError


class Forks(Protocol):
    """An object that must be prepared after a fork."""

    def _after_fork(self) -> None:
        """Prepare this copy of the object for use in a forked child. It must not wait or raise."""
        ...


class _Inherited:
    """Part of an object that belongs to the parent process: closing it has no effect, any other use raises."""

    __slots__ = ("_owner",)

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def close(self, *_: object, **__: object) -> None:
        """Do nothing: the parent closes its own."""

    __exit__ = close

    def _refuse(self, *_: object) -> NoReturn:
        raise ForkedError(
            f"this {self._owner} belongs to the process that forked this one (process {os.getpid()}): create it after "
            "the fork, or start processes with 'spawn' or 'forkserver'"
        )

    __bool__ = __call__ = __enter__ = __getitem__ = __iter__ = __len__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()


def inherited(owner: str) -> Any:
    """Return a stand-in for a part of ``owner``, as text, in a forked child.

    It can be a lock, a flag, a collection or an object with methods: each use but ``close`` raises ForkedError.
    """
    return _Inherited(owner)


def is_inherited(part: object) -> bool:
    """Return True if a part was replaced after a fork."""
    return isinstance(part, _Inherited)


_registered: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def register(owner: Forks) -> None:
    """Call the owner's ``_after_fork`` in every child that this process or one of its children forks."""
    _registered.add(owner)


def _after_fork() -> None:
    for owner in list(_registered):
        owner._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
