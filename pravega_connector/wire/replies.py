"""Which reply of a segment store belongs to a request.

A store repeats in its reply what identifies the request: its number, segment, writer and event number. A reply that
differs in any of them belongs to another request, so nothing may be concluded from it. (Java: ``RawClient``,
``SegmentOutputStreamImpl`` and ``AsyncSegmentInputStreamImpl``.)
"""

from __future__ import annotations

from typing import Final

from pravega_connector.wire.messages import (
    AppendSetup,
    AuthTokenCheckFailed,
    BlockAppend,
    ConditionalAppend,
    ConditionalBlockEnd,
    ConditionalCheckFailed,
    CreateTransientSegment,
    DataAppended,
    ErrorMessage,
    GetSegmentAttribute,
    GetStreamSegmentInfo,
    InvalidEventNumber,
    MergeSegments,
    Message,
    NoSuchSegment,
    OperationUnsupported,
    ReadSegment,
    ReadTable,
    SegmentAttribute,
    SegmentAttributeUpdated,
    SegmentCreated,
    SegmentIsSealed,
    SegmentIsTruncated,
    SegmentRead,
    SegmentsMerged,
    SegmentTruncated,
    SetupAppend,
    StreamSegmentInfo,
    TableRead,
    TruncateSegment,
    UpdateSegmentAttribute,
    WrongHost,
)

_REFUSALS: Final = (
    AuthTokenCheckFailed,
    ErrorMessage,
    InvalidEventNumber,
    NoSuchSegment,
    OperationUnsupported,
    SegmentIsSealed,
    SegmentIsTruncated,
    WrongHost,
)
_ANSWERS: Final[dict[type[Message], tuple[type[Message], ...]]] = {
    BlockAppend: (DataAppended,),
    ConditionalAppend: (DataAppended, ConditionalCheckFailed),
    ConditionalBlockEnd: (DataAppended, ConditionalCheckFailed),
    CreateTransientSegment: (SegmentCreated,),
    GetSegmentAttribute: (SegmentAttribute,),
    GetStreamSegmentInfo: (StreamSegmentInfo,),
    MergeSegments: (SegmentsMerged, SegmentAttributeUpdated),
    ReadSegment: (SegmentRead,),
    ReadTable: (TableRead,),
    SetupAppend: (AppendSetup,),
    TruncateSegment: (SegmentTruncated,),
    UpdateSegmentAttribute: (SegmentAttributeUpdated,),
}
# Fields that a reply repeats if its request has them.
_IDENTITY: Final = ("request_id", "writer_id", "event_number", "target", "source")


def answers(request: Message, reply: Message, segment: str | None = None) -> bool:
    """Return whether a reply belongs to a request, as its answer or as a refusal.

    ``segment`` is the name of the segment that an append is for: the request does not have it, a refusal does.
    """
    if not isinstance(reply, _ANSWERS[type(request)]) and not isinstance(reply, _REFUSALS):
        return False
    if isinstance(request, ReadSegment):
        if isinstance(reply, AuthTokenCheckFailed):  # servers put the offset where the number belongs
            return reply.request_id in (request.offset, request.request_id)
        if isinstance(reply, SegmentRead) and reply.offset != request.offset:
            return False
    named = getattr(reply, "segment", None)
    if named is not None and not _is_about(request, named, segment):
        return False
    return all(
        getattr(reply, name) == getattr(request, name)
        for name in reply.__struct_fields__
        if name in _IDENTITY and hasattr(request, name)
    )


def _is_about(request: Message, named: str, segment: str | None) -> bool:
    """Return whether a request is about the segment that a reply names."""
    if isinstance(request, CreateTransientSegment):
        return named == request.parent or named.startswith(f"{request.parent}#transient.")
    if isinstance(request, MergeSegments):  # servers refuse one that they cannot do with either name
        return named in (request.target, request.source)
    return bool(named == getattr(request, "segment", segment))
