"""Protocol of reader groups, compatible with Java's readers in the same group. No I/O.

``state`` is the state that all members of a group share. ``updates`` are the changes of it. ``serialization`` has the
bytes of both, as Java writes them. ``machine`` is the state machine of one reader: which requests it sends, and what it
writes and reads next. ``balance`` decides which segments it acquires and releases. ``administration`` has the
operations on a group from outside of its readers. Only users of a group import these three; subscribers, which are
groups as well, import the rest. A client without either imports no module of this package.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.reader_groups.protocol.serialization import InitSerializer as InitSerializer
    from pravega_connector.reader_groups.protocol.serialization import StateSerializer as StateSerializer
    from pravega_connector.reader_groups.protocol.serialization import decode_checkpoint as decode_checkpoint
    from pravega_connector.reader_groups.protocol.serialization import decode_config as decode_config
    from pravega_connector.reader_groups.protocol.serialization import decode_position as decode_position
    from pravega_connector.reader_groups.protocol.serialization import decode_update as decode_update
    from pravega_connector.reader_groups.protocol.serialization import encode_checkpoint as encode_checkpoint
    from pravega_connector.reader_groups.protocol.serialization import encode_config as encode_config
    from pravega_connector.reader_groups.protocol.serialization import encode_position as encode_position
    from pravega_connector.reader_groups.protocol.serialization import encode_update as encode_update
    from pravega_connector.reader_groups.protocol.state import END_OF_SEGMENT as END_OF_SEGMENT
    from pravega_connector.reader_groups.protocol.state import SILENT as SILENT
    from pravega_connector.reader_groups.protocol.state import Bound as Bound
    from pravega_connector.reader_groups.protocol.state import Checkpoints as Checkpoints
    from pravega_connector.reader_groups.protocol.state import GroupConfig as GroupConfig
    from pravega_connector.reader_groups.protocol.state import GroupState as GroupState
    from pravega_connector.reader_groups.protocol.state import KeyRange as KeyRange
    from pravega_connector.reader_groups.protocol.state import Positions as Positions
    from pravega_connector.reader_groups.protocol.state import Ranged as Ranged
    from pravega_connector.reader_groups.protocol.state import Retention as Retention
    from pravega_connector.reader_groups.protocol.state import Segment as Segment
    from pravega_connector.reader_groups.protocol.state import by_stream as by_stream
    from pravega_connector.reader_groups.protocol.state import state_of as state_of
    from pravega_connector.reader_groups.protocol.updates import AcquireSegment as AcquireSegment
    from pravega_connector.reader_groups.protocol.updates import AddReader as AddReader
    from pravega_connector.reader_groups.protocol.updates import CheckpointReader as CheckpointReader
    from pravega_connector.reader_groups.protocol.updates import ClearCheckpointsBefore as ClearCheckpointsBefore
    from pravega_connector.reader_groups.protocol.updates import CreateCheckpoint as CreateCheckpoint
    from pravega_connector.reader_groups.protocol.updates import Init as Init
    from pravega_connector.reader_groups.protocol.updates import ReleaseSegment as ReleaseSegment
    from pravega_connector.reader_groups.protocol.updates import (
        RemoveOutstandingCheckpoints as RemoveOutstandingCheckpoints,
    )
    from pravega_connector.reader_groups.protocol.updates import RemoveReader as RemoveReader
    from pravega_connector.reader_groups.protocol.updates import SegmentCompleted as SegmentCompleted
    from pravega_connector.reader_groups.protocol.updates import StateUpdate as StateUpdate
    from pravega_connector.reader_groups.protocol.updates import UpdateCheckpointPublished as UpdateCheckpointPublished
    from pravega_connector.reader_groups.protocol.updates import UpdateDistanceToTail as UpdateDistanceToTail
    from pravega_connector.reader_groups.protocol.updates import UpdatingConfig as UpdatingConfig
    from pravega_connector.reader_groups.protocol.updates import apply as apply
    from pravega_connector.reader_groups.protocol.updates import create as create
else:
    from pravega_serde.public_names import public_names

    __getattr__, __dir__, __all__ = public_names(
        __name__,
        {
            "serialization": (
                "InitSerializer StateSerializer decode_checkpoint decode_config decode_position decode_update "
                "encode_checkpoint encode_config encode_position encode_update"
            ),
            "state": (
                "END_OF_SEGMENT SILENT Bound Checkpoints GroupConfig GroupState KeyRange Positions Ranged "
                "Retention Segment by_stream state_of"
            ),
            "updates": (
                "AcquireSegment AddReader CheckpointReader ClearCheckpointsBefore CreateCheckpoint Init "
                "ReleaseSegment RemoveOutstandingCheckpoints RemoveReader SegmentCompleted StateUpdate "
                "UpdateCheckpointPublished UpdateDistanceToTail UpdatingConfig apply create"
            ),
        },
    )
