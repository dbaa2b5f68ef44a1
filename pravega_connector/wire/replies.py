"""Matching of a segment store's replies to requests.

A store repeats in its reply the identity of the request: its number, segment, writer and event number. A reply with a
difference in any of them belongs to another request, and has no meaning for this one. (Java: ``RawClient``,
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
    ReadTableEntries,
    ReadTableKeys,
    RemoveTableKeys,
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
    TableEntriesRead,
    TableEntriesUpdated,
    TableKeyBadVersion,
    TableKeyDoesNotExist,
    TableKeysRead,
    TableKeysRemoved,
    TableRead,
    TruncateSegment,
    UpdateSegmentAttribute,
    UpdateTableEntries,
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
    ReadTableEntries: (TableEntriesRead,),
    ReadTableKeys: (TableKeysRead,),
    RemoveTableKeys: (TableKeysRemoved, TableKeyBadVersion, TableKeyDoesNotExist),
    SetupAppend: (AppendSetup,),
    TruncateSegment: (SegmentTruncated,),
    UpdateSegmentAttribute: (SegmentAttributeUpdated,),
    UpdateTableEntries: (TableEntriesUpdated, TableKeyBadVersion, TableKeyDoesNotExist),
}
# Fields that a reply repeats if its request has them.
_IDENTITY: Final = ("request_id", "writer_id", "event_number", "target", "source")


def answers(request: Message, reply: Message, segment: str | None = None) -> bool:
    """Return True if a reply belongs to a request, as its answer or as a refusal.

    ``segment`` is the name of an append's segment. The request does not contain it, but a refusal does.
    """
    if not isinstance(reply, _ANSWERS[type(request)]) and not isinstance(reply, _REFUSALS):
        return False
    if isinstance(request, ReadSegment):
        if isinstance(reply, AuthTokenCheckFailed):  # servers put the offset in place of the number
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
    """Return True if a request concerns the segment that a reply names."""
    if isinstance(request, CreateTransientSegment):
        return named == request.parent or named.startswith(f"{request.parent}#transient.")
    if isinstance(request, MergeSegments):  # servers refuse a merge with either name
        return named in (request.target, request.source)
    return bool(named == getattr(request, "segment", segment))
