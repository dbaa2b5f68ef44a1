"""Members of reader groups, and subscribers of a stream; ``group_protocol`` has the protocol without I/O."""
