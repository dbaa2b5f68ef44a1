"""The state of an ingestion on its way to and from its stream."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Final, Self

from connector.client import MAX_EVENT_SIZE, PravegaClient, StateSynchronizer, StreamName
from connector.errors import IngestStateError, OutcomeUnknownError
from connector.ingest._state import IngestState, Json, Update

__all__ = ["Journal", "state_name"]

# Bytes of updates that make one initial value instead of them worth writing, and steps between two looks at that.
_COMPACT_AFTER: Final = 4 << 20
_LOOK_EVERY: Final = 200


def state_name(target: StreamName, name: str | None = None) -> StreamName:
    """The stream that keeps the state: beside the target, by default with ``-ingest`` behind its name."""
    return StreamName(target.scope, name or f"{target.stream}-ingest")


class Journal:
    """The state, and its conditional updates. Creates its stream if there is none."""

    def __init__(self, client: PravegaClient, target: StreamName, name: StreamName) -> None:
        """Raises IngestStateError for the state of another target, AuthenticationError, ConfigError."""
        # Creating takes a right on the whole scope, which whoever has a stream for it need not have.
        if not client.controller.stream_exists(name):
            client.create_stream(name)
        self.name = name
        self._patience = client.health.failover_timeout
        self._looked = 0
        json = Json()
        self._shared: StateSynchronizer[IngestState, dict[str, Any], dict[str, Any]] = client.synchronizer(
            name,
            create=IngestState.from_json,
            apply=lambda state, update: state.apply(update),
            init_serializer=json,
            update_serializer=json,
        )
        try:
            self._shared.initialize(IngestState(str(target)).to_json())
            self._check_target(target)
        except BaseException:
            self.close()
            raise

    def _check_target(self, target: StreamName) -> None:
        if self.state.target != str(target):
            raise IngestStateError(
                f"stream {self.name} keeps the state of {self.state.target}, not of {target}: name another one for it"
            )

    @property
    def state(self) -> IngestState:
        """The state as it was when last looked at."""
        state = self._shared.state
        assert state is not None
        return state

    def fetch(self) -> IngestState:
        """The state as it is now. Raises IngestStateError."""
        self._shared.fetch_updates()
        return self.state

    def record(self, update: Update) -> bool:
        """Make an update if nobody has made one since the state was last looked at; whether it was made.

        Durable on return. When the answer is lost, the same is asked for until the outcome is known: a step is told
        from others by its transaction. Raises OutcomeUnknownError if that takes too long: it may come yet.
        """
        number, deadline = self.state.number, time.monotonic() + self._patience
        while True:
            try:
                written = self._shared.update_state(lambda state: _next(state, number, update))
                return bool(written) or self._is_ours(update)
            except OutcomeUnknownError:
                if time.monotonic() > deadline:
                    raise

    def compact(self) -> None:
        """Write the whole state as one value if there is much to read for whoever begins, and it fits."""
        if self.state.number - self._looked < _LOOK_EVERY:
            return
        self._looked = self.state.number
        if self._shared.bytes_since_compaction() > _COMPACT_AFTER:
            self._shared.compact(_fitting)

    def close(self) -> None:
        """Close the connection that writes."""
        self._shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _is_ours(self, update: Update) -> bool:
        """Whether the state's step is the update's: its transaction is known to nobody else before."""
        step = self.state.step
        return None not in (step, update.step) and step.transaction == update.step.transaction  # type: ignore[union-attr]


def _next(state: IngestState, number: int, update: Update) -> list[dict[str, Any]]:
    """The update, unless somebody has made one: then nothing is to be written."""
    return [update.to_json(number + 1)] if state.number == number else []


def _fitting(state: IngestState) -> dict[str, Any] | None:
    value = state.to_json()
    return value if len(Json().serialize(value)) < MAX_EVENT_SIZE - 64 else None
