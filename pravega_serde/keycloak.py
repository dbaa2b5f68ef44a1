"""Provider of the tokens of a Keycloak service account, for clusters and registries with Keycloak users.

They are obtained as in Java's client (``KeycloakAuthzClient`` of pravega-keycloak) and the Rust client. The account's
credentials are exchanged for an access token. The access token is exchanged for a requesting party token with the
permissions at the controller, which Pravega and its registry accept as ``Bearer``. The file that Keycloak's console
exports describes the account (``keycloak.json``).

The requests contain the secret, so they go only to the server in that file: redirects are not followed, and proxies of
the environment are not used. They use the standard library, because httpx2 has no deadline for a whole exchange.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import math
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from pravega_serde.credentials import Credential
from pravega_serde.errors import CredentialError, CredentialUnavailableError, SerdeError

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
        """Read the file that Keycloak exports. Raises :class:`SerdeError`."""
        try:
            answer = json.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise SerdeError(
                f"the Keycloak service account cannot be read from {file}: {error.strerror}; check keycloak_file, "
                "which every process of a Spark job requires at the same path"
            ) from None
        except ValueError:
            raise SerdeError(f"invalid JSON in the Keycloak service account {file}") from None
        wanted = ("realm", "auth-server-url", "resource", "credentials.secret")
        found = [_at(answer, key) for key in wanted]
        for key, value in zip(wanted, found, strict=True):
            if not isinstance(value, str) or not value:
                raise SerdeError(
                    f"the Keycloak service account {file} has no text for {key}: export the client's installation "
                    "as OIDC JSON from Keycloak's console"
                )
        realm, server, name, secret = map(str, found)
        if not _is_address(server):  # not repeated in the error because it may contain a password
            raise SerdeError(
                f"invalid auth-server-url in {file}: write https://host:port/path, without a user and a password"
            )
        spare = _at(answer, "token-minimum-time-to-live")
        return cls(
            f"{server.rstrip('/')}/realms/{quote(realm, safe='')}/protocol/openid-connect/token",
            name,
            secret,
            _at(answer, "public-client") is True,
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


class KeycloakProvider:
    """Credential provider of a Keycloak service account.

    ``file`` is the account as Keycloak exports it. It is read for each token, so you can replace its secret while
    programs run. ``timeout`` limits the requests for a token, in seconds.

    Raises :class:`SerdeError` for an invalid file.
    """

    def __init__(self, file: str, *, timeout: float = 10.0) -> None:
        self._file, self._timeout = file, timeout
        self.token_url: str = ServiceAccount.read(file).token_url
        """Address of the realm's token endpoint, when the provider was created."""

    def __repr__(self) -> str:
        return f"KeycloakProvider({self._file!r})"

    def __call__(self) -> Credential:
        """Return a new token. Sends two requests to Keycloak.

        Raises :class:`CredentialError` if Keycloak refuses them, and :class:`CredentialUnavailableError` if it is
        unreachable or the file is unreadable now.
        """
        try:
            account = ServiceAccount.read(self._file)
        except SerdeError as error:  # it may be replaced at this moment
            raise CredentialUnavailableError(error.message) from None
        deadline = time.monotonic() + self._timeout
        form, headers = {"grant_type": "client_credentials"}, {}
        if account.is_public:
            form["client_id"] = account.name
        else:
            pair = f"{quote_plus(account.name)}:{quote_plus(account.secret)}"  # RFC 6749, 2.3.1
            headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode()
        access, _ = _post(account, form, headers, deadline)
        form = {"grant_type": _UMA, "audience": AUDIENCE}
        asked = time.monotonic()
        token, life = _post(account, form, {"Authorization": f"Bearer {access}"}, deadline)
        # A token's life begins before its answer arrives.
        left = max(life - (time.monotonic() - asked), 0.001)
        return Credential(token, expires_in=left, renew_before=account.spare)


def _post(account: ServiceAccount, form: dict[str, str], headers: dict[str, str], deadline: float) -> tuple[str, float]:
    """Return a token, and the seconds for which it is valid."""
    try:
        status, location, body = _Exchange(account.token_url, deadline).post(urlencode(form), headers)
    except (OSError, http.client.HTTPException) as error:
        raise _away(account, str(error) or type(error).__name__) from None
    if status in _REDIRECTED:
        raise CredentialError(
            f"Keycloak at {account.token_url} redirects to {_server(location)}, and the client's secret is "
            "not sent there: write the server's final address as auth-server-url in keycloak_file"
        )
    if status in _REFUSED:
        raise CredentialError(
            f"Keycloak at {account.token_url} refuses the service account {account.name!r} with "
            f"{status}{_reason(body)}: check realm, resource and secret in keycloak_file, and the account's "
            f"permissions at {AUDIENCE}"
        )
    if status != http.HTTPStatus.OK:
        raise _away(account, f"HTTP status {status}{_reason(body)}")
    if len(body) > _MAX_ANSWER:
        raise _away(account, f"its answer is larger than {_MAX_ANSWER} bytes")
    try:
        answer = json.loads(body)
        token, life = answer["access_token"], float(answer["expires_in"])
        if _TOKEN.fullmatch(token) and 0 < life < math.inf:
            return token, life
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise _away(account, "its answer has no token")


def _away(account: ServiceAccount, reason: str) -> CredentialUnavailableError:
    return CredentialUnavailableError(
        f"Keycloak at {account.token_url} returned no token: {reason}; check auth-server-url in keycloak_file, and "
        "that Keycloak runs"
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
        self._socket: Any = None
        self._over = False

    def post(self, form: str, headers: dict[str, str]) -> tuple[int, str, bytes]:
        """Return the status, the address of a redirect, and at most one byte more of the body than the limit.

        The socket's deadline applies to each read. So another thread ends the exchange.
        """
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        clock = threading.Timer(self._seconds, self._end)
        clock.daemon = True
        clock.start()
        try:
            with contextlib.closing(self._connection) as connection:
                connection.connect()
                self._socket = connection.sock  # the connection drops it before the body is read
                if self._over:  # do not send the secret after the deadline
                    raise TimeoutError
                connection.request("POST", self._path, form.encode(), headers)
                with connection.getresponse() as answer:
                    return answer.status, answer.headers.get("Location", ""), answer.read(_MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException):
            if self._over:
                raise TimeoutError(f"no whole answer within {self._seconds:.3g} s") from None
            raise
        finally:
            clock.cancel()

    def _end(self) -> None:
        """Let the next read fail. A read that has begun ends at the socket's own deadline."""
        self._over = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it was closed
                self._socket.settimeout(0.001)


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
        answer = json.loads(body)
        text = str(answer.get("error_description") or answer["error"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return f" ({' '.join(text.split())[:_QUOTED]})"
