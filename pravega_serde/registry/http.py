"""Transport of calls over HTTP, with and without asyncio: connections, deadline and retries.

A call is retried only if that can help: the server was unreachable, the connection broke, or the server reported an
internal failure. The pauses grow, with jitter, so that the clients do not reach a restarting server all at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import httpx2

from pravega_serde import after_fork
from pravega_serde.errors import (
    CredentialError,
    CredentialUnavailableError,
    RegistryAuthenticationError,
    RegistryProtocolError,
    RegistryRequestError,
    RegistryUnavailableError,
    SerdeError,
)
from pravega_serde.kept_credentials import kept_credential
from pravega_serde.registry.calls import Call, TransientError
from pravega_serde.registry.registry_config import RegistryConfig
from pravega_serde.trust_store import trusted_certificates

if TYPE_CHECKING:
    from pravega_serde.kept_credentials import KeptCredential

T = TypeVar("T")

#: Path of the interface at the address, by the kind of registry.
_BASE: Final = {"pravega": "/v1", "confluent": "", "apicurio": "/apis"}
_ACCEPT: Final = {"pravega": "application/json"}
_ACCEPT_OTHERS: Final = "application/vnd.schemaregistry.v1+json, application/json, */*;q=0.5"
#: Header that names the group of an Apicurio registry.
_APICURIO_GROUP: Final = "X-Registry-GroupId"
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
# Share of the deadline for the first attempt of a call that changes nothing, so that a lost request can be retried.
_FIRST_SHARE: Final = 1 / 3
# Share of an attempt for the connection; the rest is for the answer.
_CONNECT_SHARE: Final = 0.25
# Seconds for which httpx2 keeps an idle connection: until then, a call does not resolve the name again.
_KEPT: Final = 5.0
# Enough for a group of ten thousand schemas of some KiB.
_LARGEST_ANSWER: Final = 64 << 20
# Separate from the program's own seeded sequence.
_CHANCE: Final = random.SystemRandom()
_UNSENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)


class Http:
    """Connections to one registry, shared by threads."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._credential = _kept_credential(config)
        self._client: httpx2.Client | None = httpx2.Client(**_settings(config))
        self._answered_at = -math.inf
        self._inherited: list[httpx2.Client | None] = []
        after_fork.register(self)

    def _after_fork(self) -> None:
        # Kept unused, because the parent still uses its connections; the next call opens new ones.
        self._inherited.append(self._client)
        self._client = None

    def run(self, call: Call[T], end: float = math.inf) -> T:
        """Return the result of a call. Raises RegistryError, or RegistryUnavailableError at the deadline.

        The deadline is the registry's timeout, or ``end`` of ``time.monotonic()`` if that is earlier.
        """
        tries = _Tries(call, self._config, self._credential, end)
        while True:
            try:
                return self._attempt(tries)
            except TransientError as error:
                pause = tries.pause(error)
                if pause is None:
                    raise tries.failed(error) from error.__cause__
            except RegistryAuthenticationError:
                if not tries.renews():
                    raise
                continue
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _attempt(self, tries: _Tries[T]) -> T:
        client = self._client
        if client is None:
            client = self._client = httpx2.Client(**_settings(self._config))
        if not tries.is_authorized():
            tries.authorize()
        if time.monotonic() - self._answered_at > _KEPT:
            tries.resolve()
        with tries.sending(), client.stream(**tries.request()) as response:
            content = bytearray()
            for piece in response.iter_raw():
                tries.take(content, piece)
        self._answered_at = time.monotonic()
        return tries.result(response, bytes(content))


class AsyncHttp:
    """Connections for the tasks of one event loop; otherwise as :class:`Http`."""

    def __init__(self, config: RegistryConfig) -> None:
        self._config = config
        self._credential = _kept_credential(config)
        self._client = httpx2.AsyncClient(**_settings(config))
        after_fork.register(self)

    def _after_fork(self) -> None:
        self._client = after_fork.inherited("AsyncSchemaRegistryClient")

    async def run(self, call: Call[T]) -> T:
        """As :meth:`Http.run`."""
        tries = _Tries(call, self._config, self._credential)
        while True:
            try:
                return await self._attempt(tries)
            except TransientError as error:
                pause = tries.pause(error)
                if pause is None:
                    raise tries.failed(error) from error.__cause__
            except RegistryAuthenticationError:
                if not tries.renews():
                    raise
                continue
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        if not after_fork.is_inherited(self._client):
            await self._client.aclose()

    async def _attempt(self, tries: _Tries[T]) -> T:
        if not tries.is_authorized():
            await asyncio.to_thread(tries.authorize)
        with tries.sending():
            async with self._client.stream(**tries.request()) as response:
                content = bytearray()
                async for piece in response.aiter_raw():
                    tries.take(content, piece)
        return tries.result(response, bytes(content))


class _Tries(Generic[T]):
    """Attempts of one call: their requests, the handling of results, and the time of the last one."""

    def __init__(
        self, call: Call[T], config: RegistryConfig, credential: KeptCredential | None, end: float = math.inf
    ) -> None:
        self._call, self._config, self._credential = call, config, credential
        self._authorization: str | None = None
        self._renewed = self._lacks_credential = False
        self._started = time.monotonic()
        self._end = min(self._started + config.timeout, end)
        self._count = 0
        self._sent = False
        self._answered: TransientError | None = None

    def pause(self, error: TransientError) -> float | None:
        """Return the seconds until the next attempt.

        Return None if a retry cannot help or would start after the deadline. The pause doubles with each attempt, up to
        two seconds, and is shortened at random by up to a half.
        """
        # Server 0.6.0 on Pravega can process a change forever, once for each request.
        if (self._call.once and error.sent) or (self._call.changes and error.late):
            return None
        longest: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (self._count - 1))
        pause = longest * _CHANCE.uniform(0.5, 1)
        return pause if time.monotonic() + pause < self._end else None

    def is_authorized(self) -> bool:
        """Use the known credential for the next attempt. Return False if :meth:`authorize` must request one."""
        if self._credential is None:
            return True
        self._authorization = self._credential.known()
        return self._authorization is not None

    def authorize(self) -> None:
        """Request a credential. Raises TransientError, and RegistryAuthenticationError if a retry cannot help."""
        assert self._credential is not None
        try:
            self._authorization = self._credential.authorization(max(self._end - time.monotonic(), 0.001))
        except CredentialUnavailableError as error:
            self._count += 1
            self._lacks_credential = True
            raise TransientError(error.message, sent=False) from None
        except CredentialError as error:
            self._renewed = True
            raise RegistryAuthenticationError(f"cannot {self._call.purpose}: {error.message}") from None
        self._lacks_credential = False

    def renews(self) -> bool:
        """Return True, once, if a provider may have another credential than the one that was refused."""
        if self._credential is None or self._renewed:
            return False
        self._credential.forget(self._authorization)
        self._renewed = True
        return True

    def resolve(self) -> None:
        """Wait for the system's resolver. It has no timeout, and httpx2 applies one to it only with asyncio.

        Raises TransientError at the deadline. An unknown name is an error of the request.
        """
        host = httpx2.URL(self._config.address).host
        with contextlib.suppress(OSError):
            socket.getaddrinfo(host, None, flags=socket.AI_NUMERICHOST)
            return
        resolved = threading.Event()

        def look_up() -> None:
            with contextlib.suppress(OSError, UnicodeError):
                socket.getaddrinfo(host, None)
            resolved.set()

        threading.Thread(target=look_up, name=f"registry-resolver {host}", daemon=True).start()
        if not resolved.wait(max(self._end - time.monotonic(), 0.001)):
            self._count += 1
            raise TransientError(f"the name {host} was not resolved in time", sent=False)

    def request(self) -> dict[str, Any]:
        """Return the httpx2 arguments of the next attempt."""
        self._count += 1
        limit = max(self._end - time.monotonic(), 0.001)
        if self._count == 1 and not self._call.changes:
            limit *= _FIRST_SHARE
        connect = limit * _CONNECT_SHARE
        content = self._call.content()
        headers = {} if content is None else {"Content-Type": "application/json"}
        if self._authorization is not None:
            headers["Authorization"] = self._authorization
        query = dict(self._call.query)
        if self._config.namespace is not None and self._config.kind == "pravega":
            query.setdefault("namespace", self._config.namespace)
        return {
            "method": self._call.method,
            "url": self._call.path,
            "params": query or None,
            "content": content,
            "headers": headers,
            "timeout": httpx2.Timeout(limit - connect, connect=connect),
        }

    def take(self, content: bytearray, piece: bytes) -> None:
        """Add a piece to an answer. Limits the size and the duration of the answer."""
        content += piece
        if len(content) > _LARGEST_ANSWER:
            raise RegistryProtocolError(
                f"cannot {self._call.purpose}: the answer is larger than {_LARGEST_ANSWER} bytes; check that "
                f"{self._config.uri} is a schema registry"
            )
        if time.monotonic() > self._end:
            raise TransientError("the answer did not end in time", late=True)

    @contextlib.contextmanager
    def sending(self) -> Iterator[None]:
        """Replace errors below HTTP, and errors of a request that no server could receive."""
        try:
            yield
        except httpx2.HTTPError as error:
            raise self._broken(error) from error
        except (httpx2.InvalidURL, UnicodeError) as error:
            raise RegistryRequestError(
                f"cannot {self._call.purpose:.500}: invalid address or argument: {error}; check {self._config.uri:.500}"
            ) from error

    def _broken(self, error: httpx2.HTTPError) -> Exception:
        if _is_tls(error):
            return RegistryProtocolError(
                f"cannot {self._call.purpose}: no trusted connection to {self._config.uri} ({error}); set ca_file to "
                "the certificate of its authority, or check http and https"
            )
        sent = not isinstance(error, _UNSENT)
        self._sent |= sent
        return TransientError(_reason(error), sent=sent, late=sent and isinstance(error, httpx2.TimeoutException))

    def result(self, response: httpx2.Response, content: bytes) -> T:
        self._sent = True
        try:
            return self._call.result(response.status_code, content, server=self._config.uri)
        except TransientError as error:
            self._answered = error
            raise

    def failed(self, error: TransientError) -> RegistryUnavailableError:
        """Return the error of a call that has no attempts left."""
        doubt = "; the server may have done it nevertheless" if self._call.changes and self._sent else ""
        tries = f"{self._count} {'try' if self._count == 1 else 'tries'}"
        # The deadline may have cut the last attempt short: the earlier answer of the server is more useful.
        answered = self._answered or error
        reason = error.reason if answered is error else f"{answered.reason}, then {error.reason}"
        advice = f"; check that the schema registry at {self._config.uri} is running"
        return RegistryUnavailableError(
            f"cannot {self._call.purpose}: {reason}, after {tries} in {time.monotonic() - self._started:.1f} "
            f"s{doubt}{'' if self._lacks_credential else advice}",
            status=answered.status,
        )


def _kept_credential(config: RegistryConfig) -> KeptCredential | None:
    """Return the credential that a provider renews, or None for a fixed one."""
    if config.credential_provider is None and config.keycloak_file is None:
        return None
    return kept_credential(config.credential_provider, config.keycloak_file)


def _settings(config: RegistryConfig) -> dict[str, Any]:
    accept = _ACCEPT.get(config.kind, _ACCEPT_OTHERS)
    headers = {"Accept": accept, "Accept-Encoding": "identity", "User-Agent": "pravega-serde"}
    if config.kind == "apicurio" and config.namespace is not None:
        headers[_APICURIO_GROUP] = config.namespace
    if config.authorization is not None:
        headers["Authorization"] = config.authorization
    return {
        "base_url": config.address.rstrip("/") + _BASE[config.kind],
        "headers": headers,
        "verify": _trust(config) if config.address.startswith("https:") else False,
        # Neither the environment nor ~/.netrc changes the address and the credentials of calls.
        "trust_env": False,
    }


def _trust(config: RegistryConfig) -> ssl.SSLContext:
    if config.ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=trusted_certificates(config.ca_file, config.ca_password))
    except OSError as error:  # ssl.SSLError, for an invalid certificate, is one too
        raise SerdeError(
            f"the registry's ca_file {config.ca_file} has no certificates: {error.strerror or error}"
        ) from error


def _is_tls(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error is not None


def _reason(error: httpx2.HTTPError) -> str:
    if isinstance(error, httpx2.TimeoutException):
        return "it did not answer in time" if not isinstance(error, _UNSENT) else "it cannot be reached in time"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
