"""Tokens of a Keycloak service account, for clusters whose users are Keycloak's.

As Java's client (``KeycloakAuthzClient`` of pravega-keycloak) and the Rust one get them: the account's own credentials
are exchanged for an access token, and this for a requesting party token with the permissions at the controller, which
Pravega takes as ``Bearer``. The account is described by the file that Keycloak's console exports (``keycloak.json``).
"""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, quote_plus, urlencode

from ..errors import AuthenticationError, ConfigError, ControllerUnavailableError
from . import waiting

__all__ = ["KeycloakTokens", "ServiceAccount"]

AUDIENCE: Final = "pravega-controller"  # KeycloakAuthzClient.DEFAULT_PRAVEGA_CONTROLLER_CLIENT_ID
_UMA: Final = "urn:ietf:params:oauth:grant-type:uma-ticket"
_SPARE: Final = 60.0  # seconds of a token's life that are left unused; KeycloakAuthzClient has the same
_MAX_ANSWER: Final = 1 << 20  # bytes
_REFUSED: Final = frozenset({400, 401, 403, 404})
_QUOTED: Final = 160


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """Service account of a Keycloak client."""

    token_url: str
    """Where its realm hands out tokens."""
    name: str
    """Name of the client: ``resource`` of the file."""
    secret: str
    """Secret of the client."""
    is_public: bool
    """Whether it is known by its name alone."""
    spare: float
    """Seconds that a token must still be valid to be used: ``token-minimum-time-to-live`` of the file."""

    def __repr__(self) -> str:
        return f"ServiceAccount({self.name!r} at {self.token_url})"

    @classmethod
    def read(cls, file: str) -> ServiceAccount:
        """Read the file that Keycloak exports. Raises ConfigError."""
        try:
            told = json.loads(Path(file).read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(
                f"the Keycloak service account cannot be read from {file}: {error.strerror}; check keycloak_file, "
                "which every process of a Spark job needs at the same path"
            ) from None
        except ValueError:
            raise ConfigError(f"invalid JSON in the Keycloak service account {file}") from None
        wanted = ("realm", "auth-server-url", "resource", "credentials.secret")
        found = [_at(told, key) for key in wanted]
        for key, value in zip(wanted, found, strict=True):
            if not isinstance(value, str) or not value:
                raise ConfigError(
                    f"the Keycloak service account {file} has no text for {key}: export it from Keycloak's console, in "
                    "the client's installation as OIDC JSON"
                )
        realm, server, name, secret = map(str, found)
        if not server.startswith(("http://", "https://")):
            raise ConfigError(f"invalid auth-server-url {server!r} in {file}: write http:// or https://")
        spare = _at(told, "token-minimum-time-to-live")
        return cls(
            f"{server.rstrip('/')}/realms/{quote(realm, safe='')}/protocol/openid-connect/token",
            name,
            secret,
            _at(told, "public-client") is True,
            float(spare) if isinstance(spare, int) and spare > 0 else _SPARE,
        )


def _at(value: Any, path: str) -> Any:
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


class KeycloakTokens:
    """Token of a service account, kept until shortly before it ends. Thread safe."""

    def __init__(self, file: str) -> None:
        """Nothing is asked for yet. Raises ConfigError for the file."""
        self._account = ServiceAccount.read(file)
        self._lock = waiting.lock()
        self._token: tuple[str, float] | None = None  # with the time, by time.monotonic(), from which on it is too old

    def authorization(self, timeout: float) -> str:
        """Value of the ``authorization`` header.

        Raises AuthenticationError, ControllerUnavailableError where Keycloak cannot be reached within ``timeout``
        seconds.
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
        """Get another token for the next call if this one is still the one in use."""
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
        """A token, and the seconds for which it is valid."""
        request = urllib.request.Request(self._account.token_url, urlencode(form).encode(), headers)  # noqa: S310 - http or https, checked
        try:
            body = waiting.blocking(lambda: _body(request, max(deadline - time.monotonic(), 0.1)))
            told = json.loads(body)
            return str(told["access_token"]), float(told["expires_in"])
        except urllib.error.HTTPError as error:
            with error:
                reason = _reason(error)
            if error.code in _REFUSED:
                raise AuthenticationError(
                    f"Keycloak at {self._account.token_url} refuses the service account {self._account.name!r} with "
                    f"{error.code}{reason}: check realm, resource and secret in keycloak_file, and the account's "
                    f"permissions at {AUDIENCE}"
                ) from None
            raise self._away(f"HTTP status {error.code}{reason}") from None
        except (OSError, http.client.HTTPException) as error:  # of which URLError is one
            raise self._away(str(getattr(error, "reason", error) or type(error).__name__)) from None
        except (ValueError, KeyError, TypeError):
            raise self._away("its answer holds no token") from None

    def _away(self, reason: str) -> ControllerUnavailableError:
        return ControllerUnavailableError(
            f"Keycloak at {self._account.token_url} gave no token for the controller: {reason}; check auth-server-url "
            "in keycloak_file, and that Keycloak runs"
        )


def _body(request: urllib.request.Request, timeout: float) -> bytes:
    with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310 - http or https, checked
        body: bytes = answer.read(_MAX_ANSWER)
        return body


def _reason(error: urllib.error.HTTPError) -> str:
    """What Keycloak says beside the status."""
    try:
        told = json.loads(error.read(_MAX_ANSWER))
        text = str(told.get("error_description") or told["error"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f" ({' '.join(text.split())[:_QUOTED]})"
