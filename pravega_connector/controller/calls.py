"""How a call to the controller is made: its answer, or the error that it means.

One call is retried in one place, :meth:`ControllerChannel.call`. Here is what an answer means: a status that is a
refusal, a stream that another client is creating, a stream, scope or part of a stream that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from google.protobuf.message import Message

from pravega_connector.config import PravegaConfig
from pravega_connector.controller import methods
from pravega_connector.controller.rpc import ControllerChannel, Rpc, Target, not_found
from pravega_connector.core.deadline import Deadline, Polls
from pravega_connector.core.retry import ClusterHealth
from pravega_connector.errors import (
    ConnectorError,
    ControllerError,
    ControllerFailureError,
    ScopeNotFoundError,
    StreamNotFoundError,
)
from pravega_connector.wire import StreamName, TableName

#: Calls that succeed for every stream except one that is being created.
_OF_EVERY_STREAM: Final = frozenset(
    {methods.CURRENT_SEGMENTS.name, methods.SEGMENTS_AT.name, methods.STREAM_CONFIG.name}
)
#: Seconds to wait for another client's creation of a stream.
_CREATION_SECONDS: Final = 15.0
_PROBE: Final = replace(methods.CURRENT_SEGMENTS, repeatable=False)

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)


class ControllerCalls:
    """Calls to the controllers of a cluster. Thread safe; can be pickled."""

    def __init__(self, config: PravegaConfig, health: ClusterHealth) -> None:
        self._config = config
        self.health = health
        self._channel = ControllerChannel(config, health)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. Running calls in other threads raise ConfigError, a commit OutcomeUnknownError."""
        self._channel.close()

    def _call(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        target: Target,
        deadline: Deadline | None = None,
        failure: Callable[[R], ConnectorError | None] = lambda answer: None,
    ) -> R:
        """Return the answer to a call that this client repeats in a failover. All retries are in the channel.

        ``failure`` is that of :meth:`ControllerChannel.call`. Raises its errors, and the one of :meth:`_missing`.
        """
        deadline = deadline or self.health.deadline()
        polls = Polls(Deadline(min(_CREATION_SECONDS, deadline.left)))
        while True:
            try:
                return self._channel.call(
                    rpc, request, target, deadline, is_well=lambda: self._is_well(target, deadline), failure=failure
                )
            except StreamNotFoundError:
                assert isinstance(target, StreamName)
                error = self._missing(rpc.name, target, deadline)
            # A stream exists when its creation begins, and has its segments and configuration when it ends.
            there = not isinstance(error, StreamNotFoundError | ScopeNotFoundError)
            if not there or rpc.name not in _OF_EVERY_STREAM or not polls.again():
                raise error

    def _is_well(self, target: Target, deadline: Deadline) -> bool:
        """Return True if the controller can read its metadata of a stream now."""
        if not isinstance(target, StreamName):
            return True
        request = methods.stream_without_token(target)
        try:
            self._channel.call(_PROBE, request, target, deadline.share())
        except ControllerError as error:
            return not error.retriable
        return True

    def _settled(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        action: str,
        target: StreamName | TableName | str,
        refusal: Callable[[], None] | None = None,
    ) -> R:
        """Return the first answer that is not an internal failure of the controller, whose status is FAILURE.

        ``refusal`` raises if the failure is a refusal. Raises ControllerFailureError if it lasts longer than a
        failover.
        """

        def failure(response: R) -> ControllerFailureError | None:
            if not methods.failed(response):
                return None
            if refusal is not None:
                refusal()
            return ControllerFailureError(f"cannot {action} {target}: the controller failed")

        return self._call(rpc, request, target, failure=failure)

    def _done(self, rpc: Rpc[Q, R], request: Q, action: str, target: StreamName | TableName | str) -> R:
        """Repeat a call until the controller has executed or refused it, and return the answer.

        Raises the error for a refusal.
        """
        response: Any = self._settled(rpc, request, action, target)
        methods.outcome(response.Status, response.status, action, target)
        return response  # type: ignore[no-any-return]

    def _change(
        self,
        rpc: Rpc[Q, R],
        request: Q,
        action: str,
        target: StreamName | TableName | str,
        refusal: Callable[[], None] | None = None,
    ) -> bool:
        """Request a change until the controller has made or refused it. Return True if it changed something."""
        response: Any = self._settled(rpc, request, action, target, refusal)
        try:
            return methods.outcome(response.Status, response.status, action, target)
        except StreamNotFoundError:
            if rpc is methods.DELETE_STREAM or not isinstance(target, StreamName):
                raise
            raise self._missing(rpc.name, target, self.health.deadline()) from None

    def _missing(self, action: str, stream: StreamName, deadline: Deadline) -> ControllerError:
        """Return the error for NOT_FOUND about a stream.

        Its scope may be missing, or only a part of the stream.
        """
        try:
            if self._channel.call(methods.STREAM_EXISTS, methods.stream_message(stream), stream, deadline).exists:
                if action in _OF_EVERY_STREAM:
                    return ControllerError(
                        f"stream {stream} is being created, or its creation was interrupted ({action}): try again, or "
                        "create it again"
                    )
                return ControllerError(f"{stream} has no such segment or epoch ({action})")
            scope = stream.scope
            found = self._channel.call(methods.SCOPE_EXISTS, methods.scope_message(scope), scope, deadline)
            return not_found(stream if found.exists else scope)
        except ControllerError:  # report only the first error: the controller has just become unreachable
            return not_found(stream)
