"""Calls to the controller: one lazy gRPC channel per process and endpoint, deadlines, retries, errors.

A deadline covers a call with all its attempts, and each attempt gets a share of the time. So an unresponsive controller
leaves time to call another one, or the same one on a new connection. Only the gRPC code decides if a call is retried.
The texts with the codes are free prose, often a Java stack trace, and are only quoted.

A forked child must not call gRPC if its parent has: see ``grpc_module``.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

from google.protobuf.message import Message

from pravega_connector.config import PravegaConfig
from pravega_connector.controller.grpc_module import FORK_SUPPORT
from pravega_connector.controller.grpc_module import grpc as grpc  # noqa: PLC0414 - exported name
from pravega_connector.core import io
from pravega_connector.core.deadline import QUIET, Deadline
from pravega_connector.core.retry import Attempts, ClusterHealth
from pravega_connector.errors import (
    AuthenticationError,
    ConfigError,
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    ControllerUnavailableError,
    ScopeNotFoundError,
    StreamNotFoundError,
    TableNotFoundError,
)
from pravega_connector.wire import StreamName, TableName
from pravega_serde.errors import CredentialError, CredentialUnavailableError, ForkedError, SerdeError
from pravega_serde.kept_credentials import kept_credential

if TYPE_CHECKING:
    from pravega_serde.kept_credentials import KeptCredential

SERVICE: Final = "io.pravega.controller.stream.api.grpc.v1.ControllerService"
CONFLICT_ATTEMPTS: Final = 3  # attempts after which the codes below may be a verdict, by their text
# Seconds of retries if they cannot be a verdict: twice a failover, during which the controller's own metadata is
# unavailable (25 to 30 s). A longer failure has another cause, which waiting would hide.
PASSING_SECONDS: Final = 60.0
QUOTED: Final = 160  # characters of a server's text that an error quotes
MAX_ANSWER: Final = 64 * 1024 * 1024  # bytes; about 700,000 segments in one list

GIVE_CREDENTIALS: Final = (
    "pass them with PravegaConfig.with_credentials, or set pravega_client_auth_method and pravega_client_auth_token"
)

# The controller maps a lost compare-and-set to FAILED_PRECONDITION, and a failure of its store to INTERNAL or
# UNKNOWN (ControllerServiceImpl.getStatusFromException). The Java client retries all of these.
_MOMENTARY: Final = frozenset(
    {
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.UNKNOWN,
    }
)
_OPTIONS: Final[tuple[tuple[str, int | str], ...]] = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.min_reconnect_backoff_ms", 3000),  # also the timeout of one connection attempt, 20 s by default
    # As few pings as Java's client sends; servers refuse them under 5 min. They are needed for the second option, which
    # is the TCP user timeout as well: it detects a failed host that owes acknowledgements.
    ("grpc.keepalive_time_ms", 360_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.client_idle_timeout_ms", 120_000),  # before routers and load balancers silently drop the connection
    ("grpc.max_receive_message_length", MAX_ANSWER),
    ("grpc.use_local_subchannel_pool", 1),  # otherwise one client's backoff would delay another's first call
    ("grpc.enable_http_proxy", 0),  # connections to segment stores are direct as well, and Java ignores http_proxy too
)

# BoringSSL's reason, between the error's name and gRPC's suffix.
_UNTRUSTED: Final = re.compile(r"CERTIFICATE_VERIFY_FAILED:? ?([^:]*)")

_logger: Final = logging.getLogger(__name__)
Target = StreamName | TableName | str | None  # stream, table or scope of a call
Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


@dataclass(frozen=True, slots=True)
class Rpc(Generic[Q, R]):
    """Method of the controller."""

    name: str
    """Name in the service."""
    request: type[Q]
    """Type of the request."""
    response: type[R]
    """Type of the answer."""
    repeatable: bool = True
    """True if the call is idempotent, so that it may be retried after a lost answer."""
    works: bool = False
    """True if the answer waits for work at the server, without a limit."""
    verdict: Callable[[Failure], ConnectorError | None] | None = None
    """Return the error that a repeated transient code means in this call; None if it is a transient failure."""

    def quiet(self, *, again: bool, others: bool) -> float:
        """Return the seconds that a controller may take to answer, at first or ``again``.

        With ``others``, the client leaves a controller that does not answer a query sooner. Work may take long: to
        create a stream, the controller calls the stores of its segments one by one. It gets its time only on a retry: a
        healthy controller is done in a moment, and a frozen one must not use that time first. A call that cannot be
        retried has all its time at once.
        """
        if self.works and not self.repeatable:
            return 15.0
        if self.works and again:
            return 7.0
        return QUIET / 2 if others else QUIET


@dataclass(frozen=True, slots=True)
class Failure:
    """Code that occurred repeatedly, for :attr:`Rpc.verdict`."""

    code: grpc.StatusCode
    """gRPC code."""
    said: str
    """Text with the code."""
    target: Target
    """Target of the call."""
    is_well: Callable[[], bool]
    """Return True if the controller answers another query about the target now."""


_SAID: Final[dict[grpc.StatusCode, tuple[type[ControllerError], str]]] = {
    grpc.StatusCode.UNAVAILABLE: (ControllerUnavailableError, "could not be reached for {seconds:g} s"),
    grpc.StatusCode.UNIMPLEMENTED: (ControllerError, "is not a Pravega controller, or is too old for this call"),
    grpc.StatusCode.DEADLINE_EXCEEDED: (ControllerUnavailableError, "did not answer within {seconds:g} s"),
    grpc.StatusCode.UNAUTHENTICATED: (AuthenticationError, "refuses the credentials"),
    grpc.StatusCode.PERMISSION_DENIED: (AuthenticationError, "does not permit this call with these credentials"),
}
_ADVICE: Final = {
    grpc.StatusCode.UNAVAILABLE: (
        "check host and port, that it runs, and tcp:// or tls:// (with tls://, also the CA and the certificate's name)"
    ),
    grpc.StatusCode.UNIMPLEMENTED: "check host and port",
    grpc.StatusCode.DEADLINE_EXCEEDED: "check host and port and its load, or set a longer timeout",
    grpc.StatusCode.UNAUTHENTICATED: "check user and password, or the token",
    grpc.StatusCode.PERMISSION_DENIED: "use a user with the permission, or add the permission",
}


@dataclass(slots=True)
class _Connection:
    """Channel that is closed with the last call that uses it."""

    channel: Any
    stubs: dict[str, Callable[..., Any]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _calls: int = 0
    _retired: bool = False

    def enter(self) -> bool:
        """Begin a call. Returns False if the channel is closed or closing."""
        with self._lock:
            self._calls += not self._retired
            return not self._retired

    def leave(self) -> None:
        """End a call."""
        with self._lock:
            self._calls -= 1
            last = self._retired and not self._calls
        if last:
            self.channel.close()

    def retire(self) -> None:
        """Accept no more calls, and close the channel after the last one."""
        with self._lock:
            last = not self._retired and not self._calls
            self._retired = True
        if last:
            self.channel.close()

    def stub(self, rpc: Rpc[Q, R]) -> Callable[..., R]:
        stub = self.stubs.get(rpc.name)
        if stub is None:
            stub = self.stubs[rpc.name] = self.channel.unary_unary(
                f"/{SERVICE}/{rpc.name}",
                request_serializer=rpc.request.SerializeToString,
                response_deserializer=rpc.response.FromString,
            )
        return stub


class ControllerChannel:
    """Connections to the controllers of a cluster. Thread safe; shares nothing with a forked child."""

    _first_process: ClassVar[int | None] = None  # process that used gRPC first, for all clients

    def __init__(self, config: PravegaConfig, health: ClusterHealth) -> None:
        self._config, self._health = config, health
        self._endpoints = config.endpoints
        self._authorization = config.authorization
        self._credential = _kept_credential(config)
        # By process and endpoint: a channel does not survive a fork, and closing the parent's in the child can block.
        # dict.setdefault is atomic, so that there is no lock that a child could inherit locked.
        self._connections: dict[tuple[int, int], _Connection] = {}
        self._turn = 0
        self._closed = False

    @property
    def host(self) -> str:
        """Host of the endpoint in use."""
        return self._endpoints[self._turn % len(self._endpoints)][0]

    def check_open(self) -> None:
        """Raise ConfigError if the channel is closed."""
        if self._closed:
            raise _closed_error()

    def close(self) -> None:
        """Close this process's connections, and end the calls on them."""
        self._closed = True
        for key in [key for key in self._connections if key[0] == os.getpid()]:
            self._connections.pop(key).channel.close()

    def call(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        target: Target,
        deadline: Deadline,
        *,
        is_well: Callable[[], bool] = lambda: True,
        failure: Callable[[R], ConnectorError | None] = lambda answer: None,
    ) -> R:
        """Return the answer. ``deadline`` includes all attempts.

        ``target`` is the stream, table or scope of the call; ``is_well`` is for :class:`Failure`. ``failure`` returns
        the error of an answer that says that the controller failed, which counts as a momentary code. Raises
        ControllerUnavailableError, AuthenticationError, StreamNotFoundError, TableNotFoundError or ScopeNotFoundError
        (by the kind of target), ControllerFailureError, ControllerError. Raises ConfigError at the first handshake with
        a controller that does not use TLS, and for a closed client. Loops that retry failures of the controller must
        not retry the last one.
        """
        passing: Deadline | None = None  # begins with the first such answer; earlier, no server may have answered
        count = 0
        unreachable = renewed = False
        authorization = self._authorization
        with self._health.attempts(_logger, f"the controller at {self._config.controller}", deadline) as attempts:
            while True:
                turn = self._turn
                try:
                    authorization = self._authorize(attempts)
                    answer = self._ask(turn, rpc, request, attempts, authorization)
                except grpc.RpcError as failed:
                    code, details = self._meaning(failed.code(), unreachable and deadline.passed), failed.details()
                except ControllerUnavailableError as away:  # the credential provider returned none
                    attempts.again(away, away)
                    continue
                else:
                    inside = failure(answer)
                    if inside is None:
                        attempts.done()
                        return answer
                    passing = passing or Deadline(PASSING_SECONDS)
                    if passing.passed:
                        raise inside
                    attempts.again(inside)
                    continue
                count += 1
                if code is grpc.StatusCode.UNAUTHENTICATED and self._credential is not None and not renewed:
                    self._credential.forget(authorization)  # it may have been revoked
                    renewed = True
                    continue
                unreachable = code is grpc.StatusCode.UNAVAILABLE
                if unreachable or code is grpc.StatusCode.DEADLINE_EXCEEDED:
                    self._move_on(turn)
                elif code in _MOMENTARY and rpc.verdict is not None and count >= CONFLICT_ATTEMPTS:
                    verdict = rpc.verdict(Failure(code, details or "", target, is_well))
                    if verdict is not None:
                        raise verdict
                error = self._error(rpc, code, details, target, deadline.seconds - deadline.left)
                if code in _MOMENTARY:
                    passing = passing or Deadline(PASSING_SECONDS)
                if not rpc.repeatable or not error.retriable or (passing is not None and passing.passed):
                    raise error
                attempts.again(error, error)  # its text has the duration of the attempts

    def _meaning(self, code: grpc.StatusCode, last_of_outage: bool) -> grpc.StatusCode:
        if last_of_outage and code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return grpc.StatusCode.UNAVAILABLE  # the last attempt had too little time to notice
        if code is grpc.StatusCode.CANCELLED and not self._closed:
            return grpc.StatusCode.UNAVAILABLE  # a controller that shuts down resets its running calls
        return code

    def _authorize(self, attempts: Attempts) -> str | None:
        """Return the value of the header, and renew a credential that ends. Raises as :func:`_renewed`."""
        if self._credential is None:
            return self._authorization
        return _renewed(self._credential, attempts.share().left)

    def _ask(self, turn: int, rpc: Rpc[Q, R], request: Q, attempts: Attempts, authorization: str | None) -> R:
        """Make one attempt at the endpoint of ``turn``."""
        quiet = rpc.quiet(again=attempts.in_trouble, others=len(self._endpoints) > 1)
        metadata = (("authorization", authorization),) if authorization else ()
        connection = self._connection(turn)
        while not connection.enter():  # another thread has just switched the endpoint
            connection = self._connection(turn)
        try:
            answer = connection.stub(rpc)(request, timeout=attempts.share(quiet).left, metadata=metadata)
        except ValueError:  # gRPC raises it for a channel that another thread has closed
            if not self._closed:
                raise
            raise _closed_error() from None
        finally:
            connection.leave()
        self._health.answered()
        return answer

    def _move_on(self, turn: int) -> None:
        """Switch to the next endpoint with a new connection, unless another thread has done so.

        One address may have several controllers, so a new connection helps with a single endpoint too. Other threads'
        calls on the old connection end on their own.
        """
        if self._turn == turn:
            dropped = self._connections.pop((os.getpid(), turn % len(self._endpoints)), None)
            self._turn = turn + 1
            if dropped is not None:
                dropped.retire()

    def _connection(self, turn: int) -> _Connection:
        self.check_open()
        key = os.getpid(), turn % len(self._endpoints)
        connection = self._connections.get(key)
        if connection is None:
            self._check_process(key[0])
            opened = _Connection(self._open(*self._endpoints[key[1]]))
            connection = self._connections.setdefault(key, opened)
            if connection is not opened:
                opened.retire()
        return connection

    @staticmethod
    def _check_process(process: int) -> None:
        first = ControllerChannel._first_process
        if first is None:
            ControllerChannel._first_process = process
        elif first != process and not FORK_SUPPORT:
            raise ForkedError(
                "gRPC cannot be used in a process forked from one that has used it: start processes with 'spawn' or "
                "'forkserver', or make the first call after the fork"
            )

    def _open(self, host: str, port: int) -> Any:
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        config, channels = self._config, io.grpc_channels(grpc)
        if not config.uses_tls_to_controller:
            return channels.insecure_channel(target, options=_OPTIONS)
        override = (("grpc.ssl_target_name_override", config.tls_server_name),) if config.tls_server_name else ()
        authorities = config.authorities()
        credentials = grpc.ssl_channel_credentials(None if authorities is None else authorities.encode())
        return channels.secure_channel(target, credentials, options=_OPTIONS + override)

    def _error(
        self, rpc: Rpc[Q, R], code: grpc.StatusCode, details: str | None, target: Target, tried: float
    ) -> ConnectorError:
        call = f"{rpc.name} {target}" if target else rpc.name
        where = f"the controller at {self._config.controller}"
        if code is grpc.StatusCode.NOT_FOUND and target is not None:
            return not_found(target)
        if code is grpc.StatusCode.CANCELLED and self._closed:
            return _closed_error()
        if code is grpc.StatusCode.UNAUTHENTICATED and self._authorization is None and self._credential is None:
            return AuthenticationError(f"{where} requires credentials ({call}): {GIVE_CREDENTIALS}")
        if code is grpc.StatusCode.UNAVAILABLE and self._config.uses_tls_to_controller:
            refusal = _tls_error(f"{where} ({call})", details or "")
            if refusal is not None:
                return refusal
        if code in _SAID:
            error, text = _SAID[code]
            return error(f"{where} {text.format(seconds=round(tried, 1))} ({call}): {_ADVICE[code]}")
        error = ControllerFailureError if code in _MOMENTARY else ControllerError
        return error(f"{where} failed in {call} with {code.name}{_quote(details)}")


def _kept_credential(config: PravegaConfig) -> KeptCredential | None:
    """Return the credential that a provider renews, or None for a fixed one. Raises ConfigError."""
    if config.credential_provider is None and config.keycloak_file is None:
        return None
    try:
        return kept_credential(config.credential_provider, config.keycloak_file)
    except SerdeError as error:
        raise ConfigError(error.message) from None


def _renewed(credential: KeptCredential, timeout: float) -> str:
    """Return the value of the header. Raises AuthenticationError, or ControllerUnavailableError if a retry may help."""
    try:
        return credential.authorization(timeout)
    except CredentialUnavailableError as error:
        raise ControllerUnavailableError(error.message) from None
    except CredentialError as error:
        raise AuthenticationError(error.message) from None


def _tls_error(where: str, details: str) -> ConnectorError | None:
    """Return the error for a failed handshake, by gRPC's text; None for another failure."""
    if "Hostname Verification Check failed" in details:
        return AuthenticationError(
            f"the certificate of {where} is for another host: check the address, or set tls_server_name to the "
            "certificate's host"
        )
    if found := _UNTRUSTED.search(details):
        return AuthenticationError(f"the certificate of {where} is refused: {found[1].strip()}; check tls_ca_file")
    if "WRONG_VERSION_NUMBER" in details:
        return ConfigError(f"{where} does not use TLS: check host and port, or write tcp://")
    return None


def _closed_error() -> ConfigError:
    return ConfigError("this client is closed: create a new one")


def not_found(target: StreamName | TableName | str) -> ControllerError:
    """Return the error for a stream, a table or a scope that does not exist."""
    if isinstance(target, StreamName):
        return StreamNotFoundError.of(target)
    return TableNotFoundError.of(target) if isinstance(target, TableName) else ScopeNotFoundError.of(target)


def _quote(details: str | None) -> str:
    line = next(iter((details or "").strip().splitlines()), "")
    return f": {line[:QUOTED]}" if line else ""
