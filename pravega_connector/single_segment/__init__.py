"""Streams of one segment: conditional appends, revisioned streams, synchronizers, and byte streams."""
