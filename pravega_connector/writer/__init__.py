"""Writing events: routing to segments, appends until they are durable, and transactions."""
