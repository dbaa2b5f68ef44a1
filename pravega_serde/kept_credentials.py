"""Credentials of providers, kept and renewed before they end. The client and the registry's client share them."""

from __future__ import annotations

import importlib
import logging
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, Final

from pravega_serde import after_fork
from pravega_serde.blocking import blocking
from pravega_serde.credentials import Credential, CredentialProvider
from pravega_serde.errors import CredentialError, CredentialUnavailableError, SerdeError
from pravega_serde.per_process import PerProcess

# Seconds after which a call of a provider counts as lost, and the next caller starts another one. They double with each
# lost call, because a lost call keeps its thread.
_LOST: Final = 60.0
# Most seconds for which callers wait for a renewal while the current credential is valid.
_RENEWAL_WAIT: Final = 1.0
# Seconds after a failed renewal until the next one, while the current credential is valid.
_RENEWAL_PAUSE: Final = 5.0
_logger: Final = logging.getLogger(__name__)


def load_provider(name: str) -> CredentialProvider:
    """Return the provider of a name ``package.module:name``: a callable, or an instance of a class.

    Raises :class:`SerdeError` if it cannot be imported, and :class:`CredentialError` if its class fails.
    """
    module, _, attributes = name.partition(":")
    try:
        found: Any = attrgetter(attributes)(importlib.import_module(module))
        if isinstance(found, type):
            found = found()
    except (ImportError, AttributeError) as error:
        raise SerdeError(
            f"the credential provider {name} cannot be imported: {error}; every process that connects needs its module"
        ) from None
    except SerdeError:
        raise
    except Exception as error:  # noqa: BLE001 - of the application, and its text may contain a secret
        raise CredentialError(f"the credential provider {name} {_failure(error)}") from None
    if not callable(found):
        raise SerdeError(f"the credential provider {name} is a {type(found).__name__}, not callable")
    provider: CredentialProvider = found
    return provider


def _failure(error: BaseException) -> str:
    """Return what an error of the application says without its text, as a clause."""
    reason = getattr(error, "strerror", None) if isinstance(error, OSError) else None
    # Only the operating system's texts are known to have no secret.
    said = f" ({reason})" if isinstance(reason, str) and isinstance(getattr(error, "errno", None), int) else ""
    return f"failed with {type(error).__name__}{said}: call it in a separate program to see the error"


class KeptCredential:
    """Credential of a provider, kept and renewed shortly before it ends. Thread safe.

    All threads that need a new credential wait for the same call of the provider. If the provider fails or takes more
    than a second, they use the current credential until its end.
    """

    def __init__(self, provider: CredentialProvider, name: str | None = None) -> None:
        """``name`` is the provider's in errors."""
        self._provider = provider
        self._name = name or f"the credential provider {_name_of(provider)}"
        self._kept: _Kept | None = None
        self._failed: str | None = None  # reason why the last call returned no credential
        self._after_fork()
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._request: _Request | None = None  # the parent's threads do not answer here
        self._lost = 0  # calls that have not returned since the last one that has

    def known(self) -> str | None:
        """Return the value of the header ``authorization`` if the provider need not be called, else None."""
        kept = self._kept
        return kept.authorization if kept is not None and time.monotonic() < kept.renewal else None

    def authorization(self, timeout: float) -> str:
        """Return the value of the header ``authorization``.

        Raises :class:`CredentialError`, and :class:`CredentialUnavailableError` if a retry may help, also if the
        provider returns nothing for ``timeout`` seconds.
        """
        known = self.known()
        if known is not None:
            return known
        request = self._ask()
        wait = timeout
        if self._valid() is not None:
            wait = min(timeout, max(request.began + _RENEWAL_WAIT - time.monotonic(), 0.0))
        try:
            return blocking(lambda: request.outcome.result(wait))
        except (TimeoutError, CredentialError) as error:
            valid = self._valid()
            if valid is not None:
                return valid
            if isinstance(error, CredentialError):
                raise type(error)(error.message) from None  # other threads raise it too
            # The deadline may have cut this call short: the reason of the one before is more useful.
            late = f"{self._name} returned no credential within {timeout:.3g} s"
            raise CredentialUnavailableError(self._failed or late) from None

    def forget(self, authorization: str | None) -> None:
        """Request another credential for the next call if this one is still in use, because a server refused it."""
        with self._lock:
            if self._kept is not None and self._kept.authorization == authorization:
                self._kept = None

    def _valid(self) -> str | None:
        """Return the value of the header if the credential has not ended, else None."""
        kept = self._kept
        return kept.authorization if kept is not None and time.monotonic() < kept.end else None

    def _ask(self) -> _Request:
        """Return the call of the provider that is in progress, or has just returned, or start one."""
        with self._lock:
            request, now = self._request, time.monotonic()
            known = self.known()
            if known is not None:  # another thread has renewed it after the caller has looked
                outcome: Future[str] = Future()
                outcome.set_result(known)
                return _Request(outcome, now)
            if request is not None:
                if now <= request.began + _LOST * 2**self._lost:
                    return request
                self._lost += 1
            request = _Request(Future(), now)
            request.outcome.set_running_or_notify_cancel()  # so that no waiter cancels it
            try:
                threading.Thread(target=self._run, args=[request], name="pravega-credentials", daemon=True).start()
            except RuntimeError as error:  # the process ends, or has too many threads
                raise CredentialUnavailableError(f"{self._name} cannot be called: {error}") from None
            self._request = request
            return request

    def _run(self, request: _Request) -> None:
        try:
            credential = self._obtain()
        except CredentialError as error:
            self._fail(request, error)
        else:
            self._succeed(request, credential)

    def _succeed(self, request: _Request, credential: Credential) -> None:
        kept = None
        if credential.expires_in is not None:
            end = request.began + credential.expires_in
            spare = min(credential.renew_before, credential.expires_in / 2)
            kept = _Kept(credential.authorization, end - spare, end)
        with self._lock:
            if self._request is request:  # it does not count as lost
                self._request, self._lost, self._kept, self._failed = None, 0, kept, None
        request.outcome.set_result(credential.authorization)

    def _fail(self, request: _Request, error: CredentialError) -> None:
        with self._lock:
            if self._request is request:
                self._request, self._lost, self._failed = None, 0, error.message
            kept, now = self._kept, time.monotonic()
            if kept is not None and now < kept.end:
                self._kept = replace(kept, renewal=min(now + _RENEWAL_PAUSE, kept.end))
                _logger.warning(
                    "%s; the current credential is used, which is valid for %.0f s", error.message, kept.end - now
                )
        request.outcome.set_exception(error)

    def _obtain(self) -> Credential:
        try:
            made = self._provider()
            if isinstance(made, Credential):
                return made
            if isinstance(made, str):
                return Credential(made)
        except CredentialUnavailableError as error:
            raise CredentialUnavailableError(error.message) from None  # not a subclass, which may have other arguments
        except CredentialError as error:
            raise CredentialError(error.message) from None
        except SerdeError as error:  # of the credential's texts
            raise CredentialError(f"{self._name}: {error.message}") from None
        except OSError as error:
            raise CredentialUnavailableError(f"{self._name} {_failure(error)}") from None
        except BaseException as error:  # noqa: BLE001 - of the application, and its text may contain a secret
            raise CredentialError(f"{self._name} {_failure(error)}") from None
        raise CredentialError(f"{self._name} returned a {type(made).__name__}, not a Credential or a str")


@dataclass(frozen=True, slots=True)
class _Request:
    """Call of a provider, and when it began by ``time.monotonic()``."""

    outcome: Future[str]
    began: float


@dataclass(frozen=True, slots=True)
class _Kept:
    """Value of the header, and when it is renewed and ends by ``time.monotonic()``."""

    authorization: str = field(repr=False)
    renewal: float
    end: float


def _name_of(provider: object) -> str:
    """Return the name of a function or a class. Representations may contain secrets."""
    named: Any = provider if hasattr(provider, "__qualname__") else type(provider)
    module = getattr(named, "__module__", None)  # methods of built-in types, and functions of a notebook, have none
    return f"{module}:{named.__qualname__}" if module else str(named.__qualname__)


_shared: Final[PerProcess[tuple[str, str], KeptCredential]] = PerProcess()


def kept_credential(provider: CredentialProvider | str | None, keycloak_file: str | None) -> KeptCredential | None:
    """Return the credential of a provider or of a Keycloak service account, or None without one.

    In a process, all clients share the credential of one name or file. Raises :class:`SerdeError` for a name that
    cannot be imported and for an invalid file, and :class:`CredentialError` if the provider's class fails.
    """
    if keycloak_file is not None:
        return _shared.get(("keycloak", keycloak_file), lambda: _of_keycloak(keycloak_file))
    if isinstance(provider, str):
        return _shared.get(("name", provider), lambda: KeptCredential(load_provider(provider)))
    return None if provider is None else KeptCredential(provider)


def _of_keycloak(file: str) -> KeptCredential:
    from pravega_serde.keycloak import KeycloakProvider  # noqa: PLC0415 - loads HTTP, which few clients need

    provider = KeycloakProvider(file)
    return KeptCredential(provider, f"Keycloak at {provider.token_url}")
