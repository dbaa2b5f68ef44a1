"""Runs java/ReaderPeer.java: a Java application that shares a reader group with others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pravega_connector.reader_groups.protocol import Retention, Segment
from pravega_connector.reader_groups.protocol.state import DEFAULT_CHECKPOINT_MS, DEFAULT_REFRESH_MS
from pravega_connector.wire import StreamCut, StreamName
from tests.interop._java_program import JavaProgram

__all__ = ["JavaEvent", "JavaGroup", "JavaReaders", "JavaTaken"]

Bounds = tuple[StreamCut | None, StreamCut | None]


@dataclass(frozen=True, slots=True)
class JavaEvent:
    """An event that a Java reader was given."""

    segment: Segment
    offset: int
    """Where it begins."""
    payload: bytes


@dataclass(frozen=True, slots=True)
class JavaTaken:
    """A checkpoint that a Java reader was given; it has taken it when it reads again."""

    checkpoint: str


@dataclass(frozen=True, slots=True)
class JavaGroup:
    """Java's report about a group."""

    readers: list[str]
    segments: dict[str, int]
    """Number of segments of each reader."""
    unassigned: int
    cuts: dict[StreamName, StreamCut]


class JavaReaders(JavaProgram):
    """The Java client in one group. PeerError, with the name of Java's exception, for what fails. Context manager.

    Several readers may be open in it, but one reads at a time, when it is asked to.
    """

    def __init__(self, controller: str, scope: str, group: str) -> None:
        super().__init__("ReaderPeer", controller)
        self.scope, self.group = scope, group
        self._place = {"controller": controller, "scope": scope, "group": group}

    # ---- the group

    def create(
        self,
        streams: Mapping[StreamName, Bounds] | Sequence[StreamName],
        *,
        checkpoint_ms: int = DEFAULT_CHECKPOINT_MS,
        refresh_ms: int = DEFAULT_REFRESH_MS,
        retention: Retention = Retention.NONE,
    ) -> bool:
        """Make the group, with the cuts where it begins and ends.

        False if there is one with this configuration that was reset; True also for one that was not.
        """
        return bool(self._do("create", **_config(streams, checkpoint_ms, refresh_ms, retention)))

    def reset(
        self,
        streams: Mapping[StreamName, Bounds] | Sequence[StreamName] | None = None,
        *,
        checkpoint_ms: int = DEFAULT_CHECKPOINT_MS,
        refresh_ms: int = DEFAULT_REFRESH_MS,
        retention: Retention = Retention.NONE,
    ) -> None:
        """Restart the group with another configuration, or at its last checkpoint."""
        config = {"streams": None} if streams is None else _config(streams, checkpoint_ms, refresh_ms, retention)
        self._do("reset", **config)

    def reset_to(
        self, checkpoint: bytes, streams: Sequence[StreamName], *, checkpoint_ms: int, refresh_ms: int
    ) -> None:
        """Restart the group at a checkpoint of these bytes (``startFromCheckpoint``)."""
        config = _config(streams, checkpoint_ms, refresh_ms, Retention.NONE)
        self._do("resetTo", bytes=checkpoint.hex(), **config)

    def delete(self) -> None:
        """Delete the group."""
        self._do("delete")

    def look(self) -> JavaGroup:
        """Content of the group."""
        found = self._do("look")
        names = ("readers", "segments", "unassigned")
        return JavaGroup(**{name: found[name] for name in names}, cuts=_cuts(found["cuts"]))

    def unread(self) -> int:
        """Bytes behind the last checkpoint. PeerError where it has left out what was completed before it."""
        return int(self._do("unread"))

    def offline(self, reader: str, position: bytes | None = None) -> None:
        """Take a reader offline (``readerOffline``)."""
        self._do("offline", reader=reader, position=None if position is None else position.hex())

    def begin(self, checkpoint: str | None) -> None:
        """Begin a checkpoint (``initiateCheckpoint``), or a silent one without a name (``generateStreamCuts``)."""
        self._do("begin", checkpoint=checkpoint)

    def cancel(self) -> None:
        """Give up the checkpoints that some reader has not taken (``cancelOutstandingCheckpoints``)."""
        self._do("cancel")

    def completed(self, checkpoint: str | None, seconds: float) -> tuple[dict[StreamName, StreamCut], bytes] | None:
        """Cuts, and bytes of what has a name, of a checkpoint begun here; None if it is not complete in time."""
        found = self._do("await", checkpoint=checkpoint, ms=int(seconds * 1000))
        return None if found is None else (_cuts(found["cuts"]), bytes.fromhex(found.get("bytes", "")))

    # ---- its readers

    def open(self, reader: str) -> None:
        """Come into the group under an id."""
        self._do("open", reader=reader)

    def read(self, reader: str, count: int, seconds: float) -> tuple[list[JavaEvent | JavaTaken], bytes]:
        """Up to ``count`` events, and the position behind them.

        It ends early when there is none for this many seconds, or with a checkpoint, which is its last item.
        """
        found = self._do("read", reader=reader, count=count, ms=int(seconds * 1000))
        return [_item(one) for one in found["read"]], bytes.fromhex(found["position"])

    def leave(self, reader: str, position: bytes | None = None) -> None:
        """Close a reader, at a position that it was given, or where it is."""
        self._do("close", reader=reader, position=None if position is None else position.hex())

    def _do(self, do: str, **request: Any) -> Any:
        return self._answer(do, **request, **self._place)


def _config(
    streams: Mapping[StreamName, Bounds] | Sequence[StreamName], checkpoint_ms: int, refresh_ms: int, kept: Retention
) -> dict[str, Any]:
    bounds = streams if isinstance(streams, Mapping) else dict.fromkeys(streams, (None, None))
    texts = {str(stream): [None if cut is None else cut.to_text() for cut in both] for stream, both in bounds.items()}
    return {"streams": texts, "checkpointMs": checkpoint_ms, "refreshMs": refresh_ms, "retention": kept.value}


def _cuts(texts: Mapping[str, str]) -> dict[StreamName, StreamCut]:
    return {StreamName.parse(stream): StreamCut.from_text(text) for stream, text in texts.items()}


def _item(one: Mapping[str, Any]) -> JavaEvent | JavaTaken:
    if "checkpoint" in one:
        return JavaTaken(one["checkpoint"])
    return JavaEvent(Segment.parse(one["segment"]), one["offset"], bytes.fromhex(one["payload"]))
