"""Result of sniffing: the parts of a stream, with a text form and a form for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from pravega_serde.errors import escaped
from pravega_serde.sniffing.fields import SniffedField
from pravega_serde.sniffing.java_classes import SniffedClass

#: Confidence in the format of a part. "none" is that of an unknown format.
Confidence = Literal["high", "medium", "low", "none"]

_SHOWN: Final = 40
_LONGEST_LINE: Final = 4000


@dataclass(frozen=True, slots=True)
class SniffedProposal:
    """Way to read the events of one part, and to register their schema."""

    spark: Mapping[str, str]
    """Options of ``format("pravega")``, without the controller. Without ``format``, Spark returns bytes."""
    columns: str
    """Columns for ``.schema(...)`` in Spark, or an empty string if the events or a schema define them."""
    client: str
    """Call of the Python client that yields the values."""
    registry_format: str = ""
    """Format of a group in the schema registry for these events, or an empty string if the registry has none."""
    schema_file: str = ""
    """Contents of a schema file, or an empty string if the schema is unknown."""
    schema_suffix: str = ""
    """Suffix of the schema file, such as ``.avsc``."""
    notes: tuple[str, ...] = ()
    """Steps that no option can do, and limits."""

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes for JSON."""
        return {**asdict(self), "spark": dict(self.spark), "notes": list(self.notes)}


@dataclass(frozen=True, slots=True)
class SniffedPart:
    """Events of one framing and one format."""

    format: str
    """``java``, ``string``, ``json``, ``cbor``, ``avro`` or ``protobuf``.

    Or ``empty`` for events without bytes, the name of another format such as ``messagepack``, or ``unknown``.
    """
    framing: tuple[str, ...]
    """Names of what surrounds the payload, outermost first: ``pravega-registry``, ``gzip``, …"""
    share: float
    """Share of the examined events, 0 to 1."""
    events: int
    """Number of these events in the sample."""
    confidence: Confidence
    """Confidence in the format."""
    reason: str
    """Reason for the format, or for the lack of one, in one sentence."""
    sizes: tuple[int, int, int]
    """Smallest, median and largest number of bytes of an event."""
    ids: tuple[int | str, ...]
    """Distinct ids of the framing: encoding ids, schema ids or fingerprints. Those of AWS Glue and Azure are text."""
    fields: tuple[SniffedField, ...]
    """Fields of JSON, CBOR and Protobuf events."""
    classes: Mapping[str, int]
    """Java class of the events -> number of events."""
    class_infos: tuple[SniffedClass, ...]
    """All Java classes in the events, with their fields."""
    proposal: SniffedProposal
    """Way to read these events."""

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes for JSON."""
        return {
            "format": self.format,
            "framing": list(self.framing),
            "share": self.share,
            "events": self.events,
            "confidence": self.confidence,
            "reason": self.reason,
            "sizes": dict(zip(("smallest", "median", "largest"), self.sizes, strict=True)),
            "ids": list(self.ids),
            "fields": [each.to_dict() for each in self.fields],
            "classes": dict(self.classes),
            "class_infos": [
                {"name": each.name, "serial_version_uid": each.serial_version_uid, "fields": dict(each.fields)}
                for each in self.class_infos
            ],
            "proposal": self.proposal.to_dict(),
        }

    def _lines(self) -> list[str]:
        framed = f" in {' + '.join(self.framing)}" if self.framing else ""
        sure = "" if self.confidence == "none" else f", confidence {self.confidence}"
        low, middle, high = self.sizes
        lines = [
            f"{self.share:7.1%}  {self.format}{framed}{sure}",
            f"         {self.reason}",
            f"         {low} to {high} bytes an event, median {middle}",
        ]
        if self.ids:
            lines.append(f"         ids: {_few([str(each) for each in self.ids])}")
        for name, count in list(self.classes.items())[:_SHOWN]:
            lines.append(f"         class {name}: {count} events")
        for each in self._described()[:_SHOWN]:
            fields = ", ".join(f"{kind} {name}" for name, kind in each.fields[:_SHOWN])
            lines.append(f"         {each.name} (serialVersionUID {each.serial_version_uid}): {fields or 'no fields'}")
        for field in self.fields[:_SHOWN]:
            optional = ", optional" if field.optional else ""
            logical = f" ({field.logical})" if field.logical else ""
            lines.append(f"         field {field.path}: {' or '.join(field.types)}{logical}{optional}")
        if len(self.fields) > _SHOWN:
            lines.append(f"         and {len(self.fields) - _SHOWN} more fields")
        return [*lines, *self._proposal_lines()]

    def _described(self) -> list[SniffedClass]:
        """Return the classes to show: without the JDK's, unless there are no others."""
        own = [each for each in self.class_infos if not each.name.startswith(("java.", "["))]
        return own or list(self.class_infos)

    def _proposal_lines(self) -> list[str]:
        way = self.proposal
        options = ", ".join(f'{name}="{value}"' for name, value in way.spark.items())
        lines = [f"         Spark: options({options})" if options else "         Spark: no option, the column event"]
        if way.columns:
            lines.append(f'         Spark: schema("{way.columns}")')
        lines.append(f"         client: {way.client}")
        if way.registry_format:
            known = ", schema known" if way.schema_file else ""
            lines.append(f"         registry: a group of format {way.registry_format}{known}")
        return lines + [f"         note: {note}" for note in way.notes]


@dataclass(frozen=True, slots=True)
class Sniffed:
    """Content of a stream, as far as a sample of its events shows it. ``str`` returns it as text."""

    parts: tuple[SniffedPart, ...]
    """Parts by share, the largest first."""
    scanned: int
    """Number of events that were read."""
    scanned_bytes: int
    """Number of bytes that were read."""
    examined: int
    """Number of sampled events that were examined."""
    stopped: str
    """Limit that ended the scan: ``events``, ``bytes`` or ``time``; empty if all events were read."""
    notes: tuple[str, ...] = ()
    """Limits that the result met, in words."""

    @property
    def format(self) -> str:
        """Format of all events, ``mixture`` for several parts, or ``unknown``. Empty events do not count."""
        formats = {(each.framing, each.format) for each in self.parts if each.format != "empty"}
        if len(formats) > 1:
            return "mixture"
        return next(iter(formats))[1] if formats else "unknown"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "format": self.format,
            "parts": [each.to_dict() for each in self.parts],
            "scanned": self.scanned,
            "scanned_bytes": self.scanned_bytes,
            "examined": self.examined,
            "stopped": self.stopped,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        end = f"; the scan stopped at its limit of {self.stopped}" if self.stopped else ""
        head = f"{self.examined} events examined, of {self.scanned} with {self.scanned_bytes} bytes{end}"
        lines = [head, *(f"note: {note}" for note in self.notes)]
        for each in self.parts:
            lines += ["", *each._lines()]
        return "\n".join(map(printable, lines))


def printable(line: str) -> str:
    """Return a line with the names of events in it, without control characters for a terminal, and not too long."""
    line = escaped(line)
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def _few(words: list[str]) -> str:
    return ", ".join(words[: _SHOWN // 2]) + (", …" if len(words) > _SHOWN // 2 else "")
