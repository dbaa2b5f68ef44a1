"""Reading streams: bounded ranges, the tail of a stream, positions, and watermarks."""
