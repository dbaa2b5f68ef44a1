"""Credentials of calls to Pravega and to a registry, and the providers that return them.

Texts are checked before they are sent. No error and no representation contains a credential.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from pravega_serde.errors import SerdeError

_PLAIN: Final = re.compile(r"[!-~]+(?: +[!-~]+)*")  # what a header of HTTP and gRPC carries
_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


def fault_of(text: Any, *, encoded: bool = False) -> str | None:
    """Return the reason why a header cannot carry a text, as a clause without the text, or None if it can.

    ``encoded`` texts are sent as base64 of their UTF-8.
    """
    if not isinstance(text, str):
        return f"must be a str, not {type(text).__name__}"
    if encoded:
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate, as the environment has them for bytes that are not UTF-8
            return "has a character that UTF-8 cannot encode"
        return None
    if _PLAIN.fullmatch(text):
        return None
    if text != text.strip():
        return "begins or ends with a blank or a line end: remove it, for example with strip()"
    return "is empty" if not text else "has characters that a header cannot contain: use visible ASCII characters"


@dataclass(frozen=True, slots=True)
class Credential:
    """Credential that a :class:`CredentialProvider` returns: a method, a secret token, and how long it is valid.

    Raises :class:`SerdeError` for a text that a header cannot carry. The error does not contain it.
    """

    token: str = field(repr=False)
    """Secret. For the method ``Basic``, base64 of ``user:password``: see :meth:`basic`."""
    method: str = "Bearer"
    """The server's name for the kind of credential."""
    expires_in: float | None = None
    """Seconds for which the credential is valid, from now on. None if that is unknown: the provider is then called
    again for each call to a server, as in Java."""
    renew_before: float = 60.0
    """Seconds before its end from which it is renewed, but at most half of ``expires_in``."""

    def __post_init__(self) -> None:
        for what, text in (("token", self.token), ("method", self.method)):
            fault = fault_of(text)
            if fault:
                raise SerdeError(f"the {what} of a credential {fault}")
        if self.expires_in is not None and not self.expires_in > 0:
            raise SerdeError(f"expires_in of a credential is {self.expires_in:g} seconds: it must be positive")
        if not self.renew_before >= 0:
            raise SerdeError(f"renew_before of a credential is {self.renew_before:g} seconds: it must not be negative")

    @classmethod
    def basic(cls, username: str, password: str, *, expires_in: float | None = None) -> Credential:
        """Return the credential of a user with a password."""
        for what, text in (("username", username), ("password", password)):
            fault = fault_of(text, encoded=True)
            if fault:
                raise SerdeError(f"the {what} of a credential {fault}")
        return cls(base64.b64encode(f"{username}:{password}".encode()).decode(), "Basic", expires_in)

    @property
    def authorization(self) -> str:
        """Value of the header ``authorization``."""
        return f"{self.method} {self.token}"


class CredentialProvider(Protocol):
    """Source of credentials: a function, or a class. Each process creates one instance of a class that an option names.

    It is called in a background thread when there is no credential or it ends soon. It may wait for a server. It is not
    called again before it returns, except if it has not returned for a minute. If it fails or takes more than a second,
    the current credential is used until its end.

    Raise an ``OSError`` such as ``TimeoutError``, or :class:`CredentialUnavailableError`, if a retry may help. Of other
    errors than :class:`CredentialError`, the texts are not shown, because they may contain secrets.
    """

    def __call__(self) -> Credential | str:
        """Return a credential, or the text of a bearer token."""


def provider_fault(provider: object) -> str | None:
    """Return the reason why a value is neither a provider nor the name of one, as a clause, or None."""
    if isinstance(provider, str):
        return None if _PLACE.fullmatch(provider) else "is not a name: write package.module:name"
    return None if callable(provider) else f"must be callable or a name, not a {type(provider).__name__}"
