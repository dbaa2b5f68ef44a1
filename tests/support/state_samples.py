"""Samples of the project's stored state (``vectors/state``), dumped from a server and restored to one.

Only exported names are used here, so that the samples outlive internal moves.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pravega_connector.client import PravegaClient, Revision, ScalingPolicy, StreamName

__all__ = ["GENERATIONS", "STATE", "Log", "Script", "dump", "good_number", "lines_of", "scope_of", "write_lines"]

STATE = Path(__file__).parents[1] / "vectors" / "state"
#: Folders of samples, each with the same state in another version, the oldest first.
GENERATIONS = sorted(path for path in STATE.iterdir() if path.is_dir()) if STATE.is_dir() else []

_TRANSACTION = re.compile(rb"00000000-0000-0000-0000-[0-9a-f]{12}")


def scope_of(samples: Path) -> str:
    """Return the scope of a folder of samples."""
    return f"state-{samples.name}"


def lines_of(path: Path) -> list[Any]:
    """Return the values in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write values as JSON lines, which :func:`lines_of` reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values))


@dataclass(frozen=True)
class Log:
    """Complete stream of one segment: a ledger, or the state of an ingestion.

    ``entries`` are (offset, bytes), beginning at the head. ``mark`` is the marked offset, or None. In a file, the bytes
    are characters of Latin-1.
    """

    stream: StreamName
    entries: tuple[tuple[int, bytes], ...]
    mark: int | None = None

    @classmethod
    def load(cls, path: Path) -> Log:
        """Read a log from a file."""
        first, *rest = lines_of(path)
        entries = tuple((entry["offset"], entry["bytes"].encode("latin-1")) for entry in rest)
        return cls(StreamName.parse(first["stream"]), entries, first["mark"])

    def save(self, path: Path) -> None:
        """Write the log to a file."""
        entries = [{"offset": offset, "bytes": data.decode("latin-1")} for offset, data in self.entries]
        write_lines(path, [{"stream": str(self.stream), "mark": self.mark}, *entries])

    @property
    def values(self) -> list[bytes]:
        """Bytes of the entries."""
        return [data for _, data in self.entries]

    def first(self, count: int) -> Log:
        """Return the log as it was with ``count`` entries.

        If it was truncated, its head was marked before.
        """
        entries = self.entries[:count]
        before = entries[0][0] or None
        return Log(self.stream, entries, before if self.mark is None or self.mark > entries[-1][0] else self.mark)

    def with_transactions(self, ids: Mapping[str, uuid.UUID]) -> Log:
        """Return the log with other transactions.

        Transactions that are not in ``ids`` get ids that no server knows. Servers count transactions, so another server
        may use the same ids for other ones.
        """
        there = {str(id_).encode(): str(new).encode() for id_, new in ids.items()}

        def other(found: re.Match[bytes]) -> bytes:
            return there.get(found[0]) or str(uuid.uuid5(uuid.NAMESPACE_OID, found[0].decode())).encode()

        return Log(self.stream, tuple((at, _TRANSACTION.sub(other, data)) for at, data in self.entries), self.mark)

    def restore(self, client: PravegaClient) -> None:
        """Create the stream with these entries.

        If entries were truncated, a filler entry is written in their place and truncated.
        """
        client.controller.create_scope(self.stream.scope)
        assert client.controller.create_stream(self.stream, ScalingPolicy.fixed(1)), f"{self.stream} is there already"
        head = self.entries[0][0]
        with client.revisioned(self.stream) as log:
            start = log.oldest_revision()
            if head:  # a filler entry with a frame of eight bytes
                log.write_unconditionally(b"x" * (head - 8))
                start = log.latest_revision()
            for offset, data in self.entries:
                assert log.latest_revision().offset == offset
                log.write_unconditionally(data)
            if self.mark is not None:
                assert log.compare_and_set_mark(None, Revision(start.stream, start.segment_id, self.mark))
            if head:
                log.truncate_to_revision(start)


def dump(client: PravegaClient, stream: StreamName) -> Log:
    """Return the whole content of a stream of one segment."""
    with client.revisioned(stream) as log:
        offset, entries = log.oldest_revision().offset, []
        for revision, data in log.read_from(log.oldest_revision()):
            entries.append((offset, bytes(data)))
            offset = revision.offset
        mark = log.mark()
    return Log(stream, tuple(entries), None if mark is None else mark.offset)


@dataclass(frozen=True)
class Script:
    """Script that creates a stream: its segments, and then events with their keys, and scalings.

    On any server, it produces the same events at the same offsets of the same segments.
    """

    stream: StreamName
    segments: int
    steps: tuple[dict[str, Any], ...]

    @classmethod
    def load(cls, path: Path) -> Script:
        """Read a script from a file."""
        first, *steps = lines_of(path)
        return cls(StreamName.parse(first["stream"]), first["segments"], tuple(steps))

    def save(self, path: Path) -> None:
        """Write the script to a file."""
        write_lines(path, [{"stream": str(self.stream), "segments": self.segments}, *self.steps])

    @property
    def events(self) -> list[bytes]:
        """Events in the order of writing."""
        return [step["event"].encode("latin-1") for step in self.steps if "event" in step]

    def perform(self, client: PravegaClient) -> None:
        """Create the stream."""
        client.controller.create_scope(self.stream.scope)
        fixed = ScalingPolicy.fixed(self.segments)
        assert client.controller.create_stream(self.stream, fixed), f"{self.stream} is there already"
        self.go_on(client)

    def go_on(self, client: PravegaClient) -> None:
        """Run the steps on an existing stream."""
        with client.writer(self.stream) as writer:
            for step in self.steps:
                if "event" in step:
                    writer.write(step["event"].encode("latin-1"), step["key"])
                else:
                    writer.flush()
                    client.controller.scale_stream(self.stream, step["seal"], [tuple(each) for each in step["ranges"]])


def good_number(event: bytes) -> int | None:
    """Return the number in an event ``{"n":7}``, or None for a malformed event."""
    try:
        number = json.loads(event)["n"]
    except (ValueError, TypeError, KeyError):
        return None
    return number if isinstance(number, int) else None
