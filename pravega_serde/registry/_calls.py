"""One REST call as a value: what is asked, and what each answer means. Nothing here does I/O.

The clients with and without asyncio send the same calls, so that both give the same results and the same errors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

from pravega_serde.errors import (
    RegistryAuthenticationError,
    RegistryConflictError,
    RegistryError,
    RegistryNotFoundError,
    RegistryPermissionError,
    RegistryProtocolError,
    RegistryRequestError,
)

__all__ = ["Call", "TransientError", "about", "in_path"]

T = TypeVar("T")

_EXCERPT: Final = 200
# How Java says that the server's own code dereferenced null: the next try would do the same (JEP 358).
_NULL_POINTER: Final = "Cannot invoke "
_TOO_MANY_REQUESTS: Final = 429
_REFUSALS: Final[Mapping[int, tuple[type[RegistryError], str]]] = {
    400: (RegistryRequestError, "the server takes the request for malformed"),
    401: (RegistryAuthenticationError, "it wants other credentials: check username and password, or the token"),
    403: (RegistryPermissionError, "the user is known and not permitted to do this"),
    404: (RegistryNotFoundError, "there is no such thing"),
    409: (RegistryConflictError, "what is there already does not allow it"),
    412: (RegistryConflictError, "something that it needs is not there"),
    417: (RegistryConflictError, "the group holds another format"),
}


class TransientError(Exception):
    """An attempt failed in a way that a later one may not. Never reaches the user.

    ``sent`` is false where the server cannot have seen the request; ``late`` is true where it may still be at work.
    """

    def __init__(self, reason: str, *, sent: bool = True, late: bool = False, status: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.sent, self.late, self.status = reason, sent, late, status


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """``purpose`` completes "cannot …"; ``path`` follows the interface's base; ``answers`` reads each good status.

    ``changes`` is true if the server's state may be another one afterwards, of ``group`` where it names one. Such a
    call may be sent again after a failure, unless it says ``once``. ``refusals`` says what a status means here.
    """

    purpose: str
    method: str
    path: str
    answers: Mapping[int, Callable[[Any], T]]
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    group: str | None = None
    changes: bool = False
    once: bool = False
    refusals: Mapping[int, str] = field(default_factory=dict)

    def content(self) -> bytes | None:
        """The request's body."""
        return None if self.body is None else json.dumps(self.body).encode()

    def result(self, status: int, content: bytes, *, server: str) -> T:
        """What an answer of that server (its address) means.

        Raises TransientError where another try may help, and otherwise the RegistryError that says why there is none.
        """
        read = self.answers.get(status)
        if read is None:
            raise self._refusal(status, _excerpt(content), server)
        try:
            return read(json.loads(content) if content else None)
        except (RegistryProtocolError, ValueError, RecursionError) as error:
            reason = error.message if isinstance(error, RegistryProtocolError) else "the answer is not JSON"
            said = _excerpt(content) or "nothing"
            raise RegistryProtocolError(
                f"cannot {self.purpose}: {reason} (said: {said}); is there a schema registry at {server}?",
                status=status,
            ) from error

    def _refusal(self, status: int, said: str, server: str) -> Exception:
        detail = f" (status {status}{f': {said}' if said else ''})"
        if status in _REFUSALS:
            kind, usual = _REFUSALS[status]
            return kind(f"cannot {self.purpose}: {self.refusals.get(status, usual)}{detail}", status=status)
        if status == _TOO_MANY_REQUESTS or (status >= 500 and not said.startswith(_NULL_POINTER)):
            return TransientError(
                f"the server answers with status {status}{f': {said}' if said else ''}", status=status
            )
        if status >= 500:
            return RegistryError(f"cannot {self.purpose}: the server fails at this request{detail}", status=status)
        return RegistryProtocolError(
            f"cannot {self.purpose}: unexpected answer{detail}; is there a schema registry at {server}?", status=status
        )


def about(group: str, purpose: str, method: str, rest: str = "", **more: Any) -> Call[Any]:
    """A call about one group."""
    refusals = {404: "there is no such group" if not rest else "there is no such group or nothing of that name in it"}
    refusals |= more.pop("refusals", {})
    return Call(
        purpose=f"{purpose} group {group!r}",
        method=method,
        path=f"/groups/{in_path(group)}{rest}",
        group=group,
        refusals=refusals,
        **more,
    )


def in_path(text: str) -> str:
    """A name as a piece of a path."""
    if text in ("", ".", ".."):
        raise RegistryRequestError(f"the name {text!r} cannot stand in a request; choose another")
    return quote(text, safe="")


def _excerpt(content: bytes) -> str:
    return " ".join(content[: 4 * _EXCERPT].decode(errors="replace").split())[:_EXCERPT]
