"""Detection of formats, framings and schemas in a sample of events: :func:`sniff`.

- ``scan`` reads events within its limits, and ``sample`` keeps a uniform sample of them.
- ``payloads`` recognizes the format of one event, ``parts`` divides all events by framing and format.
- ``framings``, ``compression``, ``avro_container``, ``messagepack`` and ``text_kinds`` each recognize one kind.
- ``evidence`` tests that a format is no coincidence.
- ``document_fields``, ``protobuf_fields`` and ``java_classes`` describe schemas.
- ``proposals`` derives how to read the events, and ``results`` has the result.
"""

from typing import TYPE_CHECKING

from pravega_serde.public_names import unknown_names
from pravega_serde.sniffing.fields import SniffedField
from pravega_serde.sniffing.java_classes import SniffedClass
from pravega_serde.sniffing.results import Sniffed, SniffedPart, SniffedProposal
from pravega_serde.sniffing.scan import Scan, sniff

__all__ = ["Scan", "Sniffed", "SniffedClass", "SniffedField", "SniffedPart", "SniffedProposal", "sniff"]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__ = unknown_names(__name__)
