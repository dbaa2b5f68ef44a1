"""Reader group members and stream subscribers. The protocol without I/O is in ``protocol``."""
