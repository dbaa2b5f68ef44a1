"""Reader group members and stream subscribers. The protocol without I/O is in ``reader_group_protocol``."""
