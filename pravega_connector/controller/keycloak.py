"""Tokens of a Keycloak service account, for clusters with Keycloak users.

They are obtained as in Java's client (``KeycloakAuthzClient`` of pravega-keycloak) and the Rust client. The account's
credentials are exchanged for an access token. The access token is exchanged for a requesting party token with the
permissions at the controller, which Pravega accepts as ``Bearer``. The file that Keycloak's console exports describes
the account (``keycloak.json``).

The requests contain the secret, so they go only to the server in that file: redirects are not followed, and proxies of
the environment are not used. They use the standard library, because httpx has no deadline for a whole exchange.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import math
import re
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from pravega_connector.core import io
from pravega_connector.errors import AuthenticationError, ConfigError, ControllerUnavailableError

AUDIENCE: Final = "pravega-controller"  # KeycloakAuthzClient.DEFAULT_PRAVEGA_CONTROLLER_CLIENT_ID
_UMA: Final = "urn:ietf:params:oauth:grant-type:uma-ticket"
_SPARE: Final = 60.0  # unused seconds at the end of a token's life, as in KeycloakAuthzClient
_MAX_ANSWER: Final = 1 << 20  # bytes
_REFUSED: Final = frozenset({400, 401, 403, 404})
_REDIRECTED: Final = frozenset({301, 302, 303, 307, 308})
_TOKEN: Final = re.compile(r"[!-~]+")  # characters allowed in a header
_QUOTED: Final = 160


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Service account of a Keycloak client."""

    token_url: str
    """Address of the realm's token endpoint."""
    name: str
    """Name of the client: ``resource`` of the file."""
    secret: str
    """Secret of the client."""
    is_public: bool
    """True if it is identified only by its name."""
    spare: float
    """Minimum remaining seconds of a token to be used: ``token-minimum-time-to-live`` of the file."""

    def __repr__(self) -> str:
        return f"ServiceAccount({self.name!r} at {self.token_url})"

    @classmethod
    def read(cls, file: str) -> ServiceAccount:
        """Read the file that Keycloak exports. Raises ConfigError."""
        try:
            told = json.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(
                f"the Keycloak service account cannot be read from {file}: {error.strerror}; check keycloak_file; "
                "every process of a Spark job requires it at the same path"
            ) from None
        except ValueError:
            raise ConfigError(f"invalid JSON in the Keycloak service account {file}") from None
        wanted = ("realm", "auth-server-url", "resource", "credentials.secret")
        found = [_at(told, key) for key in wanted]
        for key, value in zip(wanted, found, strict=True):
            if not isinstance(value, str) or not value:
                raise ConfigError(
                    f"the Keycloak service account {file} has no text for {key}: export the client's installation "
                    "as OIDC JSON from Keycloak's console"
                )
        realm, server, name, secret = map(str, found)
        if not _is_address(server):  # not repeated in the error because it may contain a password
            raise ConfigError(
                f"invalid auth-server-url in {file}: write https://host:port/path, without a user and a password"
            )
        spare = _at(told, "token-minimum-time-to-live")
        return cls(
            f"{server.rstrip('/')}/realms/{quote(realm, safe='')}/protocol/openid-connect/token",
            name,
            secret,
            _at(told, "public-client") is True,
            float(spare) if isinstance(spare, int) and spare > 0 else _SPARE,
        )


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0 and "@" not in url
    except ValueError:
        return False


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


class KeycloakTokens:
    """Token of a service account, kept until shortly before it expires. Thread safe."""

    def __init__(self, file: str) -> None:
        """Read the file without sending a request. Raises ConfigError for the file."""
        self._account = ServiceAccount.read(file)
        self._lock = io.lock()
        self._token: tuple[str, float] | None = None  # with the time, by time.monotonic(), after which it is too old

    def authorization(self, timeout: float) -> str:
        """Return the value of the ``authorization`` header.

        Raises AuthenticationError, and ControllerUnavailableError if Keycloak is unreachable for ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        token = self._valid()
        if token is None:
            if not self._lock.acquire(timeout=timeout):
                raise self._away(f"no token within {timeout:g} s")
            try:
                token = self._valid() or self._renew(deadline)
            finally:
                self._lock.release()
        return f"Bearer {token}"

    def forget(self, authorization: str) -> None:
        """Request a new token for the next call if this one is still in use."""
        if self._token is not None and authorization == f"Bearer {self._token[0]}":
            self._token = None

    def _valid(self) -> str | None:
        token = self._token
        return token[0] if token is not None and time.monotonic() < token[1] else None

    def _renew(self, deadline: float) -> str:
        account = self._account
        form, headers = {"grant_type": "client_credentials"}, {}
        if account.is_public:
            form["client_id"] = account.name
        else:
            pair = f"{quote_plus(account.name)}:{quote_plus(account.secret)}"  # RFC 6749, 2.3.1
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        access, _ = self._post(form, headers, deadline)
        asked = time.monotonic()
        form = {"grant_type": _UMA, "audience": AUDIENCE}
        token, life = self._post(form, {"Authorization": f"Bearer {access}"}, deadline)
        self._token = token, asked + life - min(account.spare, life / 2)
        return token

    def _post(self, form: dict[str, str], headers: dict[str, str], deadline: float) -> tuple[str, float]:
        """Return a token, and the seconds for which it is valid."""
        exchange = _Exchange(self._account.token_url, deadline)
        try:
            status, location, body = io.blocking(lambda: exchange.post(urlencode(form), headers))
        except (OSError, http.client.HTTPException) as error:
            raise self._away(str(error) or type(error).__name__) from None
        if status in _REDIRECTED:
            raise ConfigError(
                f"Keycloak at {self._account.token_url} redirects to {_server(location)}, and the client's secret is "
                "not sent there: write the server's final address as auth-server-url in keycloak_file"
            )
        if status in _REFUSED:
            raise AuthenticationError(
                f"Keycloak at {self._account.token_url} refuses the service account {self._account.name!r} with "
                f"{status}{_reason(body)}: check realm, resource and secret in keycloak_file, and the account's "
                f"permissions at {AUDIENCE}"
            )
        if status != http.HTTPStatus.OK:
            raise self._away(f"HTTP status {status}{_reason(body)}")
        if len(body) > _MAX_ANSWER:
            raise self._away(f"its answer is larger than {_MAX_ANSWER} bytes")
        try:
            told = json.loads(body)
            token, life = told["access_token"], float(told["expires_in"])
            if _TOKEN.fullmatch(token) and 0 < life < math.inf:
                return token, life
        except (ValueError, KeyError, TypeError, RecursionError):
            pass
        raise self._away("its answer has no token")

    def _away(self, reason: str) -> ControllerUnavailableError:
        return ControllerUnavailableError(
            f"Keycloak at {self._account.token_url} returned no token for the controller: {reason}; check "
            "auth-server-url in keycloak_file, and that Keycloak runs"
        )


class _Exchange:
    """Request to Keycloak and its answer, which end at a deadline even if bytes arrive slowly."""

    def __init__(self, url: str, deadline: float) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._seconds = max(deadline - time.monotonic(), 0.1)
        self._connection = kind(parts.hostname, parts.port, timeout=self._seconds)
        self._path = parts.path
        self._socket: socket.socket | None = None
        self._over = False

    def post(self, form: str, headers: dict[str, str]) -> tuple[int, str, bytes]:
        """Return the status, the address of a redirect, and at most one byte more of the body than the limit.

        The name service has no deadline, and the socket's deadline applies to each read. So a thread waits for both.
        """
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        try:
            return io.in_background(lambda: self._run(form, headers), "pravega-keycloak").result(self._seconds)
        except TimeoutError:
            raise TimeoutError(f"no whole answer within {self._seconds:.3g} s") from None
        finally:
            self._end()

    def _run(self, form: str, headers: dict[str, str]) -> tuple[int, str, bytes]:
        with contextlib.closing(self._connection) as connection:
            connection.connect()
            self._socket = connection.sock
            if self._over:  # do not send after the caller's timeout
                raise TimeoutError
            connection.request("POST", self._path, form.encode(), headers)
            with connection.getresponse() as answer:
                return answer.status, answer.headers.get("Location", ""), answer.read(_MAX_ANSWER + 1)

    def _end(self) -> None:
        """End the connection, which wakes a thread that still reads."""
        self._over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it was closed
                socket.socket.shutdown(
                    self._socket, socket.SHUT_RDWR
                )  # not TLS's shutdown, which belongs to the thread


def _server(url: str) -> str:
    """Return scheme and host of an address. The rest may contain a secret."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:_QUOTED] if parts.netloc else "another path"
    except ValueError:
        return "another address"


def _reason(body: bytes) -> str:
    """Return Keycloak's text for an error, in parentheses; empty if there is none."""
    try:
        told = json.loads(body)
        text = str(told.get("error_description") or told["error"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return f" ({' '.join(text.split())[:_QUOTED]})"
