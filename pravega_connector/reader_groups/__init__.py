"""Members of reader groups, and subscribers of a stream; ``reader_group_protocol`` has the protocol without I/O."""
