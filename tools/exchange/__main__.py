"""Let every kind of application read what every other one has written, in each format and mode, and count.

Writers: Java, Flink with both of its interfaces, Rust, plain Python, Spark. Each stream has the same trips, and each
reader must find exactly those, in order for each routing key. Modes:

- ``plain``.
- ``transactions``, with an aborted one.
- ``scaling``, from one segment to three and to two between the parts. Writers that can stay open do.
- ``watermarks``, with noted times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import click

from pravega_connector.client import PravegaClient
from pravega_connector.local import LocalPravega, LocalSchemaRegistry
from pravega_connector.wire import StreamName
from tests.faults.record import write_into
from tests.support.jvm import SOON_READY
from tools.exchange._parties import Flink, Java, Party, Place, Python, Rust, Seen, Spark
from tools.exchange._trips import FORMATS, Format, expected, key

_HERE: Final = Path(__file__).parent
_DOCUMENT: Final = _HERE.parents[1] / "benchmarks/results/exchange.md"
_PATH: Final = click.Path(path_type=Path)
_SCOPE: Final = "exchange"
#: Parts of a stream, between which it is scaled, or a time is noted; in transactions each is one.
_PARTS: Final = 3
_EVENTS: Final = 60
#: Flink's last watermark.
_END_OF_TIME: Final = 2**63 - 1
MODES: Final = ("plain", "transactions", "scaling", "watermarks")


@dataclass(frozen=True, slots=True)
class Cell:
    """One reader's look at one writer's stream."""

    writer: str
    reader: str
    form: str
    mode: str
    events: int = 0
    """How many were found and right."""
    lacks: str = ""
    """Why there can be none; whose limit it is stands before it."""
    failure: str = ""

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Subject of the cell."""
        return self.writer, self.reader, self.form, self.mode


class Exchange:
    """Streams of all formats of one writer and one mode, and what the readers find there."""

    def __init__(self, client: PravegaClient, parties: Sequence[Party], cells: list[Cell]) -> None:
        self._client, self._parties, self.cells = client, parties, cells

    def play(self, writer: Party, mode: str) -> Iterator[Cell]:
        """Write, and let all parties read."""
        known = {cell.place for cell in self.cells if not cell.failure}
        todo = [
            form
            for form in FORMATS
            if any((writer.name, party.name, form.name, mode) not in known for party in self._parties)
        ]
        failed = self._write(writer, mode, [form for form in todo if not _lacks(writer, form, mode, writing=True)])
        for form in todo:
            why = _lacks(writer, form, mode, writing=True)
            for reader in self._parties:
                place = (writer.name, reader.name, form.name, mode)
                if place in known:
                    continue
                none = why or _lacks(reader, form, mode, writing=False)
                if none:
                    yield Cell(*place, lacks=none)
                elif form in failed:
                    yield Cell(*place, failure=failed[form])
                else:
                    yield self._read(writer, reader, form, mode)

    def _stream(self, writer: str, form: Format, mode: str) -> StreamName:
        words = f"{writer}-{mode}-{form.group}".replace(", ", "-")
        return StreamName(_SCOPE, words)

    def _write(self, writer: Party, mode: str, forms: list[Format]) -> dict[Format, str]:
        """Write the parts of all streams; what has failed."""
        streams = {form: self._stream(writer.name, form, mode) for form in forms}
        failed: dict[Format, str] = {}
        for stream in streams.values():
            if self._client.stream_exists(stream):
                self._client.delete_stream(stream)
            self._client.create_stream(stream, 1 if mode == "scaling" else 2)
        way = "transaction" if mode == "transactions" else "plain"
        for part in range(_PARTS):
            first, last = part * _EVENTS, (part + 1) * _EVENTS
            for form, stream in streams.items():
                if form in failed:
                    continue
                try:
                    if mode == "transactions" and part == 1 and writer.aborts:
                        writer.write(stream, form, 10_000, 10_000 + _EVENTS, "aborted")
                    noted = last - 1 if mode == "watermarks" else None
                    writer.write(stream, form, first, last, way, noted)
                except Exception as error:
                    traceback.print_exc()
                    failed[form] = f"write: {error}".splitlines()[0][:300]
            if mode == "scaling" and part < 2:
                for stream in streams.values():
                    self._client.scale_stream(stream, 3 - part, timeout=60)
            elif mode == "watermarks":
                self._await_mark([stream for form, stream in streams.items() if form not in failed], last - 1)
        writer.done()
        return failed

    def _await_mark(self, streams: list[StreamName], noted: int) -> None:
        """Wait for the watermark; a time that is noted by a writer that then leaves may be seen with the next one."""
        end = time.monotonic() + 4
        while time.monotonic() < end:
            marks = [self._client.watermarks(stream) for stream in streams]
            if all(found and found[-1].low >= noted for found in marks):
                return
            time.sleep(0.2)

    def _read(self, writer: Party, reader: Party, form: Format, mode: str) -> Cell:
        cell = Cell(writer.name, reader.name, form.name, mode)
        stream, count = self._stream(writer.name, form, mode), _PARTS * _EVENTS
        try:
            if mode == "scaling":
                self._check_scaled(stream)
            if mode == "watermarks" and not self._client.watermarks(stream):
                raise AssertionError("the stream has no watermarks")
            seen = reader.read(stream, form, count, timed=mode == "watermarks")
            if not writer.bounds_above:
                seen.highs = []
            _check(seen, form, count, timed=mode == "watermarks")
        except Exception as error:
            if not isinstance(error, AssertionError):
                traceback.print_exc()
            text = str(error).splitlines() or [type(error).__name__]
            return Cell(*cell.place, failure=text[0][:300])
        return Cell(*cell.place, events=count)

    def _check_scaled(self, stream: StreamName) -> None:
        """The proof of the scaling: each of the three epochs has events."""
        epochs = {batch.segment_id >> 32 for batch in self._client.read_columns(stream) if len(batch.events)}
        assert epochs == {0, 1, 2}, f"events are in epochs {sorted(epochs)} only"


def _read_beside_a_group(client: PravegaClient, writer: Party, readers: Sequence[Party]) -> None:
    """Let all parties read a stream while our reader group is in its middle: none disturbs the other."""
    stream, form, count = StreamName(_SCOPE, "beside"), FORMATS[0], _PARTS * _EVENTS
    client.create_stream(stream, 2)
    writer.write(stream, form, 0, count, "plain")
    writer.done()
    seen: list[tuple[object, int]] = []
    with client.reader_group(f"{_SCOPE}/ours", stream, refresh=0.5) as group, group.reader("ours", "bytes") as reader:

        def take(least: int) -> None:
            end = time.monotonic() + 60
            while len(seen) < least and time.monotonic() < end:
                seen.extend((event.segment, event.offset) for event in reader.poll(1.0) if not event.is_checkpoint)

        take(1)
        for party in readers:
            _check(party.read(stream, form, count, timed=False), form, count, timed=False)
            assert group.online_readers() == ["ours"], f"after {party.name} the group has {group.online_readers()}"
        take(count)
    assert len(seen) == len(set(seen)) == count, f"our group had {len(seen)} events, {len(set(seen))} of them different"
    names = ", ".join(party.name for party in readers)
    print(f"a reader group of ours next to {names}: {count} events each, once", flush=True)


def _lacks(party: Party, form: Format, mode: str, *, writing: bool) -> str:
    why = party.lacks(form, mode, writing=writing)
    return f"{party.name}: {why}" if why else ""


def _check(seen: Seen, form: Format, count: int, *, timed: bool) -> None:
    """Every trip once, right, in order for its key, at a time that can be."""
    assert len(seen.values) == count, f"{len(seen.values)} of {count} events"
    numbers = {json.dumps(expected(form, number), sort_keys=True): number for number in range(count)}
    last: dict[str, int] = {}
    times: list[int] = []
    for value in seen.values:
        number = numbers.pop(json.dumps(value, sort_keys=True), None)
        assert number is not None, f"found {value!r}, which is wrong or there twice"
        assert last.get(key(number), -1) < number, f"trip {number} came after {last[key(number)]}"
        last[key(number)] = number
        times.append(number)
    if timed:
        bounds = [*seen.lows, *seen.highs, *seen.marks]
        assert any(bound is not None for bound in bounds), "no event has a time, and there is no watermark"
        assert not any(low > at for low, at in zip(seen.lows, times, strict=False) if low is not None), "a wrong low"
        assert not any(high < at for high, at in zip(seen.highs, times, strict=False) if high is not None), (
            "a wrong high"
        )
        assert all(mark < count or mark == _END_OF_TIME for mark in seen.marks), "a mark of a time that no writer noted"


def _table(cells: Sequence[Cell]) -> str:
    """Return the formats of each client, and for each mode the number of formats by writer and reader."""
    right = [cell for cell in cells if cell.events]
    failed = sum(bool(cell.failure) for cell in cells)
    reasons: dict[str, int] = {}
    names = list(dict.fromkeys(cell.reader for cell in cells))
    others = len(cells) - len(right) - failed
    events = sum(cell.events for cell in right)
    lines = [
        f"{len(right)} combinations with {events:,} events passed, and {failed} failed.",
        f"{others} are not possible: the numbers in parentheses are the reasons.",
        "",
        "### Formats",
        "",
        f"| format | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
    ]
    for form in FORMATS:
        ways = (_ways([cell for cell in right if cell.form == form.name], name) for name in names)
        lines.append(f"| {form.name} | {' | '.join(ways)} |")
    for mode in MODES:
        lines += ["", f"### {mode.capitalize()}", ""]
        lines += [f"| written by | {' | '.join(f'read by {name}' for name in names)} |", f"|---|{'---|' * len(names)}"]
        for writer in names:
            shown = (
                _shown([cell for cell in cells if cell.place[:2] == (writer, reader) and cell.mode == mode], reasons)
                for reader in names
            )
            lines.append(f"| {writer} | {' | '.join(shown)} |")
    lines += ["", "Reasons:", "", *(f"- ({number}) {why}" for why, number in reasons.items())]
    return "\n".join(lines)


def _ways(right: Sequence[Cell], name: str) -> str:
    """Return if a client writes, reads, or does both in some of these cells."""
    writes, reads = (any(getattr(cell, side) == name for cell in right) for side in ("writer", "reader"))
    return "yes" if writes and reads else "writes" if writes else "reads" if reads else "–"


def _shown(cells: Sequence[Cell], reasons: dict[str, int]) -> str:
    """Return the number of formats that passed, with the reasons of the others."""
    if not cells:
        return "not run"
    passed = sum(bool(cell.events) for cell in cells)
    whys = dict.fromkeys(cell.lacks or "failed: " + cell.failure for cell in cells if not cell.events)
    numbers = sorted(reasons.setdefault(why, len(reasons) + 1) for why in whys)
    return " ".join([*([str(passed)] if passed else []), *(f"({number})" for number in numbers)])


@click.command(help=__doc__)
@click.option("--only", multiple=True, help="Names of parties, or beginnings of names.")
@click.option("--mode", "modes", multiple=True, type=click.Choice(MODES), default=MODES)
@click.option("--flink-jars", type=_PATH, help="Folder with jars of Flink, its Pravega connector, and all they need.")
@click.option("--json", "file", type=_PATH, help="Keep the cells there; what is right there is not played again.")
@click.option("--document", is_flag=True, help="Only write the tables of --json into benchmarks/results/exchange.md.")
def main(
    only: tuple[str, ...], modes: tuple[str, ...], flink_jars: Path | None, file: Path | None, document: bool
) -> None:
    cells = [Cell(**one) for one in json.loads(file.read_text())] if file is not None and file.exists() else []
    if document:
        write_into(_DOCUMENT, "exchange", _table(cells))
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="exchange-")))
        server = stack.enter_context(LocalPravega(heap_mb=768, cache_mb=256, java_options=SOON_READY))
        registry = stack.enter_context(LocalSchemaRegistry(java_options=SOON_READY))
        place = Place(server.controller_uri, registry.uri, _SCOPE, _schemas(folder))
        client = stack.enter_context(PravegaClient(server.config))
        client.create_scope(_SCOPE)
        parties = []
        for party in _parties(place, folder, flink_jars):
            stack.callback(party.close)
            parties.append(party)
        exchange = Exchange(client, parties, cells)
        for mode in modes:
            for writer in parties:
                if only and not writer.name.startswith(only):
                    continue
                begin = time.monotonic()
                for cell in exchange.play(writer, mode):
                    cells[:] = [each for each in cells if each.place != cell.place] + [cell]
                    if file is not None:
                        file.write_text(json.dumps([asdict(each) for each in cells], indent=1) + "\n")
                    if cell.failure:
                        print("FAILED", " ".join(cell.place), cell.failure, flush=True)
                print(f"{mode}, written by {writer.name}: {time.monotonic() - begin:.0f} s", flush=True)
        if "plain" in modes:
            _read_beside_a_group(client, parties[1], parties)
    sys.exit(any(cell.failure for cell in cells))


def _schemas(folder: Path) -> Path:
    made = folder / "schemas"
    made.mkdir()
    (made / "trip.avsc").write_text((_HERE / "trip.avsc").read_text())
    options = [f"-I{_HERE}", f"--descriptor_set_out={made / 'trip.pb'}", "trip.proto"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options], check=True, timeout=120)
    return made


def _parties(place: Place, folder: Path, jars: Path | None) -> Iterator[Party]:
    """Java first: it registers the schemas, as the applications do that own the streams."""
    java = Java(place, folder / "java")
    yield java
    java.register([form for form in FORMATS if form.registry])
    python = Python(place, java.sample())
    yield python
    yield Spark(place, folder / "warehouse", java.sample())
    yield Rust(place, folder, python)
    if jars is not None:
        for api in ("legacy", "FLIP-27"):
            yield Flink(place, folder / f"flink-{api}", jars, api)


if __name__ == "__main__":
    main()
