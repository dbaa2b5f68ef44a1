"""Refusal of a mirror whose events would come back to its source: of a stream to itself, or in a circle of mirrors.

An address does not identify a cluster: several names and proxies may lead to it. So the servers are asked. One client
begins a transaction and aborts it. The other client sees both only in the same cluster.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from pravega_connector.client.pravega_client import PravegaClient
from pravega_connector.controller.targets import name_of, target_of
from pravega_connector.core.values import STATE_TAG, TransactionStatus
from pravega_connector.errors import ConfigError, ConnectorError, StreamSealedError
from pravega_connector.exactly_once.steps import StepsState
from pravega_connector.exactly_once.steps.log import synchronizer
from pravega_connector.operations.mirror.copier import positions_of
from pravega_connector.wire import StreamName
from pravega_serde.errors import DeserializationError

# Lease of the transaction that identifies a cluster.
_LEASE_MS: Final = 10_000
_LIFE: Final = re.compile(r"mirror of (\S+) to (\S+)")


class _Link(NamedTuple):
    """A mirror into a stream: its state, its source with its creation, and the positions there."""

    state: StreamName
    source: str
    positions: Mapping[int, int]


def mirror_id(source: str, target: str) -> str:
    """Return the owner of a mirror's log, from its streams with their creations."""
    return f"mirror of {source} to {target}"


def check_not_itself(origin: PravegaClient, source: StreamName, client: PravegaClient, target: StreamName) -> None:
    """Raise ConfigError if source and destination are one stream of one cluster."""
    if source == target and _is_same_cluster(origin, client, target):
        raise ConfigError(
            f"stream {source} cannot be mirrored to itself: source and destination are one stream of one cluster; set "
            "the cluster of the source (--source-controller or --source-profile), or another destination"
        )


def check_no_circle(origin: PravegaClient, source: StreamName, client: PravegaClient, target: StreamName) -> None:
    """Raise ConfigError if the destination exists, and mirrors in the source's cluster lead from it to the source.

    They are known by their states, which are next to their destinations. Their sources may be in other clusters with
    the same names. So the positions of the mirror that reads the destination must exist in it, too.
    """
    if not client.controller.stream_exists(target):
        return
    goal = target_of(client.controller, target)
    seen, pending = set[StreamName](), [source]
    while pending:
        stream = pending.pop()
        if stream in seen or not origin.controller.stream_exists(stream):
            continue
        seen.add(stream)
        for link in _links(origin, stream):
            if link.source == goal and _has(client, target, link.positions):
                raise ConfigError(
                    f"the mirror of {source} to {target} would close a circle: a mirror copies {target} to {stream}, "
                    "so each event would be copied again and again; use another destination, or delete the state of "
                    f"that mirror, {link.state}, if it has ended permanently"
                )
            pending.append(StreamName.parse(name_of(link.source)))


def _is_same_cluster(origin: PravegaClient, client: PravegaClient, stream: StreamName) -> bool:
    if origin is client or origin.config == client.config:
        return True
    if not client.controller.stream_exists(stream):
        return False
    try:
        probe = client.controller.create_transaction(stream, _LEASE_MS).id
    except StreamSealedError:
        return False  # nothing can be written to it
    # Ids are counted, so another cluster may have an open transaction with this id, which stays open.
    is_open = origin.controller.transaction_status(stream, probe) is TransactionStatus.OPEN
    client.controller.abort_transaction(stream, probe)
    return is_open and origin.controller.transaction_status(stream, probe) is not TransactionStatus.OPEN


def _links(client: PravegaClient, stream: StreamName) -> list[_Link]:
    """Return the mirrors into a stream. A state that the user may not read is not known."""
    found = []
    with contextlib.suppress(ConnectorError):
        own = target_of(client.controller, stream)
        for name in client.controller.list_streams(stream.scope, tag=STATE_TAG):
            if not name.stream.startswith(f"{stream.stream}-"):
                continue
            state = _state(client, name)
            match = None if state is None else _LIFE.fullmatch(state.life.id)
            if state is not None and match is not None and match[2] == own:
                found.append(_Link(name, match[1], positions_of(state.positions)))
    return found


def _state(client: PravegaClient, name: StreamName) -> StepsState | None:
    """Return the state in a log of steps, or None for a stream with other contents. Nothing is written."""
    log = synchronizer(client.stores, name)
    try:
        log.fetch_updates()
        return log.state
    except (ConnectorError, DeserializationError):
        return None
    finally:
        log.close()


def _has(client: PravegaClient, stream: StreamName, positions: Mapping[int, int]) -> bool:
    """Return True if the stream has these positions."""
    infos = client.stores.segment_infos(stream, positions)
    return all(infos[i].exists and position <= infos[i].write_offset for i, position in positions.items())
