"""Detection of formats, framings and schemas in a sample of events: :func:`sniff`.

- ``scan`` reads events within its limits, and ``sample`` keeps a uniform sample of them.
- ``payloads`` recognizes the format of one event, ``parts`` divides all events by framing and format.
- ``framings``, ``compression``, ``avro_container`` and ``messagepack`` each recognize one kind.
- ``evidence`` tests that a format is no coincidence.
- ``document_fields``, ``protobuf_fields`` and ``java_classes`` describe schemas.
- ``proposals`` derives how to read the events, and ``results`` has the result.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_serde.sniffing.fields import SniffedField as SniffedField
    from pravega_serde.sniffing.java_classes import SniffedClass as SniffedClass
    from pravega_serde.sniffing.results import Sniffed as Sniffed
    from pravega_serde.sniffing.results import SniffedPart as SniffedPart
    from pravega_serde.sniffing.results import SniffedProposal as SniffedProposal
    from pravega_serde.sniffing.scan import Scan as Scan
    from pravega_serde.sniffing.scan import sniff as sniff
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "fields": "SniffedField",
            "java_classes": "SniffedClass",
            "results": "Sniffed SniffedPart SniffedProposal",
            "scan": "Scan sniff",
        },
    )
