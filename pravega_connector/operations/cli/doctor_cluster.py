"""Checks of ``pravega-serde doctor`` that reach servers: controllers, all segment stores, the registry, clocks.

The checks only read. Each one has a deadline.
"""

from __future__ import annotations

import base64
import email.utils
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final
from urllib.parse import urlsplit

from pravega_connector.config import PravegaConfig
from pravega_connector.controller.service import ControllerClient
from pravega_connector.core import addresses
from pravega_connector.core.arguments import stream_name
from pravega_connector.core.connection import Connection, Endpoint, Tls, open_socket
from pravega_connector.core.deadline import Deadline
from pravega_connector.errors import (
    AuthenticationError,
    ConnectorError,
    DeadlineExceededError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.operations.cli.doctor_machine import Finding, failure
from pravega_connector.operations.cli.exit_codes import ExitCode
from pravega_connector.wire import StreamName
from pravega_serde.errors import MissingExtraError, PravegaError, RegistryNotFoundError
from pravega_serde.registry import RegistryConfig, SchemaRegistryClient
from pravega_serde.registry.clients import http_module
from pravega_serde.registry.confluent_calls import schema_version

#: Streams whose segments are looked up, if the user names none.
_STREAMS: Final = 10
# A segment's number decides its store, also if the segment does not exist. 128 numbers reach each of 12 stores with a
# probability of 99.9 %.
_NUMBERS: Final = 128
#: Connections to segment stores at a time.
_PARALLEL: Final = 16
#: Seconds between two clocks from which there is a warning. Tokens of Pravega's servers expire by their clocks.
CLOCK_TOLERANCE: Final = 5.0
_FEW_DAYS: Final = 14
_DAY: Final = 86_400
_CREDENTIALS: Final = "check the user, the password or the token, and the permissions of the user"


class Cluster:
    """Checks of one cluster. ``stores`` are the endpoints that the controller has returned."""

    def __init__(self, config: PravegaConfig, streams: Iterable[str], timeout: float) -> None:
        self.config = config
        self.stores: dict[Endpoint, str] = {}
        self._streams = [stream_name(text, config.scope) for text in streams]
        self._timeout = timeout

    def check(self) -> Iterator[Finding]:
        """Check the controllers, then the segment stores and the clock."""
        answered = False
        for endpoint in self.config.endpoints:
            found = self._check_controller(endpoint)
            answered |= found.status != "failed"
            yield found
        if not answered:
            yield _skipped("segment store", "no controller answered", "fix the controller's finding first")
            return
        with ControllerClient(self.config, timeout=self._timeout, failover_timeout=self._timeout) as controller:
            yield from self._look_up(controller)
            with ThreadPoolExecutor(_PARALLEL) as threads:
                yield from threads.map(self._check_store, self.stores)
            yield from self._check_clock(controller)

    # ---- controllers ----

    def _check_controller(self, endpoint: Endpoint) -> Finding:
        where, seconds = _text(endpoint), self._timeout
        uses_tls = self.config.uses_tls_to_controller
        scheme = self.config.controller.partition("://")[0]
        began = time.monotonic()
        try:
            addresses.connect(endpoint, seconds).close()
            with ControllerClient(
                self.config.with_controller(f"{scheme}://{where}"), timeout=seconds, failover_timeout=seconds
            ) as client:
                if scope := self._streams[0].scope if self._streams else self.config.scope:
                    client.scope_exists(scope)
                else:
                    client.list_scopes()
        except (OSError, UnicodeError) as error:
            return Finding(
                check="controller",
                status="failed",
                subject=where,
                detail=f"no connection: {error}",
                remedy=f"{_reason(error)}: check host and port of the controller URI, that it runs, and firewalls",
                code=ExitCode.UNAVAILABLE,
            )
        except PravegaError as error:
            remedy = "check that this is the port of a Pravega controller (9090 by default), and its log"
            if isinstance(error, AuthenticationError):
                remedy = f"{_CREDENTIALS}; for a certificate, tls_ca_file and tls_server_name"
            elif hint := _scheme_hint(endpoint, uses_tls, seconds):
                remedy = f"{hint}: use {'tcp' if uses_tls else 'tls'}://{where}"
            return failure("controller", error, remedy, subject=where)
        return self._answer("controller", endpoint, time.monotonic() - began, uses_tls)

    # ---- segment stores ----

    def _look_up(self, controller: ControllerClient) -> Iterator[Finding]:
        """Find the endpoints of all segment stores, from the segments of existing streams."""
        deadline = Deadline(self._timeout)
        looked_up, failed = False, False
        try:
            for stream in self._streams or islice(self._existing(controller), _STREAMS):
                try:
                    self._look_up_stream(controller, stream, deadline, extra=0 if looked_up else _NUMBERS)
                    looked_up = True
                except (AuthenticationError, ScopeNotFoundError, StreamNotFoundError) as error:
                    if self._streams:  # a listed stream may have been deleted since, or its segments may be hidden
                        failed = True
                        yield failure("segment store", error, _remedy(error), subject=f"of {stream}")
        except DeadlineExceededError:
            looked_up = True
            yield Finding(
                check="segment store",
                status="warning",
                detail=f"the controller returned {len(self.stores)} endpoints within {self._timeout:g} s, not all",
                remedy="pass a longer --timeout, or one --stream",
            )
        except PravegaError as error:
            failed = True
            yield failure("segment store", error, _remedy(error))
        if not looked_up and not failed:
            yield _skipped("segment store", "no stream is visible whose segments name the stores", "pass --stream")

    def _existing(self, controller: ControllerClient) -> Iterator[StreamName]:
        """Yield existing streams: those of the configured scope, else of all scopes, Pravega's own ones last."""
        scopes = controller.list_scopes() if self.config.scope is None else [self.config.scope]
        for scope in sorted(scopes, key=lambda name: name.startswith("_")):
            try:
                yield from controller.iterate_streams(scope, internal=scope.startswith("_"))
            except (AuthenticationError, ScopeNotFoundError):
                if self.config.scope is not None:
                    raise

    def _look_up_stream(
        self, controller: ControllerClient, stream: StreamName, deadline: Deadline, *, extra: int
    ) -> None:
        """Look up the current segments of a stream, and ``extra`` numbers of segments that need not exist."""
        current = [segment.id for segment in controller.current_segments(stream, deadline=deadline)]
        for segment in (*current, *range(extra)):
            endpoint = controller.endpoint(stream, segment, deadline=deadline)
            self.stores.setdefault(endpoint, f"{stream}/{segment}")

    def _check_store(self, endpoint: Endpoint) -> Finding:
        where, uses_tls = _text(endpoint), self.config.uses_tls_to_stores
        began = time.monotonic()
        try:
            Connection(endpoint, Tls.of(self.config), Deadline(self._timeout)).close()
        except ConnectorError as error:
            remedy = (
                f"the store of segment {self.stores[endpoint]} announces {where}, and this machine cannot use it: set "
                "pravegaservice.service.published.host.nameOrIp and .port of the store to an address that clients "
                "reach (in Kubernetes its external access), make the name resolve here, or open the port"
            )
            if isinstance(error, AuthenticationError):
                remedy = "set tls_ca_file, and tls_server_name if the certificate has another host"
            elif hint := _scheme_hint(endpoint, uses_tls, self._timeout):
                remedy = f"{hint}: set tls_to_stores to {str(not uses_tls).lower()}"
            return failure("segment store", error, remedy, subject=where)
        return self._answer("segment store", endpoint, time.monotonic() - began, uses_tls)

    def _answer(self, check: str, endpoint: Endpoint, seconds: float, uses_tls: bool) -> Finding:
        """Return the finding for a server that has answered, with its certificate."""
        detail = f"answers in {seconds * 1000:.0f} ms, {'TLS' if uses_tls else 'without TLS'}"
        values: dict[str, object] = {"seconds": round(seconds, 4), "tls": uses_tls}
        if not uses_tls:
            return Finding(check=check, status="ok", subject=_text(endpoint), detail=detail, values=values)
        days = self._days_of_certificate(endpoint)
        values["certificate_days"] = days
        if days is not None:
            detail += f", certificate valid for {days} days"
        few = days is not None and days < _FEW_DAYS
        return Finding(
            check=check,
            status="warning" if few else "ok",
            subject=_text(endpoint),
            detail=detail,
            remedy="renew the server's certificate" if few else "",
            values=values,
        )

    def _days_of_certificate(self, endpoint: Endpoint) -> int | None:
        context = ssl.create_default_context(cadata=self.config.authorities())
        context.check_hostname = False  # the connection before this one has checked it
        try:
            sock = open_socket(endpoint, Tls(context, self.config.tls_server_name), self._timeout)
        except PravegaError:
            return None
        with sock:
            certificate = sock.getpeercert() if isinstance(sock, ssl.SSLSocket) else None
        end = str((certificate or {}).get("notAfter", ""))
        return int((ssl.cert_time_to_seconds(end) - time.time()) // _DAY) if end else None

    # ---- clock ----

    def _check_clock(self, controller: ControllerClient) -> Iterator[Finding]:
        """Compare the clock with the time in a token of the controller, if there are credentials."""
        segment = next(iter(self.stores.values()), None)
        if segment is None:
            return
        began = time.time()
        try:
            token = controller.delegation_token(StreamName.parse(segment.rpartition("/")[0]), write=False)
        except PravegaError:
            return  # the lookup of the segment, which requires the same permission, has reported it
        if (issued := _issued_at(token)) is not None:
            yield clock_finding("controller", issued - began, time.time() - began + 1)


def clock_finding(subject: str, ahead: float, uncertainty: float) -> Finding:
    """Return the finding for a clock that is ``ahead`` seconds of this machine's, give or take ``uncertainty``."""
    wrong = abs(ahead) > CLOCK_TOLERANCE + uncertainty
    return Finding(
        check="clock",
        status="warning" if wrong else "ok",
        subject=subject,
        detail=f"its clock is {abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} this machine's"
        if wrong
        else f"its clock agrees with this machine's within {CLOCK_TOLERANCE + uncertainty:.0f} s",
        remedy="synchronize the clocks of both machines, for example with chrony" if wrong else "",
        values={"seconds_ahead": round(ahead, 1)},
    )


def check_registry(config: RegistryConfig, timeout: float) -> Iterator[Finding]:
    """Send one request to the registry, and compare its clock."""
    began = time.monotonic()
    try:
        if config.kind == "pravega":
            with SchemaRegistryClient(config) as client:
                next(client.groups(), None)
        else:
            calls = http_module().Http(config)
            try:
                calls.run(schema_version("pravega-serde-doctor", "latest"))
            except RegistryNotFoundError:
                pass  # the registry has answered
            finally:
                calls.close()
    except ImportError as error:
        missing = MissingExtraError("httpx2", "registry", purpose="a client of the schema registry")
        yield failure("registry", missing, f"install the extra 'registry': {error}", subject=config.uri)
    except PravegaError as error:
        yield failure(
            "registry",
            error,
            "check the registry's URI and credentials, and that it runs; for https also registry_ca_file",
            subject=config.uri,
        )
    else:
        milliseconds = (time.monotonic() - began) * 1000
        yield Finding(check="registry", status="ok", subject=config.uri, detail=f"answers in {milliseconds:.0f} ms")
        yield from _registry_clock(config, timeout)


def _registry_clock(config: RegistryConfig, timeout: float) -> Iterator[Finding]:
    """Compare the clock with the date of an HTTP answer. The request has no credentials: any answer has a date."""
    parts = urlsplit(config.address)
    if parts.scheme != "http" or parts.hostname is None:
        return
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    began = time.time()
    try:
        connection.request("HEAD", "/")
        date = email.utils.parsedate_to_datetime(connection.getresponse().headers["Date"] or "")
    except (OSError, http.client.HTTPException, ValueError):
        return
    finally:
        connection.close()
    yield clock_finding("registry", date.timestamp() - began, time.time() - began + 1)


def _issued_at(token: str) -> float | None:
    """Return the Unix time in seconds at which a token (a JWT) was issued, or None."""
    try:
        payload = token.split(".")[1]
        return float(json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["iat"])
    except (IndexError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _scheme_hint(endpoint: Endpoint, uses_tls: bool, timeout: float) -> str | None:
    """Return the reason if the server uses TLS and this client does not, or the reverse."""
    anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE  # nothing is sent over the connection
    try:
        open_socket(endpoint, Tls(anyone, None), timeout).close()
    except PravegaError:
        reachable = _is_reachable(endpoint, timeout)
        return "the server does not use TLS" if uses_tls and reachable else None
    return None if uses_tls else "the server requires TLS"


def _is_reachable(endpoint: Endpoint, timeout: float) -> bool:
    try:
        addresses.connect(endpoint, timeout).close()
    except (OSError, UnicodeError):
        return False
    return True


def _reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "the name does not resolve on this machine"
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens at this port"
    return "the host does not answer"


def _remedy(error: PravegaError) -> str:
    if isinstance(error, AuthenticationError):
        return _CREDENTIALS
    if isinstance(error, ScopeNotFoundError | StreamNotFoundError):
        return "check the name; 'pravega-serde stream list' prints the names"
    return "check the controller's log"


def _skipped(check: str, detail: str, remedy: str) -> Finding:
    return Finding(check=check, status="skipped", detail=detail, remedy=remedy)


def _text(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
