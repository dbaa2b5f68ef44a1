"""``sniff``: a bounded scan of events, and the description of its sample."""

from __future__ import annotations

import csv
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import Any, Final

import pyarrow as pa

from pravega_serde import plug_in_formats
from pravega_serde.avro import AvroSerializer
from pravega_serde.avro.schema import SchemaLike
from pravega_serde.errors import DeserializationError, SerdeError
from pravega_serde.format_table import FORMATS
from pravega_serde.json.rows import parse as parse_json
from pravega_serde.sniffing import protobuf_fields
from pravega_serde.sniffing.avro_container import schema_of
from pravega_serde.sniffing.document_fields import DocumentFields
from pravega_serde.sniffing.java_classes import JavaClasses
from pravega_serde.sniffing.parts import Group, Splitter
from pravega_serde.sniffing.payloads import EMPTY, UNKNOWN, cbor_parser
from pravega_serde.sniffing.proposals import proposal
from pravega_serde.sniffing.results import Confidence, Sniffed, SniffedPart, SniffedProposal
from pravega_serde.sniffing.sample import MAX_EVENT, Sample

_BLOCK: Final = 1024
#: Share of the time for reading; the rest is for the examination.
_READING: Final = 0.6
_IDS: Final = 16
#: Lines and columns that CSV has at least.
_FEWEST_LINES: Final = 10
_FEWEST_COLUMNS: Final = 3


class Scan:
    """Scan of one stream, block by block: :meth:`add` until it returns False, then :meth:`result`.

    ``max_events``, ``max_bytes`` and ``timeout`` (seconds, in all) are the limits; None is no limit. ``avro_schema`` is
    the schema of Avro bodies, to confirm it. ``stream`` is the name that proposals use. ``registry`` is the address
    that they use, with the group, by default the stream's.
    """

    def __init__(
        self,
        *,
        stream: str = "scope/stream",
        avro_schema: SchemaLike | None = None,
        registry: tuple[str, str | None] | None = None,
        max_events: int | None = 100_000,
        max_bytes: int | None = 256 << 20,
        timeout: float | None = 30.0,
    ) -> None:
        for name, limit in (("max_events", max_events), ("max_bytes", max_bytes), ("timeout", timeout)):
            if limit is not None and not limit > 0:
                raise SerdeError(f"invalid {name}: {limit!r} is not greater than 0; pass None for no limit")
        self._stream, self._registry = stream, registry
        self._avro = None if avro_schema is None else AvroSerializer(avro_schema)
        self._max_events, self._max_bytes = max_events, max_bytes
        start = time.monotonic()
        self._reading_ends = float("inf") if timeout is None else start + timeout * _READING
        self._deadline = float("inf") if timeout is None else start + timeout
        self._sample = Sample()
        self.stopped = ""
        """Limit that was reached: ``events``, ``bytes`` or ``time``."""

    @property
    def room(self) -> int | None:
        """Number of events until the limit; None without one."""
        return None if self._max_events is None else self._max_events - self._sample.seen

    def add(self, events: Sequence[bytes] | pa.BinaryArray) -> bool:
        """Add a block of events. Return False if a limit is reached."""
        room = self.room
        block = events if room is None or len(events) <= room else events[:room]
        if isinstance(block, pa.Array):
            self._sample.add_column(block)
        else:
            self._sample.add(block)
        if len(block) < len(events):
            self.stopped = "events"
        elif self._max_bytes is not None and self._sample.seen_bytes >= self._max_bytes:
            self.stopped = "bytes"
        elif time.monotonic() >= self._reading_ends:
            self.stopped = "time"
        return not self.stopped

    def result(self) -> Sniffed:
        """Examine the sample and return the result."""
        events = [event for event in self._sample.events if event is not None]
        large = len(self._sample.events) - len(events)
        splitter = Splitter(self._avro, self._deadline)
        groups = splitter.split(events)
        notes = []
        if large:
            notes.append(f"{large} sampled events have more than {MAX_EVENT} bytes and were not examined")
        if splitter.examined < len(events):
            notes.append(f"the time ended after {splitter.examined} of {len(events)} sampled events")
        if splitter.not_unpacked:
            notes.append(f"{splitter.not_unpacked} compressed payloads exceed the memory limit and were not examined")
        if splitter.is_late:
            notes.append("the time ended before all payloads in framings were examined; they count as unknown")
        notes += _missing_extras({each.format for each in groups})
        notes += _two_registries({name for each in groups for name in each.framing[:1]})
        parts = tuple(self._part(each, events, splitter.examined, notes) for each in groups)
        return Sniffed(parts, self._sample.seen, self._sample.seen_bytes, splitter.examined, self.stopped, tuple(notes))

    def _part(self, group: Group, events: Sequence[bytes], total: int, notes: list[str]) -> SniffedPart:
        describe = _Description(self._stream, group, self._avro, self._registry, self._deadline)
        sizes = [len(events[row]) for row in group.rows]
        if describe.is_shortened:
            notes.append(f"the time ended before all {group.format} events were described")
        if describe.is_partial:
            notes.append("the events have too many classes, constants or types; some are not in the result")
        kind = "csv" if group.format == "string" and _is_csv(group.payloads) else group.format
        return SniffedPart(
            format=kind,
            framing=group.framing,
            share=len(group.rows) / total,
            events=len(group.rows),
            confidence=_confidence(group),
            reason=_reason(group),
            sizes=(min(sizes), int(statistics.median(sizes)), max(sizes)),
            ids=tuple(sorted(group.ids)[:_IDS]),
            fields=describe.fields,
            classes=describe.classes,
            class_infos=describe.class_infos,
            proposal=describe.proposal,
        )


def sniff(
    events: Iterable[bytes] | pa.Array | pa.ChunkedArray,
    *,
    stream: str = "scope/stream",
    avro_schema: SchemaLike | None = None,
    max_events: int | None = 100_000,
    max_bytes: int | None = 256 << 20,
    timeout: float | None = 30.0,
) -> Sniffed:
    """Return what events hold: formats, framings, schemas, and how to read them.

    ``events`` are bytes, or a binary Arrow array without nulls. At most ``max_events`` events and ``max_bytes`` bytes
    are read, within ``timeout`` seconds; None is no limit. A random sample of at most 1,000 events and 16 MiB is
    examined. ``timeout`` does not interrupt an iterator that blocks. ``avro_schema`` is the schema of Avro bodies, to
    confirm it. ``stream`` is the name in proposals.

    Nothing in an event is executed, loaded or looked up. A format without sufficient evidence is ``unknown``. Raises
    :class:`SerdeError` for invalid limits, and :class:`SchemaError` for an invalid schema.
    """
    scan = Scan(stream=stream, avro_schema=avro_schema, max_events=max_events, max_bytes=max_bytes, timeout=timeout)
    for block in _blocks(events):
        if not scan.add(block):
            break
    return scan.result()


def _blocks(events: Any) -> Iterable[Any]:
    if isinstance(events, pa.ChunkedArray):
        yield from (chunk.cast(pa.binary()) for chunk in events.chunks)
    elif isinstance(events, pa.Array):
        yield events.cast(pa.binary())
    else:
        iterator = iter(events)
        # The first blocks are short, so that a slow iterator reaches the deadline.
        size = 1
        while block := list(islice(iterator, size)):
            yield block
            size = min(2 * size, _BLOCK)


#: Format or codec -> the package that recognizes it, and the extra that installs it.
_EXTRAS: Final = {"CBOR": ("cbor2", "cbor"), "snappy": ("cramjam", "registry")}


def _missing_extras(formats: set[str]) -> list[str]:
    """Return a note for each format that cannot be recognized here, if some events are unknown."""
    return [
        f"{name} is not recognized without the extra {extra}: pip install 'pravega-serde[{extra}]'"
        for name, (package, extra) in _EXTRAS.items()
        if UNKNOWN in formats and find_spec(package) is None
    ]


def _two_registries(framings: set[str]) -> list[str]:
    """Return a note if one reader reads the events of two registries."""
    others = framings & {"confluent", "apicurio"}
    if "pravega-registry" not in framings or len(others) != 1:
        return []
    note = "the events are of two registries: set the options also_registry and also_group to those of the"
    return [f"{note} {others.pop()} part, or pass also= to the deserializer"]


class _Description:
    """Schema and proposal of a group."""

    def __init__(
        self,
        stream: str,
        group: Group,
        avro: AvroSerializer | None,
        registry: tuple[str, str | None] | None,
        deadline: float,
    ) -> None:
        self._group, self._deadline = group, deadline
        self.is_shortened = self.is_partial = False
        self.fields: Any = ()
        self.classes: dict[str, int] = {}
        self.class_infos: Any = ()
        self.proposal: SniffedProposal
        columns: Any = (None, ())
        java = None
        schema = ""
        if group.format in ("json", "cbor"):
            tree = self._documents()
            self.fields, columns = tree.fields(), tree.columns()
        elif group.format == "protobuf":
            self.fields = protobuf_fields.describe(group.payloads, padded=group.padded)
        elif group.format == "java":
            java = JavaClasses()
            for payload in self._in_time():
                java.add(payload)
            self.classes = dict(Counter(java.events).most_common())
            self.class_infos = java.classes
            self.is_partial = not java.is_complete
        elif group.format == "avro":
            schema = self._avro_schema(avro)
        self.proposal = proposal(
            stream, group.format, group.framing, columns=columns, java=java, avro_schema=schema, registry=registry
        )

    def _in_time(self) -> Iterable[bytes]:
        for at, payload in enumerate(self._group.payloads):
            if at and time.monotonic() > self._deadline:
                self.is_shortened = True
                return
            yield payload

    def _documents(self) -> DocumentFields:
        parse = parse_json if self._group.format == "json" else cbor_parser()
        tree = DocumentFields()
        for payload in self._in_time():
            try:
                tree.add(parse(payload))
            except DeserializationError:  # a tagged CBOR event begins with three more bytes
                continue
        return tree

    def _avro_schema(self, avro: AvroSerializer | None) -> str:
        if "avro-container" in self._group.framing:
            schemas = Counter(map(schema_of, self._group.payloads))
            return next(iter(schemas)) or "" if len(schemas) == 1 else ""
        return "" if avro is None or "avro-single-object" in self._group.framing else avro.read_schema


def _is_csv(payloads: Sequence[bytes]) -> bool:
    """Return True for texts that are lines with the same number of columns."""
    texts = [payload.decode(errors="replace") for payload in payloads]
    return len(texts) >= _FEWEST_LINES and any(_has_columns(texts, delimiter) for delimiter in ",;\t|")


def _has_columns(texts: Sequence[str], delimiter: str) -> bool:
    counts = {text.count(delimiter) for text in texts[:_FEWEST_LINES]}
    if max(counts) < _FEWEST_COLUMNS - 1:
        return False
    try:
        rows = [next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter), []) for text in texts]
    except csv.Error:
        return False
    columns = len(rows[0])
    # A sentence has a space after its comma.
    prose = sum(text.count(f"{delimiter} ") for text in texts) * 2 > sum(text.count(delimiter) for text in texts)
    return columns >= _FEWEST_COLUMNS and all(len(row) == columns for row in rows) and not prose


def _confidence(group: Group) -> Confidence:
    if group.format in (UNKNOWN, EMPTY):
        return "none"
    bits = group.bits
    if group.format == "protobuf":
        bits = protobuf_fields.evidence(group.payloads, padded=group.padded)
    if group.format == "avro" and "avro-container" not in group.framing:
        return "high" if len(group.rows) >= 20 else "medium"
    return "high" if bits >= 100 else "medium" if bits >= 40 else "low"


_REASONS: Final = {
    "java": "Each event is one object of Java's serialization.",
    "json": "Each event parses as a JSON object or array.",
    "cbor": "Each event is one CBOR item with texts as keys.",
    "protobuf": "The events parse as messages with the same field numbers and wire types. Names are not in them.",
    "string": "Each event is printable UTF-8 text.",
    "xml": "Each event is one element of markup. It was not parsed as XML.",
    "messagepack": "Each event is one MessagePack map with texts as keys.",
    "utf-16": "Each event is text in UTF-16.",
    "utf-32": "Each event is text in UTF-32.",
    "smile": "Each event begins with the header of Smile, a binary JSON.",
    "ion": "Each event begins with the version marker of Amazon Ion.",
    "bson": "Each event is a BSON document by its size and its first field.",
    "pickle": "Each event is a Python pickle. Do not load it: a pickle can execute code.",
    EMPTY: "These events have no bytes.",
}


#: Formats with a serializer here, and events that nothing must load.
_READ_OR_UNSAFE: Final = frozenset({*FORMATS, "pickle", EMPTY})


def _reason(group: Group) -> str:
    if group.format == UNKNOWN and group.framing:
        return (
            f"The payload after {' and '.join(group.framing)} shows no format. A bare Avro body shows none: pass its "
            "schema to confirm it."
        )
    if group.format == UNKNOWN:
        return "The bytes show no format. They can be a bare Avro body, whose schema you can pass to confirm it."
    if group.format == "avro":
        if "avro-container" in group.framing:
            return "Each event is an Avro object container file, whose header has the schema."
        if "avro-single-object" in group.framing:
            return "Each event begins with the marker of Avro's single-object encoding and a repeated fingerprint."
        return "The schema that you passed reads each event."
    reason = _REASONS.get(group.format, f"Each event begins with the signature of {group.format}.")
    return reason if group.format in _READ_OR_UNSAFE else f"{reason} {_reader_of(group.format)}"


def _reader_of(name: str) -> str:
    # A name from events finds a plug-in without an import of it.
    if name in plug_in_formats.installed():
        return f"The installed format {name!r} reads it: set format={name}."
    return "No format here reads it. To add one, see the page 'Write a format'."
