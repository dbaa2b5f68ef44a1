"""Reading streams: bounded ranges, the tail of a stream, positions, and watermarks."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pravega_connector.reader.event_columns import EventColumns as EventColumns
    from pravega_connector.reader.fetch import fetch_events as fetch_events
else:
    from pravega_serde.public_names import public_names

    # A task of Spark reads slices, and needs neither of these.
    __getattr__, __dir__, __all__ = public_names(__name__, {"event_columns": "EventColumns", "fetch": "fetch_events"})
